package experiment

import (
	"slices"
	"strings"
	"testing"
)

// A measured claim has one line in short, which names the experiments for it, against it and undecided; experiments
// with the same runs count once. A claim that no row measures has none.
func TestClaimInShort(t *testing.T) {
	loss := func(arch ...float64) []Row {
		return slices.Concat(seeded(plain, "lm.loss", 3, 3.1, 3.2), seeded(v1, "lm.loss", arch...))
	}
	few := slices.Concat(seeded(plain, "lm.loss", 3), seeded(v1, "lm.loss", 1))
	c := &claim{text: "it is so", source: "paper", arch: v1, than: plain, measure: "lm.loss", unit: "nats"}
	e := written(map[string][]Row{"a": loss(1, 1.1, 1.2), "b": loss(5, 5.1, 5.2), "c": few, "d": loss(2, 2.1, 2.2),
		"e": loss(2, 2.1, 2.2)})
	if ok := e.shortRow(c); !ok || e.String() !=
		"| it is so | [a](#a), [d](#d) | [b](#b) | [c](#c) |\n" {
		t.Errorf("%v: %q", ok, e.String())
	}
	e.Reset()
	c.measure = "lm.others"
	if ok := e.shortRow(c); ok || e.Len() > 0 {
		t.Errorf("without a row: %v, %q", ok, e.String())
	}
}

// Every claim of a class is in its table or counted after it.
func TestShortTables(t *testing.T) {
	rows := slices.Concat(seeded(plain, "lm.loss", 3, 3.1, 3.2), seeded(v1, "lm.loss", 1, 1.1, 1.2),
		seeded(v2, "lm.loss", 1, 1.1, 1.2))
	e := written(map[string][]Row{"small-text": rows})
	e.short()
	parts := strings.Split(e.String(), "| holds in | does not hold in | cannot be told in |\n|---|---|---|---|\n")
	if len(parts) != 1+len(classes) {
		t.Fatalf("%d tables", len(parts)-1)
	}
	for i, class := range classes {
		lines, unmeasured := 0, 0
		for _, c := range claims {
			switch {
			case c.of(class.source) && c.measure == "lm.loss" && slices.Contains(three, c.arch) &&
				slices.Contains(three, c.than):
				lines++
				if !strings.Contains(parts[i+1], "| "+c.text+" | [small-text](#small-text) |") && c.than == plain {
					t.Errorf("%s is not in %s", c.text, parts[i+1])
				}
			case c.of(class.source):
				unmeasured++
			}
		}
		if n := strings.Count(parts[i+1], "[small-text]"); n != lines || !strings.Contains(parts[i+1],
			"No row measures "+plural(unmeasured, "further claim")+"; ["+class.title+"](#"+anchor(class.title)+")") {
			t.Errorf("%s: %d lines, want %d, and %d claims after them:\n%s", class.title, n, lines,
				unmeasured, parts[i+1])
		}
	}
}

// The rules end with the experiments in which no architecture had two learning rates.
func TestUntunedExperiments(t *testing.T) {
	one := slices.Concat(seeded(plain, heldOut, 1, 2), seeded(v1, heldOut, 1, 2))
	two := slices.Concat(one, []Row{at(v1, 2, 1, heldOut, 9)})
	two[len(two)-1].Run = "diff-other"
	for _, c := range []struct {
		rows map[string][]Row
		want string
	}{
		{map[string][]Row{"a": two}, "\n"},
		{map[string][]Row{"a": two, "b": one}, "- [b](#b): one learning rate was tried,"},
		{map[string][]Row{"a": one, "b": one}, "- [a](#a), [b](#b): one learning rate was tried,"},
	} {
		e := written(c.rows)
		if e.untuned(); !strings.HasPrefix(e.String(), c.want) || !strings.HasSuffix(e.String(), "\n") {
			t.Errorf("%q, want %q", e.String(), c.want)
		}
	}
}
