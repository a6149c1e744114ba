package task

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"antiphase/data"
	"antiphase/device/cpu"
	"antiphase/eval"
)

// asked notes every prompt of another model.
type asked struct {
	eval.LM
	sync.Mutex
	prompts []string
}

func (a *asked) note(s string) {
	a.Lock()
	a.prompts = append(a.prompts, s)
	a.Unlock()
}

func (a *asked) Loglikelihood(ctx context.Context, reqs []eval.Continuation) ([]eval.Score, error) {
	for _, r := range reqs {
		a.note(r.Context + "\x00" + r.Text)
	}
	return a.LM.Loglikelihood(ctx, reqs)
}

func (a *asked) GenerateUntil(ctx context.Context, reqs []eval.Generation) ([]string, error) {
	for _, r := range reqs {
		a.note(r.Prompt)
	}
	return a.LM.GenerateUntil(ctx, reqs)
}

func (a *asked) Choose(ctx context.Context, reqs []eval.Choice) ([]int, error) {
	for _, r := range reqs {
		a.note(r.Prompt + "\x00" + strings.Join(r.Options, "\x00"))
	}
	return eval.Choose(ctx, a.LM, reqs)
}

// noiseable are the tasks that noise can disturb: those with right answers.
func noiseable(t *testing.T) (out []eval.Task) {
	for _, task := range All() {
		if task.Inside || task.Slow || task.Name == "noise" || task.Measures[0].Better != eval.Higher {
			continue
		}
		if j := prepared(t, &task, small(&task), 2048); len(j.Gold) == len(j.IDs) {
			out = append(out, task)
		}
	}
	return out
}

// noiseWith are settings that make some tasks short.
var noiseWith = map[string]string{"icl": "items=3", "svamp": "max_tokens=6", "needle": "lengths=330"}

func innerOf(task *eval.Task) map[string]string {
	set := map[string]string{"noise.task": task.Name, "noise.samples": "3"}
	for prefix, with := range noiseWith {
		if strings.HasPrefix(task.Name, prefix) {
			set["noise.with"] = with
		}
	}
	return set
}

// At dose 0 every prompt is the plain task's, byte for byte; other doses change it.
func TestNoiseOfNothing(t *testing.T) {
	tasks := noiseable(t)
	if len(tasks) < 20 {
		t.Fatalf("%d tasks can be disturbed", len(tasks))
	}
	changed := map[string]int{}
	for _, task := range tasks {
		j := prepared(t, &task, small(&task), 2048)
		x := &noisePassages{gold: j.Gold, text: data.Prose, bytes: 60, seed: 3}
		for i, g := range j.Gold[:min(3, len(j.Gold))] {
			for _, k := range noiseKinds {
				at := func(dose float64) string {
					if k.passage != nil {
						return x.put(g.Context, &k, i, int(4*dose))
					}
					return noisyWords(g.Context, &k, dose, 3)
				}
				if at(0) != g.Context {
					t.Errorf("%s: %s of dose 0 changes the prompt", task.Name, k.name)
				}
				if at(1) != g.Context {
					changed[k.name]++
				}
				if end := asking(g.Context); !strings.HasSuffix(at(1), g.Context[end:]) {
					t.Errorf("%s: %s changes the question", task.Name, k.name)
				}
			}
		}
	}
	for _, k := range noiseKinds {
		if changed[k.name] < 2*len(tasks) {
			t.Errorf("%s of the largest dose changes %d prompts of %d tasks", k.name, changed[k.name], len(tasks))
		}
	}
}

// On a real model the undisturbed scores are the plain twin's, bit for bit, whatever the batch; and every model gets
// the same prompts.
func TestNoisePlainTwin(t *testing.T) {
	for _, name := range []string{"boolq", "needle", "icl_trec", "svamp", "lambada_openai"} {
		task := lookup(t, name)
		opt := eval.Options{Seed: 4, Shots: 0, Set: innerOf(task)}
		opt.Set["noise.kinds"], opt.Set["noise.words"], opt.Set["noise.passages"] = "typos,adversarial", "0.3", "1"
		var before []string
		for i, arch := range []string{"transformer", "diff"} {
			d := cpu.New(cpu.Options{Threads: 2})
			s := subject(t, d, arch, 500)
			s.Batch = 1 + 4*i
			lm := &asked{LM: s}
			r := run(t, *lookup(t, "noise"), opt, modelOf("m", lm, 500))["m"]
			slices.Sort(lm.prompts)
			if i > 0 && !slices.Equal(lm.prompts, before) {
				t.Errorf("%s: another model gets other prompts", name)
			}
			before = lm.prompts
			plain := opt.Within(r.Context)
			plain.Set = map[string]string{}
			if key, value, ok := strings.Cut(opt.Set["noise.with"], "="); ok {
				plain.Set[name+"."+key] = value
			}
			context := int(r.Config["inner_context"].(int))
			twin := run(t, *task, plain, modelOf("m", s, context))["m"]
			s.Close()
			d.Close()
			for k, a := range r.Answers {
				want := twin.Answers[k]
				if a.ID != want.ID ||
					math.Float64bits(a.Values["plain"]) != math.Float64bits(want.Values[task.Measures[0].Name]) {
					t.Errorf("%s of %s: sample %s has %v, its plain twin %v", name, arch, a.ID,
						a.Values["plain"], want.Values)
				}
			}
		}
	}
}

// passageReader answers needles from one passage of the prompt: the one that the task made, or the first.
type passageReader struct {
	knower
	first bool
}

func (p *passageReader) GenerateUntil(_ context.Context, reqs []eval.Generation) ([]string, error) {
	out := make([]string, len(reqs))
	for i, r := range reqs {
		city := r.Prompt[strings.LastIndexByte(r.Prompt, ' ')+1:]
		for k, passage := range strings.Split(r.Prompt, "\n\n") {
			if strings.HasPrefix(passage, "There are magic codes hidden") && (k == 0 || !p.first) {
				_, after, _ := strings.Cut(passage, "The magic code is "+city+" ")
				out[i] = " " + after[:min(2, len(after))] + "."
			}
		}
	}
	return out, nil
}

func (p *passageReader) Choose(_ context.Context, reqs []eval.Choice) ([]int, error) {
	return make([]int, len(reqs)), nil
}

// A reader of the right passage alone is flat under passages of every kind; one that reads the first passage finds the
// right one there in 1 of k+1 cases where k were put in.
func TestNoiseReaders(t *testing.T) {
	opt := eval.Options{Seed: 2, Shots: -1,
		Set: map[string]string{"noise.kinds": "irrelevant,contradicting,adversarial", "noise.samples": "250",
			"noise.with": "needles=1;queries=1;samples=50;lengths=200", "noise.passages": "1,2,4,9"}}
	right := answer(t, lookup(t, "noise"), opt, &passageReader{}, 2048)
	first := answer(t, lookup(t, "noise"), opt, &passageReader{first: true}, 2048)
	for _, c := range detail[NoiseDetail](t, right).Curves {
		for i, m := range c.Scores {
			if m.Value != 1 || m.N != 250 {
				t.Errorf("%s: a reader of the right passage scores %v of %d at dose %g", c.Kind, m.Value,
					m.N, c.Doses[i])
			}
		}
		if c.Area.Value != 1 {
			t.Errorf("%s: the area is %v", c.Kind, c.Area.Value)
		}
	}
	for _, c := range detail[NoiseDetail](t, first).Curves {
		area := 0.0
		for i, m := range c.Scores {
			want := 1 / (c.Doses[i] + 1)
			if d := math.Abs(m.Value - want); d > 4*math.Sqrt(want*(1-want)/float64(m.N)) {
				t.Errorf("%s: a reader of the first passage scores %.3f at dose %g, calculated %.3f", c.Kind, m.Value,
					c.Doses[i], want)
			}
			if i > 0 {
				area += (c.Scores[i-1].Value + m.Value) / 2 * (c.Doses[i] - c.Doses[i-1]) / 9
			}
		}
		if !near(c.Area.Value, area, 1e-12) || c.Area.StdErr <= 0 {
			t.Errorf("%s: the area is %+v, of the curve's points %g", c.Kind, c.Area, area)
		}
	}
	area, _ := first.Metric("area")
	if area.Low >= area.Value || area.High <= area.Value || area.Floors["chance"] == 0 {
		t.Errorf("the area has no interval or floor: %+v", area)
	}
}

// Words change in the dose's proportion; what a dose changes a larger one changes as well, and texts that begin alike
// stay alike.
func TestNoisyWords(t *testing.T) {
	var b strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&b, "word%s ", strings.Repeat("a", i%7))
	}
	text := b.String() + "77 x7\nquestion here?"
	kind := func(name string) *noiseKind {
		return &noiseKinds[slices.IndexFunc(noiseKinds, func(k noiseKind) bool { return k.name == name })]
	}
	words := func(s string) []string { return strings.Fields(s) }
	before := map[int]bool{}
	for _, dose := range []float64{0.05, 0.2, 0.6} {
		got := words(noisyWords(text, kind("typos"), dose, 9))
		hits := map[int]bool{}
		for i, w := range words(text) {
			if got[i] != w {
				hits[i] = true
			}
		}
		// A slip may leave a word as it was: equal letters exchanged, or a letter without neighbours.
		if share := float64(len(hits)) / 4000; share > dose+0.03 || share < 0.7*dose {
			t.Errorf("typos of dose %g change %.3f of the words", dose, share)
		}
		for i := range before {
			if !hits[i] {
				t.Fatalf("word %d has a typo at a smaller dose only", i)
			}
		}
		before = hits
		if n := float64(len(words(noisyWords(text, kind("drop"), dose, 9)))) / 4004; !near(1-n, dose, 0.03) {
			t.Errorf("drop of dose %g leaves %.3f of the words", dose, n)
		}
		swapped := words(noisyWords(text, kind("swap"), dose, 9))
		if len(swapped) != 4004 || slices.Equal(swapped, words(text)) {
			t.Errorf("swap of dose %g loses words, or moves none", dose)
		}
	}
	for _, k := range []string{"typos", "drop", "swap"} {
		if got := noisyWords(text, kind(k), 1, 9); !strings.HasSuffix(got, "77 x7\nquestion here?") {
			t.Errorf("%s changes numbers or the question: %q", k, got[len(got)-40:])
		}
	}
	a, c := noisyWords(text[:300]+"one more\nq", kind("typos"), 0.3, 9),
		noisyWords(text[:300]+"other things\nq", kind("typos"), 0.3, 9)
	if common(a, c) < 290 {
		t.Error("prompts that begin alike are disturbed differently")
	}
}

// Settings that make no sense are refused.
func TestNoiseSettings(t *testing.T) {
	for set, want := range map[string]string{"task=lm": "want one with right answers", "task=nothing": "want one that",
		"kinds=smell": "must be typos, drop", "words=0.2,0.1": "growing",
		"words=2": "must be 0 to 1", "passages=0": "must be 1 or more", "passages=400": "smaller doses",
		"task=outliers": "that asks questions", "task=noise": "that asks questions"} {
		key, value, _ := strings.Cut(set, "=")
		opt := eval.Options{Shots: -1, Set: map[string]string{"noise." + key: value}}
		opt.Measure([]eval.Target{modelOf("stub", &knower{}, 1024)})
		if _, err := opt.Prepare(context.Background(), lookup(t, "noise")); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
}
