package train

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"antiphase/infer"
	"antiphase/layer"
	"antiphase/metrics"
	"antiphase/model"
	"antiphase/tokenizer"
)

// greedy continues a prompt with a model.
func greedy(t *testing.T, m *model.Model, tok *tokenizer.Tokenizer) []int32 {
	t.Helper()
	e, err := infer.New(m, tok, infer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var ids []int32
	err = e.Generate(context.Background(), []infer.Request{{IDs: tok.EncodeOrdinary(nil, "The magic code"),
		Sampling: infer.Sampling{MaxTokens: 12}}},
		func(_ int, ev infer.Event) bool { ids = append(ids, ev.ID); return true })
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// A probe that generates with the model in training changes neither the training nor its rows, and sees the model of
// its step.
func TestProbe(t *testing.T) {
	for _, a := range layer.Archs() {
		t.Run(a.Name, func(t *testing.T) {
			r := nano(t, a.Name, "train.steps=12", "train.save_every=4", "train.keep_last=9")
			plain, probed := t.TempDir(), t.TempDir()
			mustRun(t, r, options(t, plain))
			opt := options(t, probed)
			var at []int
			said := map[int][]int32{}
			opt.ProbeEvery = 4
			opt.Probe = func(_ context.Context, step int, m *model.Model, tok *tokenizer.Tokenizer) error {
				at = append(at, step)
				said[step] = greedy(t, m, tok)
				return nil
			}
			mustRun(t, r, opt)
			if !slices.Equal(at, []int{4, 8, 12}) {
				t.Errorf("probed at %v", at)
			}
			sameFiles(t, files(t, filepath.Join(probed, "checkpoints")), files(t, filepath.Join(plain, "checkpoints")))
			sameLambdas(t, plain, probed)
			saved, err := filepath.Glob(filepath.Join(probed, "checkpoints", "*", "state.json"))
			if err != nil || len(saved) != len(at) {
				t.Fatalf("%d checkpoints, want %d (%v)", len(saved), len(at), err)
			}
			for i, path := range saved {
				s, err := Open(filepath.Dir(path), nil)
				if err != nil {
					t.Fatal(err)
				}
				m, err := s.Model(opt.Device)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := said[at[i]], greedy(t, m, s.Tokenizer); !slices.Equal(got, want) {
					t.Errorf("the probe of step %d generated %v, its checkpoint %v", at[i], got, want)
				}
				m.Free()
				s.Close()
			}
		})
	}
}

func sameLambdas(t *testing.T, a, b string) {
	t.Helper()
	read := func(dir string) []metrics.Row {
		rows, err := metrics.Read(filepath.Join(dir, metrics.FileName), nil)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	x, y := read(a), read(b)
	for i := range x {
		if !slices.Equal(x[i].Lambda, y[i].Lambda) {
			t.Fatalf("step %d: λ %v with probes, %v without", x[i].Step, y[i].Lambda, x[i].Lambda)
		}
	}
}
