package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// counting is a task of n questions that keeps what it was asked; question i scores i mod 2.
func counting(n int, asked *[]int) Task {
	return Task{Name: "counting", Version: 3, Measures: []Measure{{"acc", higher}},
		Settings: []Setting{{"scale", 1.0, "factor"}},
		Prepare: func(p *Plan) (*Job, error) {
			j := &Job{Chunk: 4, Config: map[string]any{"source": "none"}}
			for i := range p.limit(n) {
				j.IDs = append(j.IDs, fmt.Sprint("q", i))
			}
			j.Ask = func(_ context.Context, lm LM, which []int) ([]Answer, error) {
				*asked = append(*asked, which...)
				if _, err := lm.GenerateUntil(context.Background(), nil); err != nil {
					return nil, err
				}
				var out []Answer
				for _, w := range which {
					out = append(out, Answer{Values: map[string]float64{"acc": p.Float("scale") * float64(w%2)}, Doc: map[string]any{"w": w}})
				}
				return out, nil
			}
			j.Finish = func(r *Result) error { r.Add("twice", neither, r.Metrics[0].scaled(2)); return r.SetDetail([]int{1}) }
			return j, nil
		}}
}

// failing stops after some calls.
type failing struct {
	knower
	after int
}

func (f *failing) GenerateUntil(context.Context, []Generation) ([]string, error) {
	if f.after--; f.after < 0 {
		return nil, errors.New("stopped")
	}
	return nil, nil
}

func TestRunResumes(t *testing.T) {
	var asked []int
	task := counting(10, &asked)
	opt := Options{Seed: 1, Shots: -1, Output: t.TempDir()}
	run := func(after int, key string, change func(*Options)) (*Evaluation, error) {
		asked = nil
		o := opt
		if change != nil {
			change(&o)
		}
		return Run(context.Background(), []Target{{Name: "a/b", Key: key, LM: &failing{after: after}, Context: 64}}, []Task{task}, o)
	}
	if _, err := run(1, "k", nil); err == nil || !strings.Contains(err.Error(), "a/b: counting: stopped") {
		t.Fatalf("%v", err)
	}
	log := filepath.Join(opt.Output, "a_b", "samples_counting.jsonl")
	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"id":"q9","values":{"ac`); err != nil { // killed while writing
		t.Fatal(err)
	}
	f.Close()
	ev, err := run(9, "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{4, 5, 6, 7, 8, 9}; !slices.Equal(asked, want) {
		t.Errorf("asked %v, want the rest %v", asked, want)
	}
	r := ev.Models[0].Results[0]
	if m := r.Metrics[0]; m.Value != 0.5 || m.N != 10 || r.Metrics[1].Value != 1 || r.N != 10 || string(r.Detail) != "[1]" {
		t.Errorf("%+v", r)
	}
	if _, err := run(9, "k", nil); err != nil || len(asked) > 0 {
		t.Errorf("a complete log was asked again: %v, %v", asked, err)
	}
	for i, change := range []func(*Options){
		func(o *Options) { o.Seed = 2 },
		func(o *Options) { o.Limit = 9 },
		func(o *Options) { o.Set = map[string]string{"counting.scale": "3"} },
		nil,
		func(o *Options) { o.LogSamples = true }, // the log holds no docs yet
	} {
		if _, err := run(9, "k", change); err != nil || len(asked) < 9 {
			t.Errorf("change %d: asked %v, %v", i, asked, err)
		}
	}
	if b, _ := os.ReadFile(log); !bytes.Contains(b, []byte(`"doc":{"w":3}`)) {
		t.Errorf("no docs in %s", b)
	}
	if _, err := run(9, "other model", nil); err != nil || len(asked) != 10 {
		t.Errorf("another model's log was used: asked %v, %v", asked, err)
	}
}

func TestRunRefuses(t *testing.T) {
	var asked []int
	good := []Target{{Name: "a", LM: &knower{}, Context: 64}}
	inside := counting(3, &asked)
	inside.Inside = true
	twice := counting(3, &asked)
	twice.Prepare = func(*Plan) (*Job, error) { return &Job{IDs: []string{"x", "x"}}, nil }
	empty := counting(0, &asked)
	for name, c := range map[string]struct {
		targets []Target
		tasks   []Task
		set     map[string]string
		want    string
	}{
		"no model":        {nil, []Task{empty}, nil, "needs a model"},
		"same name":       {append(good, good...), []Task{counting(3, &asked)}, nil, "two models have the name a"},
		"looking inside":  {good, []Task{inside}, nil, "looks into the model"},
		"same ids":        {good, []Task{twice}, nil, `two samples have the id "x"`},
		"empty set":       {good, []Task{empty}, nil, "counting: there is nothing to ask"},
		"unknown setting": {good, []Task{counting(3, &asked)}, map[string]string{"counting.scal": "1"}, `"counting.scal" is unknown; the tasks asked for have counting.scale`},
		"bad setting":     {good, []Task{counting(3, &asked)}, map[string]string{"counting.scale": "x"}, "counting.scale=x"},
	} {
		_, err := Run(context.Background(), c.targets, c.tasks, Options{Set: c.set})
		var input *InputError
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &input) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if len(asked) > 0 {
		t.Errorf("asked %v before refusing", asked)
	}
}

func TestSelect(t *testing.T) {
	got, err := Select([]string{"piqa", "mc", "lm"})
	if err != nil || len(got) != len(mcSets)+1 || got[0].Name != "piqa" || got[len(got)-1].Name != "lm" {
		t.Errorf("%d tasks, %v", len(got), err)
	}
	if _, err := Select([]string{"pica"}); err == nil || !strings.Contains(err.Error(), `"pica" is unknown; there are lm, mc`) {
		t.Errorf("%v", err)
	}
	seen := map[string]bool{}
	for _, task := range Tasks() {
		if seen[task.Name] || task.Version < 1 || task.Doc == "" || len(task.Measures) == 0 || task.Prepare == nil {
			t.Errorf("task %q is there twice or incomplete", task.Name)
		}
		seen[task.Name] = true
	}
}

// The keys that readers of lm-evaluation-harness's results look for.
func TestHarnessKeys(t *testing.T) {
	var asked []int
	dir := t.TempDir()
	ev, err := Run(context.Background(), []Target{{Name: "a", LM: &knower{}, Context: 64}, {Name: "b", LM: &knower{}, Context: 64}},
		[]Task{counting(4, &asked)}, Options{Seed: 7, Output: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := ev.WriteHarness(dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "b", HarnessFile))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Results map[string]map[string]any  `json:"results"`
		Version map[string]int             `json:"versions"`
		Shots   map[string]int             `json:"n-shot"`
		Configs map[string]map[string]any  `json:"configs"`
		Samples map[string]map[string]int  `json:"n-samples"`
		Higher  map[string]map[string]bool `json:"higher_is_better"`
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	r := got.Results["counting"]
	if r["acc,none"] != 0.5 || !near(r["acc_stderr,none"].(float64), 0.2886751345948129, 1e-12) || r["alias"] != "counting" {
		t.Errorf("results %v", r) // √((4·¼)/3/4)
	}
	if got.Version["counting"] != 3 || got.Shots["counting"] != 0 || got.Samples["counting"]["effective"] != 4 || !got.Higher["counting"]["acc"] || got.Configs["counting"]["source"] != "none" {
		t.Errorf("%+v", got)
	}
	if len(ev.Paired) != 1 || ev.Paired[0].Metric != "acc" || ev.Paired[0].P != 1 {
		t.Errorf("paired %+v", ev.Paired)
	}
	var j bytes.Buffer
	if err := ev.JSON(&j); err != nil {
		t.Fatal(err)
	}
	back, err := ReadEvaluation(&j)
	if err != nil || len(back.Models) != 2 || back.Models[1].Results[0].Metrics[0] != ev.Models[1].Results[0].Metrics[0] {
		t.Errorf("read back: %+v, %v", back, err)
	}
	if table := ev.Table(false); !strings.Contains(table, "counting  0      acc     0.50 ± 0.29  0.50 ± 0.29") {
		t.Errorf("table:\n%s", table)
	}
}

// A model whose numbers are no numbers is named as such, before they spoil a mean or a file.
func TestDiverged(t *testing.T) {
	lm := &diverged{}
	_, err := Run(context.Background(), []Target{{Name: "m", LM: lm, Context: 256}}, []Task{*lookup(t, "lambada_openai")}, Options{Limit: 2, Shots: -1})
	if err == nil || !strings.Contains(err.Error(), "nll is NaN: the model has diverged") {
		t.Errorf("%v", err)
	}
}

type diverged struct{ knower }

func (*diverged) Loglikelihood(_ context.Context, reqs []Continuation) ([]Score, error) {
	out := make([]Score, len(reqs))
	for i := range out {
		out[i].LogProb = math.NaN()
	}
	return out, nil
}

// Tasks without written questions tell their texts apart too: other text or other examples is another evaluation.
func TestKeysKnowTheTexts(t *testing.T) {
	dir := t.TempDir()
	key := func(task string, opt Options) string {
		j := prepared(t, lookup(t, task), opt, 512)
		k, err := opt.key(&Target{Key: "m"}, j)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	for _, task := range []string{"lm", "outliers", "geometry", "attention"} {
		keys := map[string]bool{}
		for _, word := range []string{"one", "two"} {
			writeSet(t, dir, "lm/valid", `{"text": "`+strings.Repeat("This is sentence "+word+" of many. ", 300)+`"}`)
			keys[key(task, Options{Data: dir, Limit: 1})] = true
		}
		if len(keys) != 2 {
			t.Errorf("%s: the same key for other text", task)
		}
	}
	if key("lowbit", Options{Limit: 2, Shots: 0}) == key("lowbit", Options{Limit: 2, Shots: 3}) {
		t.Error("lowbit: the same key for other examples")
	}
}
