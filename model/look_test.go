package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/layer"
	"antiphase/tensor"
)

type nothing struct {
	layers int
	blocks []int // whose streams were shown, in order
	last   []float32
	d      device.Device
}

func (n *nothing) Attention(layer.View) { n.layers++ }
func (n *nothing) Hidden(l int, x tensor.Tensor) {
	n.blocks = append(n.blocks, l)
	if n.d != nil {
		n.last = make([]float32, x.Len())
		device.ReadFloats(n.d, n.last, x)
	}
}

// TestLookIsThePlainPass: under a probe losses are those of Score and logits those of Logits, bit for bit, in any
// order.
func TestLookIsThePlainPass(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 2})
	defer d.Close()
	for name, c := range configs(t) {
		m := scorer(t, d, c)
		b := batch(rand.New(rand.NewPCG(1, 2)), c, 1, 13)
		want, wantLoss := make([]float32, 13*c.Vocab), make([]float32, 13)
		if err := m.Score(b); err != nil {
			t.Fatal(err)
		}
		m.Losses(wantLoss)
		if err := m.Logits(b, want); err != nil {
			t.Fatal(err)
		}
		if err := m.Score(batch(rand.New(rand.NewPCG(5, 6)), c, 1, 13)); err != nil { // leaves other losses
			t.Fatal(err)
		}
		rows := slices.Repeat([]int{12, 0, 7, 3, 1, 2, 4, 5, 6, 8, 9, 10, 11}, 3) // more than are held at a time
		probe, seen := &nothing{d: d}, 0
		err := m.Look(b, probe, rows, func(i int, logits []float32) {
			if i != rows[seen] || !slices.Equal(logits, want[i*c.Vocab:(i+1)*c.Vocab]) {
				t.Errorf("%s: logits of row %d differ", name, i)
			}
			seen++
		})
		if err != nil || seen != len(rows) || probe.layers != c.Layers {
			t.Errorf("%s: %v, %d rows, %d layers", name, err, seen, probe.layers)
		}
		hidden := make([]float32, 13*c.Dim)
		if err := m.Hidden(b, func() {}, hidden); err != nil {
			t.Fatal(err)
		}
		for i, x := range hidden { // the last stream, normalised; its gain is 1
			row, sum := probe.last[i/c.Dim*c.Dim:][:c.Dim], 0.0
			for _, v := range row {
				sum += float64(v) * float64(v)
			}
			if want := float64(row[i%c.Dim]) /
				math.Sqrt(sum/float64(c.Dim)+c.NormEps); !(math.Abs(float64(x)-want) <= 1e-4) {
				t.Fatalf("%s: hidden %d is %g, of the last block's stream %g", name, i, x, want)
			}
		}
		if !slices.Equal(probe.blocks, []int{0, 1}) {
			t.Errorf("%s: the streams of blocks %v", name, probe.blocks)
		}
		got := make([]float32, 13)
		if m.Losses(got); !slices.Equal(got, wantLoss) {
			t.Errorf("%s: losses %v, want %v", name, got, wantLoss)
		}
		m.Free()
	}
}

// The hidden rows are those whose products with the output matrix are the logits; the caller is let in after each
// block.
func TestHiddenMakesTheLogits(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 2, Precision: cpu.FP32})
	defer d.Close()
	for _, name := range []string{"transformer/base", "diff/tied", "diff2/grouped", "gda/norm-affine"} {
		c := configs(t)[name]
		m := newModel(t, d, c)
		b := batch(rand.New(rand.NewPCG(1, 2)), c, 2, 7)
		want, hidden := make([]float32, 14*c.Vocab), make([]float32, 14*c.Dim)
		if err := m.Logits(b, want); err != nil {
			t.Fatal(err)
		}
		calls := 0
		if err := m.Hidden(b, func() { calls++ }, hidden); err != nil || calls != c.Layers {
			t.Fatalf("%s: %d calls, %v", name, calls, err)
		}
		w := make([]float32, c.Vocab*c.Dim)
		m.loss.W.Read(d, w)
		for i, logit := range want {
			row, class, sum := i/c.Vocab, i%c.Vocab, 0.0
			for k := range c.Dim {
				sum += float64(hidden[row*c.Dim+k]) * float64(w[class*c.Dim+k])
			}
			if !(math.Abs(sum-float64(logit)) <= 1e-4) {
				t.Fatalf("%s: logit %d of row %d is %g, of its hidden row %g", name, class, row, logit, sum)
			}
		}
		m.Free()
	}
}
