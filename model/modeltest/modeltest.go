// Package modeltest makes small models of random weights for tests.
package modeltest

import (
	"maps"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/model"
)

// Tiny is the shape that most tests use: two layers, and heads in groups.
func Tiny(arch string, vocab, context int) model.Config {
	return model.Config{Arch: arch, Vocab: vocab, Context: context, Layers: 2, Dim: 16, Heads: 4,
		KVHeads: 2, HeadDim: 4}
}

// New completes a configuration and builds it on d, with weights drawn from a seed.
func New(t testing.TB, d device.Device, c model.Config, mem layer.Memory, seed uint64) *model.Model {
	t.Helper()
	c, err := c.Complete()
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.New(d, c, mem)
	if err != nil {
		t.Fatal(err)
	}
	m.Init(seed)
	return m
}

// EachArch runs f as a subtest for every architecture on every device, which has a name.
func EachArch(t *testing.T, devices map[string]device.Device, f func(t *testing.T, d device.Device, arch string)) {
	t.Helper()
	for _, a := range layer.Archs() {
		for _, name := range slices.Sorted(maps.Keys(devices)) {
			t.Run(name+"/"+a.Name, func(t *testing.T) { f(t, devices[name], a.Name) })
		}
	}
}
