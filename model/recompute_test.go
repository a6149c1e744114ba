package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/ref"
	"antiphase/layer"
)

// Recomputation changes memory and no bit of any gradient or loss, whatever the options of the network.
func TestRecomputeKeepsBits(t *testing.T) {
	for name, c := range configs(t) {
		for kind, open := range map[string]func() device.Device{
			"ref":  func() device.Device { return ref.New() },
			"fp32": func() device.Device { return cpu.New(cpu.Options{Threads: 2}) },
			"bf16": func() device.Device { return cpu.New(cpu.Options{Threads: 2, Precision: cpu.BF16}) },
		} {
			d := open()
			c.Layers = 3
			var want [][]float64
			for _, how := range layer.Recomputes {
				got := gradients(t, d, c, how)
				if how == layer.RecomputeOff {
					want = got
				}
				for i := range got {
					if !slices.Equal(got[i], want[i]) {
						t.Fatalf("%s on %s, %s: tensor %d differs", name, kind, how, i)
					}
				}
			}
			d.Close()
		}
	}
}

// gradients are those of two micro-batches, and the losses.
func gradients(t *testing.T, d device.Device, c Config, how layer.Recompute) [][]float64 {
	t.Helper()
	m := newModel(t, d, c)
	defer m.Free()
	m.Recompute(how)
	b := batch(rand.New(rand.NewPCG(5, 6)), c, 2, 6)
	b.Starts = []int32{0, 0, 2, 2, 2, 2, 0, 0, 0, 0, 4, 4}
	var f Feed
	defer f.Free()
	if err := m.Put(&f, b, 1); err != nil {
		t.Fatal(err)
	}
	m.Gradient(&f, 0.25, nil)
	loss := make([]float32, len(b.IDs))
	m.Losses(loss)
	out := [][]float64{make([]float64, len(loss))}
	for i, x := range loss {
		out[0][i] = float64(x)
	}
	for _, p := range m.Params.List {
		g := make([]float32, p.Rows*p.Cols)
		device.ReadFloats(d, g, p.G)
		wide := make([]float64, len(g))
		for i, x := range g {
			wide[i] = float64(x)
		}
		out = append(out, wide)
	}
	return out
}

// weighed are configurations of every architecture and variant for estimates of memory.
func weighed() (all []Config) {
	for _, a := range layer.Archs() {
		c := Config{Arch: a.Name, Vocab: 19, Context: 64, Layers: 6, Dim: 128, Heads: 4, HeadDim: 16, FFN: 352,
			HeadNorm: layer.HeadNormOff}
		if a.Values == 1 {
			c.Heads = 8
		}
		normed := c
		normed.HeadNorm, normed.KVHeads = layer.HeadNormAffine, 2
		all = append(all, c, normed)
		if !a.Variants {
			continue
		}
		none, across := c, c
		none.LambdaForm, across.Pairing = layer.LambdaNone, layer.PairingAcross
		both := across
		both.LambdaForm, both.KVHeads = layer.LambdaNone, 2
		all = append(all, none, across, both)
	}
	return all
}

// The estimate that a dry run prints is what the arena takes, to one percent.
func TestActivationBytes(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 2})
	defer d.Close()
	for _, c := range weighed() {
		c, err := c.Complete()
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("%s, norm %s, λ %q, pairs %q", c.Arch, c.HeadNorm, c.LambdaForm, c.Pairing)
		var last int
		for _, how := range layer.Recomputes {
			m := newModel(t, d, c)
			m.Recompute(how)
			if err := m.Backprop(batch(rand.New(rand.NewPCG(1, 2)), c, 2, 16), 1); err != nil {
				t.Fatal(err)
			}
			got, want := c.ActivationBytes(2*16, d.Types(), how), m.ActivationBytes()
			if off := float64(got)/float64(want) - 1; !(math.Abs(off) <= 0.01) {
				t.Errorf("%s, %s: estimate %d, took %d (%+.1f %%)", name, how, got, want, 100*off)
			}
			if last > 0 && want >= last {
				t.Errorf("%s: %s takes %d bytes, the choice before it %d", name, how, want, last)
			}
			last = want
			m.Free()
		}
	}
}
