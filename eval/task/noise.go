package task

import (
	"context"
	"fmt"
	"slices"

	"antiphase/eval"
)

// Robustness to noise in the input, the claim behind the method's name: another task with typos, dropped or swapped
// words, and with irrelevant, contradicting or adversarial passages in its prompts, at growing doses. A sample is a
// question asked at every dose of every kind, so the area under each curve is a mean over questions: it has an
// interval, and models are compared on it question by question.
//
// Noise depends only on the seed and the prompt: it is the same for every model, batch and order, and a larger dose
// includes the changes of a smaller one. At dose 0 prompts are those of the plain task.
func init() {
	measures := []eval.Measure{
		{Name: "area", Better: eval.Higher, Label: "score over all doses, mean of all kinds of noise, %"},
		{Name: "plain", Better: eval.Higher, Label: "score without noise, %"},
	}
	for _, kind := range noiseKinds {
		measures = append(measures, eval.Measure{Name: "area_" + kind.name, Better: eval.Higher,
			Label: "score over all doses: " + kind.label + ", %"})
	}
	register(36, eval.Task{
		Name: "noise", Version: 2, Shots: -1,
		Doc: "another task with typos, lost and swapped words, and passages that distract, contradict or " +
			"mislead, by dose",
		Measures: measures,
		Settings: []eval.Setting{
			{Key: "task", Default: "needle", Doc: "the task to run: any with right answers"},
			{Key: "metric", Default: "", Doc: "the task's measure; empty: its headline"},
			{Key: "with", Default: "", Doc: "the task's settings, as KEY=VALUE;KEY=VALUE"},
			{Key: "kinds", Default: noiseNames(), Rule: eval.OneOf(noiseNames()...), Doc: "kinds of noise"},
			{Key: "words", Default: []float64{0.1, 0.2, 0.4}, Rule: eval.Between(0, 1),
				Doc: "doses of typos, drop and swap: shares of words changed; 0 is always measured"},
			{Key: "passages", Default: []int{1, 2, 3}, Rule: eval.AtLeast(1),
				Doc: "doses of the other kinds: passages put in"},
			{Key: "bytes", Default: 0, Rule: eval.AtLeast(0),
				Doc: "approximate length of an irrelevant passage; 0: a sixteenth of the context, 40 to 400"},
			{Key: "samples", Default: 40, Rule: eval.AtLeast(1), Doc: "questions of the task"},
		},
		Valid:   validNoise,
		Prepare: prepareNoise,
	})
}

// noiseKind is one way to perturb a prompt.
type noiseKind struct {
	name, label string
	word        func(h uint64, word string) string                       // of kinds that change words
	passage     func(x *noisePassages, item, i int, wrong string) string // of kinds that add passages
}

// noiseKinds lists all of them. swap exchanges words and is implemented separately.
var noiseKinds = []noiseKind{
	{name: "typos", label: "typos", word: typo},
	{name: "drop", label: "words dropped", word: func(uint64, string) string { return "" }},
	{name: "swap", label: "words swapped"},
	{name: "irrelevant", label: "irrelevant passages", passage: irrelevantPassage},
	{name: "contradicting", label: "contradicting passages", passage: contradictingPassage},
	{name: "adversarial", label: "misleading passages", passage: adversarialPassage},
}

func noiseNames() (out []string) {
	for _, k := range noiseKinds {
		out = append(out, k.name)
	}
	return out
}

// NoiseDetail is the data of the figures of the task noise.
type NoiseDetail struct {
	Task    string       `json:"task"`
	Metric  string       `json:"metric"`
	Shots   int          `json:"shots"`
	StandIn bool         `json:"stand_in,omitempty"`
	Curves  []NoiseCurve `json:"curves"`
}

// NoiseCurve is the score by dose, dose 0 first, and its mean over all doses.
type NoiseCurve struct {
	Kind   string      `json:"kind"`
	Label  string      `json:"label"`
	Unit   string      `json:"unit"` // of a dose
	Doses  []float64   `json:"doses"`
	Scores []eval.Mean `json:"scores"`
	Area   eval.Mean   `json:"area"`
}

// noise is a prepared task with all its perturbations.
type noise struct {
	inner    *eval.Prepared
	metric   eval.Measure
	kinds    []noiseKind
	doses    map[string][]float64 // of each kind, from 0
	passages *noisePassages
	seed     uint64
	n        int
}

func prepareNoise(ctx context.Context, p *eval.Plan) (*eval.Job, error) {
	x := &noise{doses: map[string][]float64{}, seed: p.Seed}
	room, err := x.read(p)
	if err != nil {
		return nil, err
	}
	a, err := askedInner(p)
	if err != nil {
		return nil, err
	}
	a.context -= room
	if x.inner, x.metric, err = inner(ctx, p, a); err != nil {
		return nil, err
	}
	if len(x.inner.Gold) != len(x.inner.IDs) {
		return nil, wrongInner(x.inner.Task.Name, x.metric)
	}
	x.n = p.Limited(min(len(x.inner.IDs), max(p.Int("samples"), 1)))
	if x.passages, err = newNoisePassages(ctx, p, x.inner.Gold); err != nil {
		return nil, err
	}
	hash, err := (&variants{inner: x.inner}).hash()
	if err != nil {
		return nil, err
	}
	j := &eval.Job{Chunk: 16, IDs: x.inner.IDs[:x.n], Gold: x.inner.Gold[:x.n], Floors: eval.Floors{},
		Config: map[string]any{
			"source": x.inner.Config["source"], "inner_shots": max(x.inner.Plan.Shots, 0),
			"inner_context": p.Context - room, "questions_hash": hash,
			"passages_source": x.passages.source}}
	for floor, v := range x.inner.Floors[x.metric.Name] {
		j.Floors.Set("area", floor, v)
		j.Floors.Set("plain", floor, v)
		for _, k := range x.kinds {
			j.Floors.Set("area_"+k.name, floor, v)
		}
	}
	j.Ask = x.ask
	d := NoiseDetail{Task: x.inner.Task.Name, Metric: x.metric.Name, Shots: max(x.inner.Plan.Shots, 0),
		StandIn: x.inner.Config["source"] == eval.StandIn}
	j.Finish = func(r *eval.Result) error { return x.finish(r, d) }
	return j, nil
}

// validNoise rejects doses that do not grow, and settings that the other task rejects.
func validNoise(p *eval.Plan) error {
	if d := p.Floats("words"); !slices.IsSorted(d) || d[0] <= 0 {
		return eval.BadSetting("words has %v, must be positive and growing; 0 is always measured", d)
	}
	if d := p.Ints("passages"); !slices.IsSorted(d) {
		return eval.BadSetting("passages has %v, must be growing", d)
	}
	a, err := askedInner(p)
	if err != nil {
		return err
	}
	t, _, metric, err := a.find(p)
	if err == nil && metric.Better != eval.Higher {
		err = wrongInner(t.Name, metric)
	}
	return err
}

// wrongInner is the error of a task that noise cannot be measured by.
func wrongInner(name string, m eval.Measure) error {
	return eval.BadSetting("task is %s, measured by %s; want one with right answers, measured by how many are right",
		name, m.Name)
}

// read takes kinds and doses from the settings, and returns how many tokens the largest dose can add.
func (x *noise) read(p *eval.Plan) (room int, err error) {
	words, passages := append([]float64{0}, p.Floats("words")...), []float64{0}
	for _, n := range p.Ints("passages") {
		passages = append(passages, float64(n))
	}
	for _, name := range p.Texts("kinds") {
		k := noiseKinds[slices.IndexFunc(noiseKinds, func(k noiseKind) bool { return k.name == name })]
		x.kinds = append(x.kinds, k)
		x.doses[k.name] = words
		if k.passage != nil {
			x.doses[k.name] = passages
		}
		d := x.doses[k.name]
		// A typo adds one or two tokens per word, and few words are one token.
		more := int(d[len(d)-1] * float64(p.Context) / 4)
		if k.passage != nil {
			more = int(d[len(d)-1]) * (p.Count(k.passage(sampleOf(passageBytes(p)), 0, 0, "12345")) + 2)
		}
		room = max(room, more)
	}
	if room > p.Context*2/3 {
		return 0, eval.BadSetting(
			"the largest dose takes about %d tokens of a context of %d; take smaller doses or fewer bytes",
			room, p.Context)
	}
	return room, nil
}

// ask asks each question at every dose.
func (x *noise) ask(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
	plain, err := x.values(ctx, lm, which)
	if err != nil {
		return nil, err
	}
	out := make([]eval.Answer, len(which))
	for i := range out {
		out[i].Values = map[string]float64{"plain": plain[i]}
	}
	for _, k := range x.kinds {
		areas := make([]float64, len(which))
		before := plain
		doses := x.doses[k.name]
		for d, dose := range doses[1:] {
			now, err := x.values(ctx, &noisy{LM: lm, noise: x, kind: k, dose: dose, which: which}, which)
			if err != nil {
				return nil, err
			}
			for i := range which {
				out[i].Values[atDose(k.name, dose)] = now[i]
				areas[i] += (before[i] + now[i]) / 2 * (dose - doses[d]) / doses[len(doses)-1]
			}
			before = now
		}
		for i := range which {
			out[i].Values["area_"+k.name] = areas[i]
			out[i].Values["area"] += areas[i] / float64(len(x.kinds))
		}
	}
	return out, nil
}

func atDose(kind string, dose float64) string { return fmt.Sprintf("%s@%g", kind, dose) }

// values are the inner task's scores of some questions.
func (x *noise) values(ctx context.Context, lm eval.LM, which []int) ([]float64, error) {
	got, err := x.inner.Ask(ctx, lm, which)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(got))
	for i := range got {
		v, ok := got[i].Values[x.metric.Name]
		if !ok {
			return nil, fmt.Errorf("%s gave no %s", x.inner.Task.Name, x.metric.Name)
		}
		out[i] = v
	}
	return out, nil
}

// finish adds the curves.
func (x *noise) finish(r *eval.Result, d NoiseDetail) error {
	for _, k := range x.kinds {
		c := NoiseCurve{Kind: k.name, Label: k.label, Unit: "share of words", Doses: x.doses[k.name],
			Area: eval.MeanOf(r.Answers, "area_"+k.name)}
		if k.passage != nil {
			c.Unit = "passages"
		}
		for i, dose := range c.Doses {
			name := "plain"
			if i > 0 {
				name = atDose(k.name, dose)
			}
			c.Scores = append(c.Scores, eval.MeanOf(r.Answers, name))
		}
		d.Curves = append(d.Curves, c)
	}
	return r.SetDetail(d)
}
