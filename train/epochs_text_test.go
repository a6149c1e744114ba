package train

import (
	"fmt"
	"path/filepath"
	"testing"

	"antiphase/data"
	"antiphase/tokenizer"
)

// A run that needs more rows than its sources' epochs allow is told the numbers of each source, and the steps that fit.
func TestRowsInWords(t *testing.T) {
	sources := `data.sources=[{"path": "synthetic:docs=6", "weight": 3, "epochs": 2}, {"path": "synthetic:docs=9,seed=2", "weight": 1, "epochs": 0.5}]`
	set := filepath.Join(t.TempDir(), "set")
	r := nano(t, "diff", sources, "data.held_out=0")
	if err := MakeSet(t.Context(), r, set, tokenizer.Bytes(), &Options{}); err != nil {
		t.Fatal(err)
	}
	s, err := data.OpenSet(set, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sp, err := trainSplit(s, r)
	if err != nil {
		t.Fatal(err)
	}
	a, b, T := s.Manifest.Sources[0], s.Manifest.Sources[1], int64(r.Train.SeqLen)
	rowsA, rowsB := 2*a.Tokens/T, b.Tokens/2/T
	fits := int(rowsA+rowsB) / r.Train.Batch
	for _, steps := range []int{fits, fits + 1, 5000} {
		r.Train.Steps = steps
		err := checkRows(sp, loader(sp, r, r.Train.Batch, 1), r)
		want := fmt.Sprintf("data: source mixture: %d steps of %d rows are %d rows, and the epochs allow %d:\n"+
			"  %s: %d tokens × 2 epochs = %d rows of %d\n  %s: %d tokens × 0.5 epochs = %d rows of %d\n"+
			"set train.steps=%d, or allow more epochs",
			steps, r.Train.Batch, steps*r.Train.Batch, rowsA+rowsB, a.Name, a.Tokens, rowsA, T, b.Name, b.Tokens,
			rowsB, T, fits)
		if (err == nil) != (steps == fits) || err != nil && err.Error() != want {
			t.Errorf("%d steps: %v\nwant %s", steps, err, want)
		}
	}
	for _, c := range []struct {
		tokens int
		want   string
	}{
		{int(b.Tokens/2) + 1, fmt.Sprintf("data: source %s: has %d tokens to train on, of which 0.5 epochs are less "+
			"than one row of train.seq_len = %d: allow more epochs, or leave the source out",
			b.Name, b.Tokens, b.Tokens/2+1)},
		{int(max(a.Tokens, b.Tokens)) + 1, fmt.Sprintf("data: source %s: has %d tokens to train on, one row has "+
			"train.seq_len = %d: give more text or shorter rows", a.Name, a.Tokens, max(a.Tokens, b.Tokens)+1)},
	} {
		if r.Train.SeqLen = c.tokens; a.Tokens < int64(c.tokens) && c.tokens <= int(b.Tokens) {
			t.Fatalf("sources of %d and %d tokens do not tell them apart", a.Tokens, b.Tokens)
		}
		if err := checkRows(sp, loader(sp, r, r.Train.Batch, 1), r); err == nil || err.Error() != c.want {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}
