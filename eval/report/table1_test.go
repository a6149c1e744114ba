package report

import (
	"strings"
	"testing"

	"antiphase/eval"
)

// The paper's rows stand beside ours only where all seven sets were asked whole.
func TestTable1(t *testing.T) {
	page := func(change func(kind string, r *eval.Result)) section {
		var cells []*eval.Cell
		for i, x := range table1Tasks {
			r := made(x.kind, "mc", published(x.kind), "accuracy, %", 100, float64(i)/10, nil)
			if change(x.kind, r); r.N > 0 {
				cells = append(cells, cellOf(eval.Model{Name: "ours", Hash: "h", Context: 64}, i, r))
			}
		}
		s, err := table1Section(&Page{Evaluation: eval.Assemble(cells)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	whole := page(func(string, *eval.Result) {})
	rows := whole.Tables[0].Rows
	if len(rows) != 6 || strings.Join(rows[1], " ") != "ours 0.0 10.0 20.0 30.0 40.0 50.0 60.0 30.0" ||
		rows[5][8] != "60.6" || rows[4][1] != "–" {
		t.Errorf("%q", rows)
	}
	for _, n := range []int{1, 2} {
		left := n
		s := page(func(_ string, r *eval.Result) {
			if left--; left < 0 {
				r.N = 0
			}
		})
		if len(s.Tables) != n-1 {
			t.Errorf("%d of the seven tasks: %d tables", n, len(s.Tables))
		}
	}
	for name, s := range map[string]section{
		"stand-in": page(func(kind string, r *eval.Result) {
			if kind == "piqa" {
				r.Task = "standin_piqa"
			}
		}),
		"limited": page(func(_ string, r *eval.Result) { r.Limit = 5 }),
		"task file": page(func(kind string, r *eval.Result) {
			if kind == "piqa" {
				r.Config = map[string]any{"task_file": "hash"}
			}
		}),
		"six": page(func(kind string, r *eval.Result) {
			if kind == "boolq" {
				r.N = 0
			}
		}),
	} {
		if rows := s.Tables[0].Rows; len(rows) != 2 || !strings.Contains(s.Tables[0].Note, "left out") {
			t.Errorf("%s: %q", name, rows)
		}
	}
}
