package eval

import (
	"context"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
)

// The changed models exist, differ from their origin where they should, and keep its size.
func TestAblations(t *testing.T) {
	base := model.Config{Arch: "transformer", Vocab: 260, Context: 64, Layers: 2, Dim: 32, Heads: 4, KVHeads: 4, HeadDim: 8}
	diff := model.Config{Arch: "diff", Vocab: 260, Context: 64, Layers: 2, Dim: 32, Heads: 2, KVHeads: 2, HeadDim: 8}
	var sizes []int
	seen := map[model.Config]bool{}
	for _, a := range Ablations() {
		c := base
		if a.Challenger {
			c = diff
		}
		a.Change(&c)
		c, err := c.Complete()
		if err != nil {
			t.Fatalf("%s: %v", a.Name, err)
		}
		if seen[c] {
			t.Errorf("%s is a model that was there before", a.Name)
		}
		seen[c] = true
		sizes = append(sizes, model.Table(c).Count())
		if strings.Contains(a.Name, "no-norm") != (c.HeadNorm == layer.HeadNormOff && a.Challenger) {
			t.Errorf("%s has the norm %q", a.Name, c.HeadNorm)
		}
	}
	for i, n := range sizes {
		if len(sizes) != len(paperAblation) || n < sizes[0]*99/100 || n > sizes[0]*101/100 {
			t.Errorf("row %d has %d parameters, the first %d", i, n, sizes[0])
		}
	}
}

// AR-Hit and the others make up the loss, and the split counts each token once.
func TestAblationMeasure(t *testing.T) {
	sp := heldOut(t)
	s := subject(t, ref.New(), "diff", 64)
	var r AblationRow
	if err := r.Measure(context.Background(), s, sp, LossOptions{SeqLen: 64, Batches: 2}); err != nil {
		t.Fatal(err)
	}
	want, err := Loss(context.Background(), s, sp, LossOptions{SeqLen: 64, Batches: 2})
	if err != nil {
		t.Fatal(err)
	}
	lo, hi := min(r.ARHit.Value, r.Others.Value), max(r.ARHit.Value, r.Others.Value)
	if !near(r.Loss.Value, want.Loss.Value, 1e-6) || r.Loss.Value < lo || r.Loss.Value > hi || r.ARHit.N == 0 || r.Others.N == 0 {
		t.Errorf("loss %+v of %+v and %+v; measured as a loss %+v", r.Loss, r.ARHit, r.Others, want.Loss)
	}
}

func TestFrequentPairs(t *testing.T) {
	lists := [][]int32{{1, 2, 1, 2, 1, 2, 1, 2, 1, 3, 3}} // pairs 12 and 21 four times, 13 and 33 once
	if got := frequentPairs(lists, 0.5); len(got) != 0 {
		t.Errorf("more than half of all: %v", got)
	}
	got := frequentPairs(lists, 0.05)
	if len(got) != 2 || !got[[2]int32{1, 2}] || !got[[2]int32{2, 1}] {
		t.Errorf("%v", got)
	}
}

// Where documents are kept apart, positions begin anew with each: what another document held cannot be recalled.
func TestPositionsOfDocuments(t *testing.T) {
	s := subject(t, ref.New(), "transformer", 512)
	for _, isolate := range []bool{false, true} {
		begun := 0
		err := s.splitRows(context.Background(), heldOut(t), LossOptions{SeqLen: 512, Batches: 2, Isolate: isolate}, func(list []TokenLoss, places []int) {
			for i, x := range list {
				if i > 0 && x.Position <= list[i-1].Position {
					begun++
				}
				if !isolate && x.Position != places[i]+1 {
					t.Fatalf("position %d at place %d", x.Position, places[i])
				}
			}
		})
		if err != nil || isolate != (begun > 0) {
			t.Errorf("isolated %v: %d documents begin inside a row, %v", isolate, begun, err)
		}
	}
}

func TestAblationCells(t *testing.T) {
	x := AblationRow{Loss: Mean{3, 0.1, 9}, Others: Mean{3, 0.1, 9}}
	if got, want := strings.Join(x.cells(3), "|"), "3.0000 ± 0.1000|–|3.0000 ± 0.1000|3.062|0.880|3.247"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
