package task

import (
	"context"
	"math"
	"testing"

	"antiphase/eval"
	"antiphase/lab"
)

// The lab and the task attention say the same of one prompt: every head's shares, from the lab's last rows, are the
// task's to 1e-5.
func TestLabEqualsTheTask(t *testing.T) {
	onArchs(t, 340, func(t *testing.T, s *eval.Subject) {
		c := aNeedle()
		g, maps, err := look(s, c)
		if err != nil {
			t.Fatal(err)
		}
		ids := question(s, c)
		q := lab.Query{IDs: ids, Maps: []string{lab.A1}, Size: 1, Rows: []int{len(ids) - 1}}
		if maps == 2 {
			q.Maps = []string{lab.A1, lab.A2, lab.Diff}
		}
		if err := q.Complete(s.Model.Config); err != nil {
			t.Fatal(err)
		}
		r, err := lab.Look(context.Background(), s.Model, &q, func(int32) string { return "" }, nil)
		if err != nil {
			t.Fatal(err)
		}
		from, to := tokenSpan(offsets(s, ids), c.Spans[0])
		query, _ := tokenSpan(offsets(s, ids), c.QuerySpan)
		p := &segmentProbe{bounds: [4]int{1, from, to, query}}
		sum := func(f lab.Floats, of func(float64) float64) Segments {
			row := make([]float64, len(f))
			for i, x := range f {
				row[i] = float64(x)
			}
			return p.sum(row, of)
		}
		if len(r.Shown) != s.Model.Config.Layers*s.Model.Config.Heads {
			t.Fatalf("%d heads", len(r.Shown))
		}
		for _, h := range r.Shown {
			last, want := h.Rows[0].Maps, g.Heads[h.Layer][h.Head]
			applied := last[lab.A1]
			if maps == 2 {
				applied = last[lab.Diff]
				if !sameSegments(sum(last[lab.A1], keepSign), want.A1, 1e-5) ||
					!sameSegments(sum(last[lab.A2], keepSign), want.A2, 1e-5) {
					t.Errorf("layer %d, head %d: A1 or A2 differ", h.Layer, h.Head)
				}
			}
			magnitude := sum(applied, math.Abs)
			if !sameSegments(magnitude.over(magnitude.Total()), want.Magnitude, 1e-5) ||
				!sameSegments(sum(applied, keepSign).over(magnitude.Total()), want.Signed, 1e-5) {
				t.Errorf("layer %d, head %d: %+v, want %+v", h.Layer, h.Head, magnitude, want.Magnitude)
			}
		}
	})
}
