package train

import (
	"errors"
	"path/filepath"
	"testing"

	"antiphase/data"
	"antiphase/internal/quota"
	"antiphase/recipe"
	"antiphase/tokenizer"
)

// A run, its readers and what they refuse leave no file open or mapped.
func TestFilesAreClosed(t *testing.T) {
	opt := options(t, t.TempDir())
	r := nano(t, "diff", "train.steps=1", "data.held_out=0.2")
	mustRun(t, r, opt)
	longer := r
	longer.Train.Steps = 2
	set := filepath.Join(t.TempDir(), "set")
	if err := MakeSet(t.Context(), nano(t, "diff", "data.sources=synthetic:docs=30,seed=4"), set, tokenizer.Bytes(),
		&Options{}); err != nil {
		t.Fatal(err)
	}
	small := nano(t, "diff", "data.sources="+set)
	small.Model.Vocab = 100
	for name, f := range map[string]func(){
		"a finished run": func() { mustRun(t, r, opt) },
		"a run whose rows are too few": func() {
			x := longer
			x.Train.SeqLen, x.Model.Context = 1<<20, 1<<20
			o := opt
			o.Dir, o.Data, o.Built = t.TempDir(), set, true
			if _, err := Run(t.Context(), x, o); err == nil {
				t.Error("no error")
			}
		},
		"a set that does not fit the model": func() {
			o := opt
			o.Dir = t.TempDir()
			if _, err := Run(t.Context(), small, o); err == nil {
				t.Error("no error")
			}
		},
		"an opened run": func() {
			s, err := Open(opt.Dir, nil)
			if err != nil || s.Close() != nil {
				t.Error(err)
			}
		},
		"rows": func() {
			rows, err := OpenRows(opt.Dir, "", data.Train, nil)
			if err != nil || rows.Close() != nil {
				t.Error(err)
			}
		},
		"rows of another set": func() {
			if _, err := OpenRows(opt.Dir, set, data.Train, nil); err == nil {
				t.Error("no error")
			}
		},
		"rows of a split that is not there": func() {
			if _, err := OpenRows(opt.Dir, "", "test", nil); err == nil {
				t.Error("no error")
			}
		},
	} {
		quota.Files(t, name, f)
	}
}

// A device gets back every buffer of a run: one that ends, one that is interrupted, one that cannot begin, and each of
// several ranks, with whole and with shared moments.
func TestBuffersAreFreed(t *testing.T) {
	opt := options(t, t.TempDir())
	d := &live{Device: opt.Device}
	opt.Device = d
	r := nano(t, "diff", "train.steps=3", "data.held_out=0.2", "train.eval_every=1", "train.save_every=1")
	stopAt(t, r, opt, 2)
	if d.n != 0 {
		t.Errorf("interrupted: %d buffers are left", d.n)
	}
	if mustRun(t, r, opt); d.n != 0 {
		t.Errorf("finished: %d buffers are left", d.n)
	}
	saved, err := Open(opt.Dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	saved.Recipe.Model.Layers++
	if m, err := saved.Model(d); err == nil || m != nil || d.n != 0 {
		t.Errorf("a model without all weights: %d buffers are left, %v", d.n, err)
	}
	lost := errors.New("lost")
	opt.Dir, opt.Begin = t.TempDir(), &Begin{Parent: func() (*Parent, error) { return nil, lost }}
	if _, err := Run(t.Context(), r, opt); !errors.Is(err, lost) || d.n != 0 {
		t.Errorf("never begun: %d buffers are left, %v", d.n, err)
	}
	for _, l := range []ranked{{2, 1, false}, {2, 1, true}, {2, 2, false}} {
		ranks := make([]*live, l.n)
		if _, err := l.run(t, r, t.TempDir(), func(rank int, opt *Options, _ *recipe.Recipe) {
			ranks[rank] = &live{Device: opt.Device}
			opt.Device = ranks[rank]
		}); err != nil {
			t.Fatal(err)
		}
		for rank, d := range ranks {
			if d.n != 0 {
				t.Errorf("%v, rank %d: %d buffers are left", l, rank, d.n)
			}
		}
	}
}
