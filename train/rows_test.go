package train

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/internal/vfs"
	"antiphase/tokenizer"
)

// What OpenRows says of a step is what the step was given, in both orders, before and after there is a checkpoint.
func TestRowsAreTheSteps(t *testing.T) {
	for _, order := range []string{"random", "stream"} {
		r := nano(t, "diff", "train.steps=9", "train.micro_batch=1", "train.save_every=4",
			"data.sources=synthetic:docs=6,len=128", "data.held_out=0.2", "data.order="+order)
		opt := options(t, t.TempDir())
		opt.Say = func(string, ...any) {}
		run, err := newRun(context.Background(), r, &opt)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := OpenRows(opt.Dir, "", data.Train, nil)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 9; n++ {
			if err := run.step(); err != nil {
				t.Fatal(err)
			}
			if err := rows.At(n); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(rows.IDs, run.batch.IDs) || !slices.Equal(rows.Targets, run.batch.Targets) ||
				!slices.Equal(rows.Starts, run.starts) {
				t.Fatalf("%s: step %d saw other rows", order, n)
			}
			if n == 3 {
				if err := rows.At(7); err != nil { // ahead, and back at the next step
					t.Fatal(err)
				}
			}
		}
		if err := run.saver.save(true); err != nil {
			t.Fatal(err)
		}
		run.close()
		valid, err := OpenRows(opt.Dir, filepath.Join(opt.Dir, "data"), data.Valid, nil)
		if err != nil || valid.B != r.Train.MicroBatch || valid.At(2) != nil {
			t.Fatalf("%v, %+v", err, valid)
		}
		if err := valid.Close(); err != nil {
			t.Error(err)
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A step beyond the sources' epochs is refused, and every step before is found afterwards as before.
func TestRowsPastTheEnd(t *testing.T) {
	r := nano(t, "diff", "train.steps=5",
		`data.sources=[{"path": "synthetic:docs=6,len=128", "weight": 1, "epochs": 2}]`, "data.held_out=0")
	opt := options(t, t.TempDir())
	opt.Say = func(string, ...any) {}
	run, err := newRun(t.Context(), r, &opt)
	if err != nil {
		t.Fatal(err)
	}
	run.close()
	rows, err := OpenRows(opt.Dir, "", data.Train, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	last := int(2*rows.set.Manifest.Tokens/int64(rows.T)) / rows.B
	want := map[int][]int32{}
	for _, n := range []int{1, 2, 5, last} {
		if err := rows.At(n); err != nil {
			t.Fatalf("step %d of %d: %v", n, last, err)
		}
		want[n] = slices.Clone(rows.IDs)
	}
	for n, ids := range want {
		for _, beyond := range []int{last + 1, 100 * last} {
			if err := rows.At(beyond); err == nil ||
				!strings.Contains(err.Error(), fmt.Sprintf("step %d: the sources' epochs end", beyond)) {
				t.Errorf("step %d of %d: %v", beyond, last, err)
			}
			if err := rows.At(n); err != nil || !slices.Equal(rows.IDs, ids) {
				t.Errorf("step %d after %d: %v", n, beyond, err)
			}
		}
	}
}

// A built set is opened with its own tokenizer or an equal one; ranks that follow take the one beside it.
func TestTokenizersOfBuiltSets(t *testing.T) {
	dir := t.TempDir()
	set := filepath.Join(dir, "set")
	r := nano(t, "diff")
	if err := MakeSet(t.Context(), r, set, tokenizer.Bytes(), &Options{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path  string
		built bool
		want  string // of the error
	}{
		{"", false, ""}, {"bytes", false, ""}, {filepath.Join(set, data.TokenizerName), false, ""}, {"", true, ""},
		{filepath.Join(dir, "gone"), true, ""},
		{filepath.Join(dir, "gone"), false, "load tokenizer: "},
	} {
		said := 0
		r.Tokenizer.Path = c.path
		opt := &Options{Built: c.built, fs: vfs.OS{}, Say: func(string, ...any) { said++ }}
		tok, s, err := takeSet(set, r, opt)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q, built %v: %v, want %q", c.path, c.built, err, c.want)
		}
		if err != nil {
			continue
		}
		if tok.Hash() != tokenizer.Bytes().Hash() || (said == 0) != c.built {
			t.Errorf("%q, built %v: tokenizer %s, said %d lines", c.path, c.built, tok.Hash(), said)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
