package experiment

import (
	"bytes"
	"strings"
	"testing"
)

// A comparison of models that are not of equal size says so with both counts wherever it is shown, and gives no
// verdict.
func TestUnequalParameters(t *testing.T) {
	m := made{name: "160m-text", size: "160m", sides: three, better: []string{v1, v2}, rates: 1, seeds: 3}
	rows := m.rows()
	for i := range rows {
		if rows[i].Arch == v1 {
			rows[i].Parameters = 1_200_000
		} else if rows[i].Arch == v2 {
			rows[i].Parameters = 1_009_000 // less than 1 % more is equal
		}
	}
	const says = "nequal parameters: diff has 1200000, transformer 1000000 (+20.0 %)"
	p := Summarize(rows)
	var page bytes.Buffer
	if err := p.HTML(&page); err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"lead": p.Experiment.Lead, "table": p.Table(false),
		"page": page.String()} {
		text = strings.ReplaceAll(text, "&#43;", "+")
		if !strings.Contains(text, says) || where != "page" && strings.Contains(text, "1009000") {
			t.Errorf("the %s does not say %q", where, says)
		}
	}
	seen := map[string]int{}
	for _, v := range p.Experiment.Verdicts {
		flagged := strings.Contains(v.Basis, says)
		against := strings.Contains(v.Basis, "nequal parameters: diff has 1200000, diff2 1009000 (+18.9 %)") ||
			strings.Contains(v.Basis, "nequal parameters: diff2 has 1009000, diff 1200000 (−15.9 %)")
		if (flagged || against) && v.Verdict != Unclear {
			t.Errorf("%s is %q: %s", v.Claim, v.Verdict, v.Basis)
		}
		seen[v.Verdict]++
	}
	if seen[Unclear] < 10 || seen[Holds] < 10 {
		t.Errorf("verdicts: %v", seen)
	}
}

// A grid tells which of its sides are not of equal size before anything is trained, and rows keep it.
func TestUnequalGrid(t *testing.T) {
	s := nanoSpec(8)
	s.Variants = []Variant{"wide diff model.ffn=192"}
	runs, err := s.Grid(nil)
	if err != nil {
		t.Fatal(err)
	}
	list := Unequal(runs)
	if len(list) != 1 || !strings.Contains(list[0], "nano wide has ") ||
		!strings.Contains(list[0], ", nano transformer ") {
		t.Errorf("%q", list)
	}
	for i := range runs {
		if got := s.unequal(&runs[i]); (got != "") != (runs[i].Arch == "wide") || got != "" && got != list[0] {
			t.Errorf("%s: %q", runs[i].Name(), got)
		}
	}
}

// Models of up to one percent more or fewer parameters are equal, and none beyond; one without a count is not compared.
func TestEqualWithinAPercent(t *testing.T) {
	of := func(n int) sized { return sized{name: "a", parameters: n} }
	for n, equal := range map[int]bool{1_000_000: true, 1_009_999: true, 1_010_001: false, 990_001: true,
		989_999:   false,
		1_011_000: false, 1_050_000: false, 1_099_000: false, 950_000: false, 2_000_000: false, 0: true} {
		if got := of(n).differs(of(1_000_000)); (got == "") != equal {
			t.Errorf("%d against 1000000: %q", n, got)
		}
	}
	if got := of(5).differs(of(0)); got != "" {
		t.Errorf("against none: %q", got)
	}
}
