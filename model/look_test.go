package model

import (
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device/cpu"
	"antiphase/layer"
	"antiphase/tensor"
)

type nothing struct{ layers int }

func (n *nothing) Attention(layer.View)      { n.layers++ }
func (n *nothing) Hidden(int, tensor.Tensor) {}

// TestLookIsThePlainPass: under a probe losses are those of Score and logits those of Logits, bit for bit, in any order.
func TestLookIsThePlainPass(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 2})
	defer d.Close()
	for name, c := range configs(t) {
		m, err := New(d, c, layer.Memory{})
		if err != nil {
			t.Fatal(err)
		}
		m.Init(5)
		b := batch(rand.New(rand.NewPCG(1, 2)), c, 1, 13)
		want, wantLoss := make([]float32, 13*c.Vocab), make([]float32, 13)
		if err := m.Score(b); err != nil {
			t.Fatal(err)
		}
		m.Losses(wantLoss)
		if err := m.Logits(b, want); err != nil {
			t.Fatal(err)
		}
		rows := []int{12, 0, 7, 3, 1, 2, 4, 5, 6, 8, 9, 10, 11}
		probe, seen := &nothing{}, 0
		err = m.Look(b, probe, rows, func(i int, logits []float32) {
			if i != rows[seen] || !slices.Equal(logits, want[i*c.Vocab:(i+1)*c.Vocab]) {
				t.Errorf("%s: logits of row %d differ", name, i)
			}
			seen++
		})
		if err != nil || seen != len(rows) || probe.layers != c.Layers {
			t.Errorf("%s: %v, %d rows, %d layers", name, err, seen, probe.layers)
		}
		got := make([]float32, 13)
		if m.Losses(got); !slices.Equal(got, wantLoss) {
			t.Errorf("%s: losses %v, want %v", name, got, wantLoss)
		}
		m.Free()
	}
}
