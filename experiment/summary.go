package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"antiphase/eval/report"
)

// rule describes how verdicts are reached.
const rule = "Differences over seeds and items with 95 % intervals. A claim holds when the whole interval lies on " +
	"its side, does not hold when the interval lies on the other side or, for losses, excludes an effect of the " +
	"published size, which is given with the source, and otherwise cannot be told here."

// words are the terms of an experiment's page.
var words = []report.Word{
	{Word: "transformer, diff, diff2",
		Says: "the plain Transformer; the Differential Transformer (DIFF), whose heads subtract one softmax map " +
			"from another; its second version (DIFF V2). They have the same number of parameters, to 1 %, unless the " +
			"page says otherwise."},
	{Word: "held-out loss, nats/token",
		Says: "mean of −ln p(next token) on text that was not trained on; lower is better, 1 nat is 1.44 bits"},
	{Word: "AR-Hit", Says: "the loss on tokens that complete a pair of tokens seen earlier in the same text, and " +
		"so could be recalled"},
	{Word: "needle N=4 R=2",
		Says: "4 numbers, each with a city as its key, are hidden in a text, and 2 of them are asked for"},
	{Word: "number beside its key",
		Says: "the answer gives the right number for the right city; “anywhere in the output” counts a number " +
			"wherever it stands"},
	{Word: "chance, copy",
		Says: "floors: what guessing earns, and what naming any of the hidden numbers earns without knowing which " +
			"key each belongs to"},
	{Word: "attention to the answer, noise",
		Says: "the share of attention on the tokens of the right answer, and on all other text except the " +
			"beginning of the sequence and the question; the mean over all heads"},
	{Word: "λ",
		Says: "how much of the second softmax map a differential head subtracts; λ_init is its value before training"},
	{Word: "context RMS",
		Says: "the size (root mean square) of a head's attention output relative to that of the values " +
			"it averages; claims compare the smallest of any head and position"},
	{Word: "outliers", Says: "the largest attention logit and hidden state of a sequence; large ones cost " +
		"precision in few bits"},
	{Word: "spikes",
		Says: "steps whose loss or gradient norm is far above those before them; the late gradient norm is " +
			"the mean over the last quarter of training"},
	{Word: "KL to exact",
		Says: "how far next-token probabilities move when attention logits are rounded to a few bits, " +
			"in nats per token; 0 is no difference"},
	{Word: "tokens to 90 %",
		Says: "training tokens after which a probe for two of four needles first gets 90 % of the numbers beside " +
			"their keys; – where no probe asked for two of four"},
	{Word: "seed", Says: "decides the initial weights and the order of the batches; another seed is another run " +
		"of the same experiment"},
}

// Summarize makes the page of an experiment from its rows alone.
func Summarize(rows []Row) *report.Page {
	f := newFinal(rows)
	p := &report.Page{Title: "Antiphase comparison", Evaluation: f.eval,
		Brief: map[string][]string{
			"lm":        {"loss", "ar_hit", "others", "bits_per_byte"},
			"needle":    {"bound", "constrained", "free"},
			"attention": {"answer", "noise"},
			"outliers":  {"logits_max", "hidden_max"},
			"samples":   {},
		},
		Training: f.training(),
		Experiment: &report.Experiment{Verdicts: f.verdicts(), Rule: rule + " " + f.says(), Curves: f.bundles(),
			Tables: f.tables(), Words: words}}
	if len(rows) > 0 {
		p.Title = "Comparison " + rows[0].Experiment
		p.Command = rows[0].Command
	}
	p.Experiment.Lead = f.lead()
	return p
}

// training is the training speed of each run.
func (f *final) training() []report.Training {
	var out []report.Training
	names := f.names()
	for _, r := range f.rows {
		if r.Measure == trainSpeed || r.Measure == sharedSpeed {
			out = append(out, report.Training{Model: names[r.Run], Tokens: r.Tokens, TokensPerSecond: r.Value,
				Shared: r.Measure == sharedSpeed})
		}
	}
	return out
}

// lead is one sentence: which claims hold and which do not.
func (f *final) lead() string {
	count := map[string]int{}
	for _, v := range f.verdicts() {
		count[v.Verdict]++
	}
	var sides []string
	for _, size := range f.sizes {
		for _, arch := range f.archs {
			if n := len(f.seeds(size, arch)); n > 0 {
				sides = append(sides, fmt.Sprintf("%s (%s)", f.side(size, arch), plural(n, "seed")))
			}
		}
	}
	return fmt.Sprintf("%s: of the claims that can be asked here %d hold, %d do not hold, %d cannot be told.%s",
		strings.Join(sides, ", "), count[Holds], count[HoldsNot], count[Unclear], f.warning())
}

// warning states what a reader must know first: that models are not of equal size, that there is one seed, or that runs
// diverged.
func (f *final) warning() (s string) {
	fewest, diverged := 0, 0
	for _, size := range f.sizes {
		for _, arch := range f.archs {
			if n := len(f.seeds(size, arch)); n > 0 && (fewest == 0 || n < fewest) {
				fewest = n
			}
			diverged += f.diverged(size, arch)
		}
	}
	for _, u := range unequal(f.allSized()) {
		s += " " + strings.ToUpper(u[:1]) + u[1:] + "."
	}
	if diverged > 0 {
		s += fmt.Sprintf(" %s diverged.", plural(diverged, "run"))
	}
	if fewest == 1 {
		s += " With one seed errors are over questions alone: they say nothing about another seed."
	}
	return s
}

// bundles are the figures over training.
func (f *final) bundles() []report.Bundle {
	var out []report.Bundle
	probe := f.probe()
	for _, c := range []struct{ measure, title, y, note string }{
		{probe, "Bound retrieval by training tokens", "share of numbers given for their own key",
			"Retrieval is learned in a phase change, at other tokens for every seed."},
		{"curve.valid_loss", "Held-out loss while training", "nats per token", ""},
		{"curve.grad_norm", "Gradient norm", "gradient norm", ""},
		{"curve.lambda", "λ, mean over layers", "λ", ""},
		{"probe.outliers.logits_max", "Largest attention logit", "logit", ""},
		{"probe.outliers.hidden_max", "Largest hidden state", "value", ""},
	} {
		if c.measure == "" {
			continue
		}
		if b, ok := f.bundle(c.measure); ok {
			b.ID, b.Title, b.Y, b.Note = strings.ReplaceAll(strings.Fields(c.measure)[0], ".",
				"-"), c.title, c.y, c.note
			if b.Floor != nil {
				b.Note += " Dashed: what naming any hidden number earns."
			}
			out = append(out, b)
		}
	}
	return out
}

func (f *final) bundle(measure string) (b report.Bundle, ok bool) {
	for i, size := range f.sizes {
		for k, arch := range f.archs {
			rows := f.values(size, arch, measure)
			s := report.BundleSide{Name: f.side(size, arch), Place: i*len(f.archs) + k}
			for _, seed := range slices.Sorted(maps.Keys(rows)) {
				r := rows[seed]
				s.Lines = append(s.Lines, r.Curve)
				if floor, there := r.Floors["copy"]; there &&
					floor < 1 { // a single needle has no floor
					b.Floor = &floor
				}
				b.Share = b.Share || len(r.Floors) > 0
			}
			if len(s.Lines) > 0 {
				b.Sides, ok = append(b.Sides, s), true
			}
		}
	}
	return b, ok
}

// tables are the tuning grid and the final numbers of every run.
func (f *final) tables() []report.Listing {
	var out []report.Listing
	if grid := f.tuning.grid(); len(grid.Rows) > 1+len(f.sizes)*len(f.archs) {
		out = append(out, grid)
	}
	runs := report.Listing{Title: "Runs compared",
		Rows: [][]string{{"run", "parameters", "tokens", "held-out loss while training", "tokens to 90 % retrieval",
			"gradient norm, late", "spikes"}},
		Note: "The held-out loss while training is the last of its curve, over rows of all sources in their " +
			"proportion; the scores' is that of the task lm, over whole documents."}
	several := len(builds(f.all)) > 1
	if several {
		runs.Rows[0] = append(runs.Rows[0], "commit")
	}
	for _, size := range f.sizes {
		for _, arch := range f.archs {
			for _, seed := range f.seeds(size, arch) {
				row := f.runRow(size, arch, seed)
				if several {
					row = append(row, ofRun(f.rows, size, arch, seed).build())
				}
				runs.Rows = append(runs.Rows, row)
			}
		}
	}
	return append(out, runs)
}

func (f *final) runRow(size, arch string, seed uint64) []string {
	get := func(measure string) *Row { return f.values(size, arch, measure)[seed] }
	text := func(measure, form string) string {
		if r := get(measure); r != nil {
			return fmt.Sprintf(form, r.Value)
		}
		return "–"
	}
	any := ofRun(f.rows, size, arch, seed)
	out := []string{any.Run, big(float64(any.Parameters)), big(float64(any.Tokens))}
	if r := get(Failed); r != nil {
		return append(out, fmt.Sprintf("diverged after %.0f of %d steps", r.Value, r.Steps), "–", "–", "–")
	}
	reach := "–"
	if r := get(probeOf90); r != nil {
		reach = reachedText(reached(r.Curve))
	}
	return append(out, text(heldOut, "%.4f"), reach, text("train.grad_norm_late", "%.3f"), text("train.spikes", "%.0f"))
}
