package experiment

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// Every call leaves a record of where its time went; the parts are no more than the whole.
func TestSpent(t *testing.T) {
	dir := t.TempDir()
	said := ""
	opt := options(dir, oneThread(t))
	opt.Say = func(format string, _ ...any) { said = format }
	most := 0
	var first, last Progress
	opt.Progress = func(p Progress) {
		if most = max(most, p.Runs); p.Run != "" {
			if last = p; first.Run == "" {
				first = p
			}
		}
	}
	s := nanoSpec(40)
	if _, err := Work(context.Background(), s, opt); err != nil {
		t.Fatal(err)
	}
	if runs, err := s.Grid(nil); err != nil || most != 6 || len(runs) != 8 {
		t.Errorf("progress counts %d runs (%v); two rates of two sides, then one more seed of each are 6", most, err)
	}
	if !math.IsNaN(first.Left) || first.Share > 0.1 || !(last.Left >= 0) || last.Share < 0.5 || last.Finished != 5 ||
		last.Runs != 6 {
		t.Errorf("first progress is %+v, in the end %+v", first, last)
	}
	if said != "%s" {
		t.Errorf("the last thing said is %q, not where the time went", said)
	}
	s.Seeds, first = append(s.Seeds, 9), Progress{}
	if _, err := Work(context.Background(), s, opt); err != nil {
		t.Fatal(err)
	}
	if first.Share < 0.5 || !(first.Left > 0) || last.Finished != 7 { // runs and speeds of the first call count
		t.Errorf("first progress of the second call is %+v, in the end %+v", first, last)
	}
	b, err := os.ReadFile(filepath.Join(dir, timeName))
	if err != nil {
		t.Fatal(err)
	}
	var calls []Spent
	if err := json.Unmarshal(b, &calls); err != nil {
		t.Fatal(err)
	}
	if len(calls) != 2 || calls[0].Runs != 6 || calls[1].Runs != 2 {
		t.Fatalf("%+v", calls)
	}
	for _, x := range calls {
		if !(x.Training > 0 && x.Evaluating > 0 && x.Data >= 0 && x.Saving > 0 && x.Starting > 0) ||
			x.Training+x.Evaluating+x.Data+x.Saving+x.Starting+x.Idle > x.Total || x.Idle > 0.5*x.Total {
			t.Errorf("%+v: %s", x, x.String())
		}
	}
}
