package experiment

import (
	"slices"
	"strings"
	"testing"

	"antiphase/eval/report"
)

// written is an evidence document in progress, of named rows.
func written(byName map[string][]Row) *evidence {
	e := &evidence{finals: map[string]*final{}}
	for name, rows := range byName {
		e.finals[name] = newFinal(rows)
	}
	e.names = ordered(e.finals)
	return e
}

// A claim has a line for every experiment that measures it, and names itself in the first; one that nothing measures
// says why and how, or leads to the experiment that would.
func TestLinesOfAClaim(t *testing.T) {
	rows := slices.Concat(seeded(plain, "lm.loss", 3, 3.1, 3.2), seeded(v1, "lm.loss", 1, 1.1, 1.2))
	other := slices.Concat(seeded(plain, "lm.loss", 1, 1.1, 1.2), seeded(v1, "lm.loss", 3, 3.1, 3.2))
	c := &claim{text: "it is so", source: "paper", arch: v1, than: plain, measure: "lm.loss", unit: "nats"}
	e := written(map[string][]Row{"a": rows, "b": other})
	e.claim(c)
	want := "| it is so | paper | 1.100 against 3.100: −2.000 [−2.000, −2.000] nats | tiny, 2M tokens, 3 seeds | " +
		"**holds** | [a](#a) |\n| ″ | ″ | 3.100 against 1.100: +2.000 [+2.000, +2.000] nats | tiny, 2M tokens, 3 " +
		"seeds | **does not hold** | [b](#b) |\n"
	if got := e.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for want, c := range map[string]*claim{
		"| x | V2 | – | no row measures it yet | **not run** | [small-text](#small-text) |\n": {text: "x", source: "V2",
			measure: "m", arch: v1, than: plain},
		"| x | V2 | – | no row measures it yet | **not run** | [v1-study](#v1-study) |\n": {text: "x", source: "V2",
			measure: "m", arch: v1, than: plain, cell: "v1-study"},
		"| x | V2 | – | too large | **cannot be told here** | `antiphase y` |\n": {text: "x", source: "V2",
			why: "too large", command: "antiphase y"},
	} {
		e := written(map[string][]Row{"a": rows})
		if e.claim(c); e.String() != want {
			t.Errorf("%s\nwant\n%s", e.String(), want)
		}
	}
}

// The section of an experiment has its command, then those of other machines, where it was measured, how rates were
// chosen, and its tables; a code block cannot be ended by its content. Planned experiments without rows have their
// commands.
func TestSectionOfAnExperiment(t *testing.T) {
	rows := slices.Concat(seeded(plain, "lm.loss", 3, 3.1, 3.2), seeded(v1, "lm.loss", 1, 1.1, 1.2))
	for i := range rows {
		rows[i].Machine, rows[i].Commit = "a <machine>", "c0ffee"
	}
	slow := at(plain, 2, 1, heldOut, 9) // another rate, tried elsewhere
	slow.Run, slow.Machine, slow.Commit, slow.Command = "transformer-slow", "another", "decade",
		"antiphase compare --lr 2"
	rows = append(rows, slow)
	e := written(map[string][]Row{"small-text": rows})
	e.experiment("small-text", rows)
	got := e.String()
	at := -1
	for _, want := range []string{"## small-text\n\n", "Of the plan: incomplete, 7 of 15 runs: ",
		"Finished so far: transformer, diff: 3 seeds (1, 2, 3) at lr 1; 2M tokens a run.\n\n" +
			"```sh\nantiphase compare transformer\n```\n\nSome of the runs come from:\n\n```sh\n" +
			"antiphase compare diff\n```\n\nSome of the runs come from:\n\n```sh\nantiphase compare --lr 2\n```\n\n" +
			"a &lt;machine>; commit c0ffee. another; commit decade (only learning rates that were not chosen). The " +
			"table of the runs\ncompared has the commit of each. The learning rate of each architecture is the one " +
			"with the best held-out loss;",
		"Runs compared. The held-out loss", "| run | parameters | tokens | held-out loss while training |",
		"| spikes | commit |\n|---|---|---|---|---|---|---|---|\n", "| transformer-s1 | 0 | 2M | 1.0000 |",
		"| diff-s3 | 0 | 2M | 1.0000 | – | – | – | c0ffee |"} {
		i := strings.Index(got, want)
		if i < 0 || i < at {
			t.Errorf("%q is missing or not in its place in\n%s", want, got)
			continue
		}
		at = i
	}
	e = written(nil)
	if e.code("x", "a```b\n"); e.String() != "```x\na'''b\n```\n\n" {
		t.Errorf("%q", e.String())
	}
	e = written(map[string][]Row{"small-text": rows})
	e.empty()
	for _, c := range cells {
		if there := strings.Contains(e.String(), "## "+c.name+"\n\nNot run. Its command,") &&
			strings.Contains(e.String(), c.command+"\n"); there != (c.name != "small-text") {
			t.Errorf("the command of %s is there: %v", c.name, there)
		}
	}
	e = written(map[string][]Row{"mine": rows})
	e.cells()
	lines := strings.Split(strings.TrimSpace(e.String()), "\n")
	if n := len(cells); len(lines) != 2+2+n+1 ||
		!strings.HasSuffix(lines[4], ": 3 architectures, 3 learning rates, 3 seeds | not run | missing |") ||
		lines[4+n] !=
			"| [mine](#mine) | not planned | transformer, diff: 3 seeds (1, 2, 3) at lr 1; 2M tokens a run | – |" {
		t.Errorf("%s", e.String())
	}
}

// Every figure over training has the title and the axis of its own measure.
func TestTitlesOfBundles(t *testing.T) {
	want := map[string][2]string{
		"probe.needle.bound N=4 R=2": {"Bound retrieval by training tokens",
			"share of numbers given for their own key"},
		"curve.valid_loss": {"Held-out loss while training", "nats per token"},
		"curve.grad_norm":  {"Gradient norm", "gradient norm"}, "curve.lambda": {"λ, mean over layers", "λ"},
		"probe.outliers.logits_max": {"Largest attention logit", "logit"},
		"probe.outliers.hidden_max": {"Largest hidden state", "value"},
	}
	var rows []Row
	for measure := range want {
		for _, r := range seeded(plain, measure, 1) {
			r.Curve = [][2]float64{{1, 2}}
			rows = append(rows, r)
		}
	}
	list := newFinal(rows).bundles()
	if len(list) != len(want) {
		t.Errorf("%d figures", len(list))
	}
	for measure, w := range want {
		id := strings.ReplaceAll(strings.Fields(measure)[0], ".", "-")
		i := slices.IndexFunc(list, func(b report.Bundle) bool { return b.ID == id })
		if i < 0 || list[i].Title != w[0] || list[i].Y != w[1] || len(list[i].Sides) != 1 || list[i].Share {
			t.Errorf("%s: %+v", measure, list)
		}
	}
}
