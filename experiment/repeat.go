package experiment

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"antiphase/eval"
	"antiphase/eval/report"
	"antiphase/internal/vfs"
)

// Repeat is a measure of one plan over many seeds, which separates a difference that repeats from one due to the seed.
type Repeat struct {
	Plan    string               `json:"plan"`
	Steps   int                  `json:"steps"`
	Measure string               `json:"measure"`
	Better  eval.Better          `json:"better"`
	Seeds   []uint64             `json:"seeds"`
	Values  map[string][]float64 `json:"values"` // architecture → value of each seed
	Machine string               `json:"machine,omitempty"`
	Commit  string               `json:"commit,omitempty"`
}

// phrases describe what it means that one architecture is better than another in a measure, and name the measure in
// tables; shares are printed in %.
var phrases = []struct {
	measure, says, label string
	share                bool
}{
	{"lm.loss", "has a lower held-out loss than", "held-out loss", false},
	{"lm.ar_hit", "predicts tokens that can be recalled better than", "loss on recallable tokens", false},
	{"needle.bound N=1 R=1", "gives a hidden number more often than", "one needle, %", true},
	{"needle.bound N=4 R=2", "gives two of four hidden numbers for their own keys more often than",
		"two of four needles, %", true},
	{"attention.answer N=4 R=1", "attends more to the answer than", "attention to the answer, %", true},
	{"attention.noise N=4 R=1", "spends less attention on noise than", "attention noise, %", true},
	{"outliers.logits_max", "has smaller attention logits than", "largest attention logit", false},
	{"outliers.hidden_max", "has smaller hidden states than", "largest hidden state", false},
}

// Names are the architectures as named in sentences.
var Names = map[string]string{"transformer": "the Transformer", "diff": "DIFF", "diff2": "DIFF V2"}

// Repeats collects the measures of an experiment of one size and learning rate by seed; a seed counts once all
// architectures have it.
func Repeats(plan string, rows []Row) []Repeat {
	f := newFinal(rows)
	var out []Repeat
	if len(f.rows) == 0 {
		return nil
	}
	for _, p := range phrases {
		x := Repeat{Plan: plan, Measure: p.measure, Values: map[string][]float64{}}
		sides := map[string]map[uint64]*Row{}
		for _, arch := range f.archs {
			sides[arch] = f.values(f.sizes[0], arch, p.measure)
		}
		for _, seed := range f.seeds(f.sizes[0], f.archs[0]) {
			if slices.ContainsFunc(f.archs, func(a string) bool { return sides[a][seed] == nil }) {
				continue
			}
			x.Seeds = append(x.Seeds, seed)
			for _, arch := range f.archs {
				r := sides[arch][seed]
				x.Values[arch] = append(x.Values[arch], short(r.Value))
				x.Steps, x.Better, x.Machine, x.Commit = r.Steps, r.Better, r.Machine, r.Commit
			}
		}
		if len(x.Seeds) > 0 {
			out = append(out, x)
		}
	}
	return out
}

// Line is one statement of a verdict and how often it held.
type Line struct {
	Text     string
	Measure  string
	Good     string // the architecture that is better
	Bad      string
	Held, Of int
}

// Lines are the statements of a list of repeats, each in the direction that held more often.
func Lines(list []Repeat, archs []string) []Line {
	var out []Line
	for _, p := range phrases {
		i := slices.IndexFunc(list, func(x Repeat) bool { return x.Measure == p.measure })
		if i < 0 {
			continue
		}
		for a := range archs {
			for b := a + 1; b < len(archs); b++ {
				out = append(out, list[i].line(p.says, archs[a], archs[b]))
			}
		}
	}
	return out
}

func (x *Repeat) line(says, a, b string) Line {
	up, down := 0, 0
	for i := range x.Seeds {
		d := x.Values[a][i] - x.Values[b][i]
		if x.Better == eval.Lower {
			d = -d
		}
		switch {
		case d > 0:
			up++
		case d < 0:
			down++
		}
	}
	l := Line{Measure: x.Measure, Good: a, Bad: b, Held: up, Of: len(x.Seeds)}
	if down > up {
		l.Good, l.Bad, l.Held = b, a, down
	}
	l.Text = fmt.Sprintf("%s %s %s", Names[l.Good], says, Names[l.Bad])
	return l
}

// enoughSeeds is the number of seeds a speedrun's verdict needs.
const enoughSeeds = 10

// Repeated reports whether the line held often enough to be part of a verdict: in 9 of 10 seeds, of at least 10.
func (l *Line) Repeated() bool { return l.Of >= enoughSeeds && 10*l.Held >= 9*l.Of }

// ReadRepeats reads the repeats of a plan, one JSON object per line.
func ReadRepeats(b []byte, plan string, steps int) ([]Repeat, error) {
	var out []Repeat
	in := bufio.NewScanner(bytes.NewReader(b))
	in.Buffer(nil, 1<<20)
	for n := 1; in.Scan(); n++ {
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		var x Repeat
		if err := json.Unmarshal(in.Bytes(), &x); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if x.Plan == plan && x.Steps == steps {
			out = append(out, x)
		}
	}
	return out, in.Err()
}

// WriteRepeats writes repeats to path, one JSON object per line.
func WriteRepeats(path string, list []Repeat) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for i := range list {
		if err := e.Encode(&list[i]); err != nil {
			return err
		}
	}
	return vfs.WriteFile(vfs.OS{}, path, b.Bytes())
}

// Repeated is a speedrun's verdict: a sentence, and a line for every difference that repeats over seeds, with this
// run's own figures. If no seeds were measured there is no verdict, and the sentence says so.
func Repeated(known []Repeat, rows []Row, archs []string) (lead string, out []report.Verdict) {
	here := Repeats("", rows)
	own := Lines(here, archs)
	shown := 0
	for _, l := range Lines(known, archs) {
		if !l.Repeated() {
			continue
		}
		v := report.Verdict{Claim: l.Text, Source: fmt.Sprintf("held in %d of %d seeds", l.Held, l.Of),
			Verdict: "repeats", Basis: "this run: seen"}
		i := slices.IndexFunc(own, func(o Line) bool { return o.Text == l.Text })
		if i >= 0 && own[i].Held > 0 {
			shown++
		} else {
			v.Basis = "this run: not seen"
		}
		v.Figure, v.Basis = figures(here, &l), v.Basis+"; over seeds "+spreads(known, &l)
		out = append(out, v)
	}
	if len(known) == 0 {
		return "Three models of equal size, trained on the same batches from the same seed. Which differences " +
			"repeat over seeds was not measured for this plan and this text, so here are figures and no verdict: " +
			"with one seed errors are over questions alone.", nil
	}
	if n := len(known[0].Seeds); n < enoughSeeds {
		return fmt.Sprintf(
			"Three models of equal size, trained on the same batches from the same seed. This plan was measured "+
				"over %s, a verdict needs %d: here are figures alone.", plural(n, "seed"), enoughSeeds), nil
	}
	return fmt.Sprintf("Of %s that repeat over %d seeds of this plan, this run shows %d. Whatever else differs in the "+
		"table is this seed's own.", plural(len(out), "difference"), len(known[0].Seeds), shown), out
}

// figures are a line's two numbers of one run.
func figures(here []Repeat, l *Line) string {
	i := slices.IndexFunc(here, func(x Repeat) bool { return x.Measure == l.Measure })
	if i < 0 || len(here[i].Seeds) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3g against %.3g", here[i].Values[l.Good][0], here[i].Values[l.Bad][0])
}

// spreads are the ranges of a line's two sides over the seeds it was counted on.
func spreads(known []Repeat, l *Line) string {
	x := known[slices.IndexFunc(known, func(x Repeat) bool { return x.Measure == l.Measure })]
	return fmt.Sprintf("%.3g to %.3g against %.3g to %.3g", slices.Min(x.Values[l.Good]), slices.Max(x.Values[l.Good]),
		slices.Min(x.Values[l.Bad]), slices.Max(x.Values[l.Bad]))
}
