package task

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/device/ref"
	"antiphase/eval"
)

var scores = []string{"bound", "constrained", "free"}

func TestFreeHits(t *testing.T) {
	two := data.Needle{Answers: []string{"4821", "33"}}
	for out, want := range map[string]float64{
		"": 0, " 4821.": 0.5, " 4821 and 33.": 1, "33, 4821": 1, "48210 and 133": 0, "4 821 and 3 3": 0, "x4821y": 0.5,
		"4821 4821 4821": 0.5, "the number is 33": 0.5,
	} {
		if got := freeHits(two, out); got != want {
			t.Errorf("%q: %g, want %g", out, got, want)
		}
	}
}

// A number counts for the key it is given for. The prompt ends with the first key.
func TestBoundHits(t *testing.T) {
	c := data.Needle{Cities: []string{"Oslo", "Lima"}, Answers: []string{"48", "33"}, OtherCities: []string{"Rome"},
		OtherNumbers: []string{"71"}}
	for out, want := range map[string]float64{
		" 48. The magic code is Lima 33.":                            1,
		" 33. The magic code is Lima 48.":                            0, // swapped
		" 48. The magic code is Lima 48.":                            0.5,
		" 71. The magic code is Lima 33.":                            0.5,
		" 48. The magic code is Rome 33.":                            0.5, // the right number for the wrong key
		" 48 33 71. The magic code is Lima 48 33 71.":                0.5, // only the first number beside a key counts
		" 48. The magic code is Lima 71. The magic code is Lima 33.": 0.5,
		" 48. The magic code is Lima 33. The magic code is Rome 71.": 1, // keys in any order
		" 48. The magic code is Rome 71. The magic code is Lima 33.": 1,
		"Lima 33. The magic code is Oslo 48.":                        1,
		"Rome 71, Lima 33, Oslo 48":                                  1,
		"Rome 48, Lima 33":                                           0.5,
		" 48 and 33.":                                                1, // in the question's order if no key is named
		" 33 and 48.":                                                0,
		" 33, 48, 71":                                                0,
		"":                                                           0,
		" 480. The magic code is Lima 133.":                          0,
	} {
		if got := boundHits(c, out); got != want {
			t.Errorf("%q: %g, want %g", out, got, want)
		}
	}
}

// writer answers needle prompts by reading them with f: what it makes of all hidden keys and numbers, and of the keys
// asked for.
type writer struct {
	f func(hidden [][2]string, asked []string) string
}

func (w *writer) Loglikelihood(context.Context, []eval.Continuation) ([]eval.Score, error) {
	return nil, errors.ErrUnsupported
}

func (w *writer) LoglikelihoodRolling(context.Context, []string) ([]eval.Score, error) {
	return nil, errors.ErrUnsupported
}

func (w *writer) GenerateUntil(_ context.Context, reqs []eval.Generation) ([]string, error) {
	var out []string
	for _, r := range reqs {
		at := strings.LastIndex(r.Prompt, "\nWhich")
		body, question := r.Prompt[:at], r.Prompt[at:]
		var hidden [][2]string
		for _, part := range strings.Split(body, "The magic code is ")[1:] {
			city, rest, _ := strings.Cut(part, " ")
			number, _, _ := strings.Cut(rest, ".")
			hidden = append(hidden, [2]string{city, number})
		}
		var asked []string
		question = question[strings.LastIndex(question[:strings.LastIndex(question, "?")], "with")+5:]
		for _, word := range strings.FieldsFunc(question[:strings.Index(question, "?")],
			func(r rune) bool { return r == ' ' || r == ',' }) {
			if word != "and" {
				asked = append(asked, word)
			}
		}
		// A prompt that continues after some answers asks for the last key only.
		if last := r.Prompt[strings.LastIndexByte(r.Prompt, ' ')+1:]; last != asked[0] {
			asked = []string{last}
		}
		text := w.f(hidden, asked)
		out = append(out, text)
	}
	return out, nil
}

// answers writes each asked key with the number that pick gives it.
func answers(pick func(hidden [][2]string, key string) string) *writer {
	return &writer{func(hidden [][2]string, asked []string) string {
		out := ""
		for i, key := range asked {
			if i > 0 {
				out += " The magic code is " + key
			}
			out += " " + pick(hidden, key) + "."
		}
		return out
	}}
}

// What earns which floor. A model that names all hidden numbers has every "free" point and no more than the floor of
// any other score.
func TestNeedleFloors(t *testing.T) {
	g := rand.New(rand.NewPCG(8, 8))
	right := answers(func(hidden [][2]string, key string) string {
		return hidden[slices.IndexFunc(hidden, func(h [2]string) bool { return h[0] == key })][1]
	})
	all := &writer{func(hidden [][2]string, asked []string) string {
		names := ""
		for _, i := range g.Perm(len(hidden)) {
			names += " " + hidden[i][1]
		}
		out := names + "."
		for _, key := range asked[1:] {
			out += " The magic code is " + key + names + "."
		}
		return out
	}}
	copier := answers(func(hidden [][2]string, _ string) string { return hidden[g.IntN(len(hidden))][1] })
	// Naming any two of four, each once, is the copy floor of free by definition.
	two := &writer{func(hidden [][2]string, asked []string) string {
		perm := g.Perm(len(hidden))
		out := " " + hidden[perm[0]][1] + "."
		for i, key := range asked[1:] {
			out += " The magic code is " + key + " " + hidden[perm[i+1]][1] + "."
		}
		return out
	}}
	opt := eval.Options{Seed: 4, Set: map[string]string{"needle.samples": "120"}}
	got := run(t, *lookup(t, "needle"), opt, modelOf("right", right, 400), modelOf("all", all, 400),
		modelOf("copier", copier, 400), modelOf("two", two, 400))
	value := func(model, score string) (float64, float64, float64) {
		m, _ := got[model].Metric(score)
		return m.Value, 4 * m.StdErr, m.Floors["copy"]
	}
	for _, score := range scores {
		if v, _, _ := value("right", score); !near(v, 1, 1e-12) {
			t.Errorf("right: %s %g", score, v)
		}
	}
	if v, _, _ := value("all", "free"); v != 1 {
		t.Errorf("all numbers named: free %g", v)
	}
	for model, list := range map[string][]string{"all": {"bound", "constrained"}, "copier": {"bound", "constrained"},
		"two": {"bound", "free"}} {
		for _, score := range list {
			if v, err, floor := value(model, score); !near(v, floor, err) {
				t.Errorf("%s: %s is %.3f, the floor %.3f", model, score, v, floor)
			}
		}
	}
	f := got["right"].Metrics[0].Floors
	if f["copy"] != 0.25 || f["chance"] != 1.0/90 {
		t.Errorf("floors of bound: %v", f)
	}
	if m, _ := got["right"].Metric("free"); m.Floors["copy"] != 0.5 || m.Floors["chance"] != 2.0/90 {
		t.Errorf("floors of free: %v", m.Floors)
	}
	if m, _ := got["right"].Metric("constrained"); m.Floors["chance"] != 0.25 {
		t.Errorf("floors of constrained: %v", m.Floors)
	}
}

// A prompt that fills the context leaves room for what free decoding may write; else its beginning, and the needle
// there, is dropped.
func TestNeedleLeavesRoom(t *testing.T) {
	j := prepared(t, lookup(t, "needle"), eval.Options{Limit: 10}, 512)
	for _, g := range j.Gold {
		if n := j.Plan.Count(g.Context) + len(g.Text); n > 512 || n < 400 {
			t.Errorf("%d tokens of prompt and answer, the context is 512", n)
		}
	}
}

// What a depth hides lies at that depth, and no two prompts of the grid are the same text.
func TestNeedleDepths(t *testing.T) {
	j := prepared(t, lookup(t, "needle"), eval.Options{Set: map[string]string{"needle.samples": "3"}}, 512)
	bodies := map[string]string{}
	for i, g := range j.Gold {
		body := g.Context[:strings.LastIndexByte(g.Context, '\n')]
		for _, part := range strings.Split(body, "The magic code is ")[1:] { // text without needles
			city, rest, _ := strings.Cut(part, " ")
			number, _, _ := strings.Cut(rest, ".")
			body = strings.Replace(body, "The magic code is "+city+" "+number+".", "", 1)
		}
		body = strings.Join(strings.Fields(body), " ") // where a needle was taken out a space is left
		if other, again := bodies[body]; again {
			t.Errorf("%s has the text of %s", j.IDs[i], other)
		}
		bodies[body] = j.IDs[i]
	}
}

func TestNeedleGrid(t *testing.T) {
	half := &halfReader{}
	set := map[string]string{"needle.lengths": "160,320", "needle.needles": "1", "needle.queries": "1",
		"needle.depths": "0,0.25,0.9,1"}
	r := run(t, *lookup(t, "needle"), eval.Options{Seed: 3, Shots: -1, Set: set}, modelOf("half", half, 320))["half"]
	g := detail[NeedleGrid](t, r)
	for d, row := range g.Cells["bound"] {
		for n, m := range row {
			want := 1.0
			if d >= 2 { // what lies in the second half it cannot know
				want = 0
			}
			if m.Value != want || m.N != 10 {
				t.Errorf("depth %g, length %d: %+v, want %g of 10", g.Depths[d], g.Lengths[n], m, want)
			}
		}
	}
	if m := g.ByLength["bound"]; len(m) != 2 || m[0].Value != 0.5 || m[1].N != 40 {
		t.Errorf("by length %+v", m)
	}
	if m, ok := r.Metric("bound@160"); !ok || m.Value != 0.5 {
		t.Errorf("%+v", r.Metrics)
	}
}

// halfReader reads the first half of a prompt.
type halfReader struct{ writer }

func (h *halfReader) GenerateUntil(_ context.Context, reqs []eval.Generation) ([]string, error) {
	out := make([]string, len(reqs))
	for i, r := range reqs {
		city := r.Prompt[strings.LastIndexByte(r.Prompt, ' ')+1:]
		if _, rest, ok := strings.Cut(r.Prompt[:len(r.Prompt)/2], "The magic code is "+city+" "); ok {
			number, _, _ := strings.Cut(rest, ".")
			out[i] = " " + number + "."
		}
	}
	return out, nil
}

// A limit counts the task's samples, over all lengths and depths.
func TestNeedleLimit(t *testing.T) {
	j := prepared(t, lookup(t, "needle"), eval.Options{Limit: 7, Set: map[string]string{"needle.lengths": "300,512"}},
		512)
	if len(j.IDs) != 7 {
		t.Errorf("%d samples: %v", len(j.IDs), j.IDs)
	}
}

// A model of bytes gets through: prompts, answers and stops fit together.
func TestNeedleWithModel(t *testing.T) {
	s := subject(t, ref.New(), "diff", 320)
	r := answer(t, lookup(t, "needle"), eval.Options{Limit: 5}, s, 320)
	for _, name := range scores {
		if m, ok := r.Metric(name); !ok || m.N != 5 {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if m, ok := r.Metric("bound@320"); ok {
		t.Errorf("one length has no measure of its own: %+v", m)
	}
}

func TestNeedleRefuses(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.txt")
	for set, want := range map[string]string{
		"needle.needles=0": "needles", "needle.queries=5": "queries", "needle.depths=1.5": "depths",
		"needle.lengths=900": "context", "needle.digits=0": "digits",
		"needle.lengths=60": "room", "needle.samples=0": "samples", "needle.wording=x": "wording", "needle.haystack=" +
			empty: "haystack",
	} {
		key, value, _ := strings.Cut(set, "=")
		_, err := eval.Run(context.Background(), []eval.Target{modelOf("a", &knower{}, 320)},
			[]eval.Task{*lookup(t, "needle")}, eval.Options{Set: map[string]string{key: value}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", set, err)
		}
	}
}
