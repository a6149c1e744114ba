package recipe

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"antiphase/layer"
	"antiphase/model"
)

// Every architecture of every size has the baseline's number of parameters to within 1 %.
func TestPairsAreEqualInSize(t *testing.T) {
	for _, s := range Sizes() {
		base, err := s.Make("transformer")
		if err != nil {
			t.Fatal(err)
		}
		want := float64(model.Table(base.Model).Count())
		for _, a := range layer.Archs() {
			r, err := s.Make(a.Name)
			if err != nil {
				t.Fatalf("%s %s: %v", s.Name, a.Name, err)
			}
			got := float64(model.Table(r.Model).Count())
			if s.Name != "nano" && !(math.Abs(got/want-1) < 0.01) {
				t.Errorf("%s: %s has %.0f parameters, the transformer %.0f (%+.2f %%)", s.Name, a.Name, got, want,
					100*(got/want-1))
			}
		}
	}
}

// The paper's sizes are reproduced: one embedding matrix, no norms, see the parameter accounting of the scaling figure.
func TestPaperSizes(t *testing.T) {
	for name, want := range map[string]float64{"830m": 0.8335, "1.4b": 1.4132, "2.8b": 2.7943} {
		r, err := Named(name, "transformer")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, p := range model.Table(r.Model).List {
			if p.Kind == layer.Matrix || p.Kind == layer.Embedding {
				n += p.Rows * p.Cols
			}
		}
		if got := float64(n) / 1e9; !(math.Abs(got-want) <= 0.0001) {
			t.Errorf("%s: %.4fB parameters, the paper plots %.4fB", name, got, want)
		}
	}
}

func TestJSONRoundTrip(t *testing.T) {
	for _, s := range Sizes() {
		for _, a := range layer.Archs() {
			r, err := s.Make(a.Name)
			if err != nil {
				t.Fatal(err)
			}
			r.Model.RopeScaling = &model.RopeScaling{Type: "linear", Factor: 2}
			r.Data.Sources = []Source{{Path: "a,b.txt", Weight: 0.7}, {Path: "c", Weight: 3, Epochs: 1.5},
				{Path: "d@e.txt", Weight: 1}, {Path: "x@2"}}
			var back Recipe
			if err := back.Parse(r.JSON()); err != nil {
				t.Fatalf("%s %s: %v\n%s", s.Name, a.Name, err, r.JSON())
			}
			if d := cmp.Diff(r, back); d != "" {
				t.Errorf("%s %s: %s", s.Name, a.Name, d)
			}
		}
	}
}

func TestSet(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"train.steps=7", ""},
		{"train.steps=10_000", ""},
		{"train.steps=0x10", ""},
		{"train.seed=0x1_0", ""},
		{"data.sources=a,b", ""},
		{`data.sources=["x"]`, ""},
		{"data.sources=x/*.zst@0.7", ""},
		{`data.sources=[{"path": "x", "weight": 2, "epochs": 1.5}, "y@1"]`, ""},
		{"data.sources=x@y", `weight "y" is not a number`},
		{"data.sources=x@0", "weight is 0, must be positive"},
		{"data.sources=x@-1", "weight is -1, must be positive"},
		{"data.sources=x@NaN", "must be positive"},
		{`data.sources=[{"path": "x", "weight": 0}]`, "weight is 0"},
		{`data.sources=[{"path": "x", "epochs": -2}]`, "epochs is -2"},
		{`data.sources=[{"path": "x", "wieght": 2}]`, "wieght"},
		{`data.sources=[7]`, "a string or an object"},
		{"optim.lr=0.5", ""},
		{"model.tie_embeddings=false", ""},
		{"train.step=7", "train.steps"},
		{"steps=7", "train.steps"},
		{"model.head=7", "model.heads"},
		{"train.steps=many", "whole number"},
		{"optim.lr=x", "number"},
		{"optim.lr=NaN", "finite"},
		{"data.held_out=inf", "finite"},
		{"train.steps", "key=value"},
	} {
		r, err := Nano("diff")
		if err != nil {
			t.Fatal(err)
		}
		err = r.SetPair(c.in)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want one about %q", c.in, err, c.want)
		}
	}
}

func TestParseNamesLineAndNearestKey(t *testing.T) {
	r, _ := Nano("diff")
	err := r.Parse([]byte("train:\n  steps: 3\n  batchs: 4\n"))
	if err == nil || !strings.Contains(err.Error(), "3:") || !strings.Contains(err.Error(), "train.batch") {
		t.Fatalf("got %v", err)
	}
	if err := r.Parse([]byte("train:\n  steps: 3\nname: x\n")); err != nil || r.Train.Steps != 3 || r.Name != "x" {
		t.Fatalf("yaml: %v, %+v", err, r.Train)
	}
}

// TestParseRefuses: what would be ignored, or take more memory than any recipe is worth.
func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"stepz:\n", "1: stepz: there is no such key; nearest is train.steps"},
		{"trai: 1\n", "1: trai: there is no such key"},
		{"trai:\n  steps: 1\n", "1: trai: there is no such key"},
		{"train:\n  stepz:\n", "2: train.stepz: there is no such key"},
		{"train:\n  steps:\n", "2: train.steps: has no value"},
		{"train:\n", "1: train: want keys and values here"},
		{`{"train": {"stepz": null}}`, "train.stepz"},
		{"name: [" + strings.Repeat("[", 40000), "nested deeper"},
		{strings.Repeat("{a: ", 5000), "nested deeper"},
		{strings.Repeat("- ", 5000) + "x", "nested deeper"},
		{strings.Repeat("? ", 5000) + "x", "nested deeper"},
		{strings.Repeat("x", maxFile+1), "larger than"},
		{"data:\n  sources: [&a x, *a]\n", "anchors"},
	} {
		r, _ := Nano("diff")
		before := r
		if err := r.Parse([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: error %v, want %q", c.text, err, c.want)
		}
		if d := cmp.Diff(before, r); d != "" {
			t.Errorf("%.40q: changed %s", c.text, d)
		}
	}
	r, _ := Nano("diff")
	if err := r.Parse([]byte(
		"{\"data\": {\"sources\": [\"a[0-9]*.txt\"]}, \"model\": {\"rope_scaling\": null}}")); err != nil ||
		r.Data.Sources[0].Path != "a[0-9]*.txt" {
		t.Errorf("%v, %v", err, r.Data.Sources)
	}
}

// What a recipe leaves out gets its default: a micro-batch is the whole batch, and the rest as the keys' lists begin.
func TestDefaults(t *testing.T) {
	r, _ := Nano("diff")
	r.Train.Batch, r.Train.MicroBatch, r.Train.Recompute = 12, 0, ""
	r.Tokenizer.Pattern, r.Data.Order, r.Data.HeldOutBy = "", "", ""
	r, err := r.Complete()
	if err != nil {
		t.Fatal(err)
	}
	got := []any{r.Train.MicroBatch, string(r.Train.Recompute), r.Tokenizer.Pattern, r.Data.Order, r.Data.HeldOutBy}
	if want := []any{12, "off", "llama3", "random", "pieces"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Bad configurations name the field and what would be right.
func TestComplete(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"model.heads=0", "model.heads: is 0"},
		{"model.kv_heads=3", "model.kv_heads: 3 does not divide"},
		{"model.head_dim=7", "model.head_dim: is 7, must be even"},
		{"model.layers=-1", "model.layers"},
		{"model.vocab=0", "model.vocab"},
		{"model.arch=difff", "arch"},
		{"model.head_norm=rms", "model.head_norm"},
		{"model.lambda_init=0.8", "model.lambda_init"},
		{"train.micro_batch=3", "train.micro_batch: 3 does not divide"},
		{"train.seq_len=100000", "train.seq_len"},
		{"optim.beta1=1", "optim.beta1"},
		{"optim.eps=0", "optim.eps"},
		{"tokenizer.pattern=foo", "tokenizer.pattern"},
		{"optim.schedule=step", "optim.schedule"},
		{"data.held_out=1", "data.held_out"},
		{"data.sources=[]", "data.sources"},
		{`data.sources=[""]`, "one of them is empty"},
		{`data.sources=["a@1", "b"]`, "1 of 2 have a weight"},
		{`data.sources=["a", {"path": "b", "epochs": 2}]`, "no weight"},
		{`data.sources=["a", {"path": "b", "epochs": 0.5}]`,
			"b (at most 0.5 epochs) has a bound on its epochs and no weight"},
		{"data.order=sorted", "data.order"},
		{"data.held_out_by=rows", "data.held_out_by"},
		{"name=../../x", "name"},
		{"name=", "name"},
		{"name=a/b", "name"},
		{"model.layers=1000000", "model.layers: is 1000000, must be at most"},
		{"model.context=2147483647", "rotary angles"},
		{"train.batch=4000000000000000000", "train.batch"},
		{"train.steps=9000000000000000000", "train.steps"},
	} {
		r, _ := Nano("diff")
		if err := r.SetPair(c.set); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Complete(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.set, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	r, _ := Nano("diff")
	f.Add(r.JSON())
	f.Add([]byte("train:\n  steps: 3\n"))
	f.Add([]byte("stepz:\n"))
	f.Add([]byte("name: " + strings.Repeat("[", 40)))
	f.Add([]byte("data: {sources: [&a x, *a]}"))
	f.Add([]byte("model: {rope_scaling: {type: yarn, factor: 4}}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, _ := Nano("diff")
		if r.Parse(b) == nil {
			_, _ = r.Complete()
		}
	})
}

// A whole recipe written before rows could be taken at random means a stream; one that states what differs takes the
// default.
func TestOldRecipesMeanAStream(t *testing.T) {
	r, _ := Nano("diff")
	r, err := r.Complete()
	if err != nil || r.Data.Order != "random" {
		t.Fatalf("order %q, %v", r.Data.Order, err)
	}
	var whole map[string]any
	if err := json.Unmarshal(r.JSON(), &whole); err != nil {
		t.Fatal(err)
	}
	delete(whole["data"].(map[string]any), "order")
	delete(whole["data"].(map[string]any), "held_out_by")
	old, _ := json.Marshal(whole)
	for text, want := range map[string][2]string{
		string(old): {"stream", "documents"}, string(r.JSON()): {"random", "pieces"},
		`{"data": {"isolate": true}}`: {"random", "pieces"},
	} {
		back, _ := Nano("diff")
		if err := back.Parse([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if back, err = back.Complete(); err != nil || [2]string{back.Data.Order, back.Data.HeldOutBy} != want {
			t.Errorf("order %q, held out by %q, want %q (%v) of %s", back.Data.Order, back.Data.HeldOutBy,
				want, err, text)
		}
	}
}

// Weights and epochs in YAML, as strings and as objects.
func TestSourcesInYAML(t *testing.T) {
	r, _ := Nano("diff")
	err := r.Parse([]byte("data:\n  sources:\n    - books/*.zst@0.7\n    - path: notes\n      weight: 0.3\n" +
		"      epochs: 4\n    - me@home/notes.txt@2\n"))
	want := []Source{{"books/*.zst", 0.7, 0}, {"notes", 0.3, 4}, {"me@home/notes.txt", 2, 0}}
	if err != nil || !slices.Equal(r.Data.Sources, want) {
		t.Errorf("%+v, %v", r.Data.Sources, err)
	}
	for set, want := range map[string]string{"data.order=stream": "data.order",
		"data.max_tokens=1": "data.max_tokens"} {
		bad := r
		if err := bad.SetPair(set); err != nil {
			t.Fatal(err)
		}
		if _, err := bad.Complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s with weights: %v", set, err)
		}
	}
}

// A source on a command line is PATH, PATH@WEIGHT or an object, as errors suggest for a path with an @.
func TestParseSource(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Source
		err  string
	}{
		{"notes", Source{Path: "notes"}, ""},
		{"notes@0.7", Source{Path: "notes", Weight: 0.7}, ""},
		{"a@b/notes", Source{Path: "a@b/notes"}, ""},
		{`{"path": "at@0.7.md"}`, Source{Path: "at@0.7.md"}, ""},
		{`{"path": "at@0.7", "weight": 2, "epochs": 0.5}`, Source{Path: "at@0.7", Weight: 2, Epochs: 0.5}, ""},
		{`{"path": "notes", "weigth": 2}`, Source{}, "weigth"},
		{`{"path": "notes", "epochs": 0}`, Source{}, "epochs is 0"},
		{`{notes`, Source{}, "object with path, weight and epochs"},
		{"at@0.7.md", Source{}, `{"path": "at@0.7.md"}`},
		{"notes@1e308", Source{}, "weight is 1e+308, must be from 1e-18 to 1e+18"}, // such weights have no sum
		{"notes@1e-320", Source{}, "must be from"},
		{"notes@NaN", Source{}, "weight is NaN"},
	} {
		got, err := ParseSource(c.in)
		if c.err == "" && (err != nil || got != c.want) || c.err != "" &&
			(err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %+v, error %v; want %+v, %q", c.in, got, err, c.want, c.err)
		}
	}
	// A path that begins with a brace is written as an object and read again.
	for _, s := range []Source{{Path: "{x}.txt"}, {Path: "at@0.7"}, {Path: "notes", Weight: 1}} {
		b, err := json.Marshal(s)
		var back Source
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if err != nil || back != s {
			t.Errorf("%+v became %s and %+v, error %v", s, b, back, err)
		}
	}
}

// A share that is not a number cannot come from a file, but from a flag.
func TestHeldOutNaN(t *testing.T) {
	r, _ := Nano("diff")
	r.Data.HeldOut = math.NaN()
	if _, err := r.Complete(); err == nil ||
		!strings.Contains(err.Error(), "data.held_out: is NaN, must be in [0, 1)") {
		t.Error(err)
	}
}
