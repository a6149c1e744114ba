package experiment

import (
	"slices"
	"strings"
	"testing"
)

// Runs of one commit have no column for it. Of several the table has each run's, also where it diverged, and the basis
// of a comparison of speeds names them; of other claims, and of speeds of one commit, it does not.
func TestBuilds(t *testing.T) {
	fast := slices.Concat(seeded(plain, trainSpeed, 50, 60, 70), seeded(v1, trainSpeed, 40, 50, 60),
		seeded(v2, trainSpeed, 30, 40, 50))
	diverged := at(v1, 1, 4, Failed, 60)
	diverged.Run = "diff-s4"
	rows := append(fast, diverged)
	for i := range rows {
		rows[i].Commit = "c0ffee"
	}
	table := func(rows []Row) string {
		list := newFinal(rows).tables()
		var lines []string
		for _, row := range list[len(list)-1].Rows {
			lines = append(lines, strings.Join(row, "/"))
		}
		return strings.Join(lines, "\n")
	}
	if got := machines(rows, rows); strings.Contains(table(rows), "c0ffee") ||
		got != "machine unknown; commit c0ffee." {
		t.Errorf("one commit: %s\n%s", got, table(rows))
	}
	for i := range rows {
		if rows[i].Arch == v2 || rows[i].Run == diverged.Run {
			rows[i].Commit = unrecorded
		}
	}
	if got, want := machines(rows, rows), "machine unknown; commits c0ffee, (devel). The table of the runs "+
		"compared has the commit of each. (devel) is a build that did not record its commit."; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, want := range []string{"/spikes/commit\ntransformer-s1/", "diverged after 60 of 0 steps/–/–/–/(devel)\n",
		"diff2-s3/0/2M/1.0000/–/–/–/(devel)"} {
		if !strings.Contains(table(rows), want) {
			t.Errorf("lacks %q:\n%s", want, table(rows))
		}
	}
	for _, x := range []struct{ arch, measure, want string }{
		{v2, trainSpeed, "; different commits: diff2 (devel); transformer c0ffee"}, {v1, trainSpeed, ""},
		{v2, "train.spikes", ""},
	} {
		c := &claim{arch: x.arch, than: plain, measure: x.measure, ratio: true, above: true, border: 0.1}
		v := newFinal(fast).verdict(c, "tiny", finding{diff: 0.8, low: 0.7, high: 0.9, seeds: 3})
		if want := "tiny, 2M tokens, 3 seeds" + x.want; v.Basis != want || v.Verdict != Holds {
			t.Errorf("%s of %s: %q, %s, want %q", x.measure, x.arch, v.Basis, v.Verdict, want)
		}
	}
}
