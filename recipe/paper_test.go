package recipe

import (
	"math"
	"testing"

	"antiphase/model"
	"antiphase/optim"
)

// TestPaperTraining holds the paper's sizes to its section on scaling: sequences of 2048, batches of a quarter million
// tokens, 40,000 steps, AdamW with β 0.9 and 0.98, decay 0.05, 375 steps of warm-up and linear decay from 1.5e-4, from
// 7.5e-5 for the two largest.
func TestPaperTraining(t *testing.T) {
	for size, lr := range map[string]float64{"830m": 1.5e-4, "1.4b": 1.5e-4, "2.8b": 1.5e-4, "6.8b": 7.5e-5,
		"13.1b": 7.5e-5} {
		for _, arch := range []string{"transformer", "diff", "diff2"} {
			r, err := Named(size, arch)
			if err != nil {
				t.Fatal(err)
			}
			want := optim.Config{LR: lr, Beta1: 0.9, Beta2: 0.98, Decay: 0.05, Warmup: 375, Schedule: "linear"}
			got := r.Optim
			got.Eps, got.Clip, got.FinalLR = 0, 0, 0 // the paper does not say
			if got != want {
				t.Errorf("%s %s: optimiser %+v, the paper has %+v", size, arch, got, want)
			}
			if n := r.Train.Batch * r.Train.SeqLen; r.Train.SeqLen != 2048 || n != 1<<18 || r.Train.Steps != 40000 {
				t.Errorf("%s %s: %d steps of %d tokens in sequences of %d", size, arch, r.Train.Steps, n,
					r.Train.SeqLen)
			}
		}
	}
	for size, want := range map[string]struct {
		layers, dim, heads, headDim, vocab int
		billions                           float64 // as its figure 3a plots them: matrices and one embedding
	}{
		"830m": {24, 1536, 16, 96, 100288, 0.8335}, "1.4b": {24, 2048, 16, 128, 100288, 1.4132},
		"2.8b": {32, 2560, 20, 128, 100288, 2.7943},
		"6.8b": {32, 4096, 32, 128, 100288, 6.8365}, "13.1b": {40, 5120, 40, 128, 100288, 13.1226},
	} {
		r, err := Named(size, "transformer")
		if err != nil {
			t.Fatal(err)
		}
		m := r.Model
		if m.Layers != want.layers || m.Dim != want.dim || m.Heads != want.heads || m.HeadDim != want.headDim ||
			m.Vocab != want.vocab {
			t.Errorf("%s: %d layers of %d, %d heads of %d, vocabulary %d; the paper has %+v", size, m.Layers, m.Dim,
				m.Heads, m.HeadDim, m.Vocab, want)
		}
		if n := float64(model.Table(m).Count()) / 1e9; !(math.Abs(n-want.billions) <= 0.001) {
			t.Errorf("%s: %.4f billion parameters, the paper has %.4f", size, n, want.billions)
		}
		d, err := Named(size, "diff")
		if err != nil || d.Model.Heads*2 != m.Heads || d.Model.HeadDim != m.HeadDim {
			t.Errorf("%s: diff has %d heads of %d (%v), half of %d", size, d.Model.Heads, d.Model.HeadDim, err, m.Heads)
		}
	}
}

// TestOwnTraining: the learning rate and batch of the sizes that are ours.
func TestOwnTraining(t *testing.T) {
	for size, want := range map[string]struct {
		lr                float64
		batch, seq, steps int
	}{"nano": {3e-3, 4, 32, 20}, "tiny": {1e-3, 8, 256, 2000}, "small": {1e-3, 32, 512, 10000},
		"160m": {6e-4, 128, 2048, 20000}} {
		r, err := Named(size, "diff")
		if err != nil {
			t.Fatal(err)
		}
		if r.Optim.LR != want.lr || r.Train.Batch != want.batch || r.Train.SeqLen != want.seq ||
			r.Train.Steps != want.steps {
			t.Errorf("%s: %d steps of %d × %d at %g, want %+v", size, r.Train.Steps, r.Train.Batch, r.Train.SeqLen,
				r.Optim.LR, want)
		}
	}
}
