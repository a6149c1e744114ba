package experiment

import (
	"context"
	"strings"
	"testing"
)

// A probe that is asked in two ways has two curves, each with a point for every time it was asked.
func TestTwoProbesOfATask(t *testing.T) {
	s := nanoSpec(12)
	s.Archs, s.LRs, s.Seeds, s.TuneSeeds = s.Archs[:1], nil, s.Seeds[:1], 0
	s.Probes, s.Every = []Ask{"outliers tokens=64", "outliers tokens=128"}, 3
	rows, err := Work(context.Background(), s, options(t.TempDir(), oneThread(t)))
	if err != nil {
		t.Fatal(err)
	}
	curves := 0
	for _, r := range rows {
		if !strings.HasPrefix(r.Measure, "probe.outliers.logits_max") {
			continue
		}
		if curves++; len(r.Curve) != 4 {
			t.Errorf("%s with %v: %d points", r.Measure, r.Task.Config["tokens"], len(r.Curve))
		}
	}
	if curves != 2 {
		t.Errorf("%d curves, want 2", curves)
	}
}
