package task

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/eval"
)

// setFiles writes data sets, one JSON object a line.
func setFiles(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// gluePrompts are rows of the published sets of GLUE and SuperGLUE, and how the harness's task files word them.
var gluePrompts = []struct {
	set, row     string
	prompt, gold string
}{
	{"cb", `{"premise":"It rained.","hypothesis":"it was wet","label":1}`,
		"It rained.\nQuestion: it was wet. True, False, or Neither?\nAnswer:", " False"},
	{"cb", `{"premise":"p","hypothesis":"h","label":2}`, "p\nQuestion: h. True, False, or Neither?\nAnswer:",
		" Neither"},
	{"copa",
		`{"premise":"My body cast a shadow.","question":"cause","choice1":"The sun rose.","choice2":"The grass was cut.","label":0}`,
		"My body cast a shadow because", "  the sun rose."},
	{"copa", `{"premise":"Él cayó. ","question":"effect","choice1":"A.","choice2":"Él lloró.","label":1}`,
		"Él cayó therefore", "  él lloró."},
	{"rte", `{"sentence1":"A.","sentence2":"B.","label":0}`, "A.\nQuestion: B. True or False?\nAnswer:", " True"},
	{"wic",
		`{"sentence1":"Él made a bank deposit","sentence2":"the river bank","start1":10,"end1":14,"label":false}`,
		"Sentence 1: Él made a bank deposit\nSentence 2: the river bank\n" +
			"Question: Is the word 'bank' used in the same way in the two sentences above?\nAnswer:", " no"},
	{"wic", `{"sentence1":"go","sentence2":"x","start1":0,"end1":2,"label":true}`,
		"Sentence 1: go\nSentence 2: x\nQuestion: Is the word 'go' used in the same way in the two sentences " +
			"above?\nAnswer:",
		" yes"},
	{"wsc", `{"text":"Mark told Pete many lies , which he believed .","span1_text":"Mark","span2_text":"he","span2_index":7,"label":0}`,
		"Passage: Mark told Pete many lies, which *he* believed.\nQuestion: In the passage above, does the " +
			"pronoun \"*he*\" refer to \"*Mark*\"?\nAnswer:", " no"},
	// The harness loses a space there.
	{"wsc", `{"text":"He ran .","span1_text":"Tom","span2_text":"He","span2_index":0,"label":1}`,
		"Passage:  *He*ran.\nQuestion: In the passage above, does the pronoun \"*He*\" refer to \"*Tom*\"?\n" +
			"Answer:", " yes"},
	{"wsc", `{"text":"Él is he","span1_text":"Tom","span2_text":"he,","span2_index":2,"label":1}`,
		"Passage: Él is *he,*\nQuestion: In the passage above, does the pronoun \"*he,*\" refer to " +
			"\"*Tom*\"?\nAnswer:", " yes"},
	{"sst2", `{"sentence":"fine work ","label":1}`,
		"fine work \nQuestion: Is this sentence positive or negative?\nAnswer:", " positive"},
	{"mrpc", `{"sentence1":"A","sentence2":"B","label":1}`,
		"Sentence 1: A\nSentence 2: B\nQuestion: Do both sentences mean the same thing?\nAnswer:", " yes"},
	{"qnli", `{"question":"Who?","sentence":"He.","label":0}`,
		"Who?\nHe.\nQuestion: Does this response answer the question?\nAnswer:", " yes"},
}

func TestGluePrompts(t *testing.T) {
	for _, c := range gluePrompts {
		dir := setFiles(t, map[string]string{"glue/" + c.set + "_val.jsonl": c.row + "\n"})
		j := prepared(t, lookup(t, c.set), eval.Options{Data: dir}, 256)
		if len(j.Gold) != 1 || j.Gold[0] != (eval.Continuation{Context: c.prompt, Text: c.gold}) {
			t.Errorf("%s: %q, want %q %q", c.set, j.Gold, c.prompt, c.gold)
		}
	}
}

// Rows of GLUE and SuperGLUE that lack a field or have one out of its range.
func TestGlueBadRows(t *testing.T) {
	for _, c := range []struct{ set, row, want string }{
		{"cb", `{"premise":"p","hypothesis":"h","label":1}` + "\n" + `{"premise":"p","hypothesis":"h","label":3}`,
			"glue/cb_val: row 2: "},
		{"cb", `{"premise":"","hypothesis":"h","label":1}`, "premise"},
		{"cb", `{"premise":"p","hypothesis":"h","label":3}`, "there are 3 classes"},
		{"cb", `{"premise":"p","hypothesis":"h","label":-1}`, "label"},
		{"cb", `{"premise":"p","hypothesis":"h","label":0.5}`, "label"},
		{"cb", `{"premise":"p","hypothesis":"h"}`, "without labels"},
		{"cb", `{"premise":"p","hypothesis":"h","label":"1"}`, "label"},
		{"copa", `{"premise":"p.","question":"why","choice1":"A","choice2":"B","label":0}`, "cause or effect"},
		{"copa", `{"premise":"p.","question":"cause","choice1":"A","label":0}`, "choice2"},
		{"wic", `{"sentence1":"go","sentence2":"x","start1":0,"end1":3,"label":true}`, "start1"},
		{"wic", `{"sentence1":"go","sentence2":"x","start1":1,"end1":1,"label":true}`, "start1"},
		{"wic", `{"sentence1":"go","sentence2":"x","start1":-1,"end1":1,"label":true}`, "start1"},
		{"wic", `{"sentence1":"go","sentence2":" ","start1":0,"end1":1,"label":true}`, "sentence2"},
		{"wsc", `{"text":"a b","span1_text":"a","span2_text":"b","span2_index":3,"label":0}`, "span2_index"},
		{"wsc", `{"text":"a b","span1_text":"a","span2_text":"b","span2_index":-1,"label":0}`, "span2_index"},
		{"wsc", `{"text":"a b","span2_text":"b","span2_index":1,"label":0}`, "span1_text"},
	} {
		dir := setFiles(t, map[string]string{"glue/" + c.set + "_val.jsonl": c.row + "\n"})
		opt := eval.Options{Data: dir}
		opt.Measure([]eval.Target{modelOf("stub", &knower{}, 256)})
		if _, err := opt.Prepare(t.Context(), lookup(t, c.set)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s: %v, want %q", c.set, c.row, err, c.want)
		}
	}
}

// Codes of labels have the names of the list; a name that two codes share is no name, and one that is missing is the
// code without underscores.
func TestLabelNames(t *testing.T) {
	rows := `{"text":"who ","label":"HUM","label_fine":"HUM:ind"}` + "\n" +
		`{"text":"where","label":"LOC","label_fine":"LOC:other"}` + "\n" +
		`{"text":"what","label":"AN_Y","label_fine":"ENTY:other"}` + "\n"
	dir := setFiles(t, map[string]string{"icl/trec_train.jsonl": rows, "icl/trec_test.jsonl": rows,
		"icl/labels.json": `{"trec_coarse":{"HUM":"person","LOC":"place"},"trec_fine":{"HUM:ind":"individual","LOC:other":"other","ENTY:other":"other"}}`})
	plan := prepared(t, lookup(t, "lm"), eval.Options{}, 256).Plan
	plan.Data = dir
	for name, want := range map[string][]iclItem{"trec": {{"who", "person"}, {"where", "place"}, {"what", "AN Y"}},
		"trec_fine": {{"who", "individual"}, {"where", "LOC:other"}, {"what", "ENTY:other"}}} {
		for i := range iclSets {
			if iclSets[i].name != name {
				continue
			}
			train, test, err := iclSets[i].read(t.Context(), plan)
			if err != nil || fmt.Sprint(train) != fmt.Sprint(want) || fmt.Sprint(test) != fmt.Sprint(want) {
				t.Errorf("%s: %v, %v; want %v", name, train, err, want)
			}
		}
	}
	long := `{"trec_coarse":{}}` + strings.Repeat(" ", maxLabels)
	for text, want := range map[string]string{"{": "labels.json", `{"trec_coarse":3}`: "trec_coarse",
		long: "labels.json: too large: more than 1048576 bytes"} {
		if err := os.WriteFile(filepath.Join(dir, "icl", "labels.json"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, _, err := iclSets[0].read(t.Context(), plan); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30s: %v", text, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "icl", "labels.json")); err != nil {
		t.Fatal(err)
	}
	if train, _, err := iclSets[0].read(t.Context(), plan); err != nil || train[0].label != "HUM" ||
		train[2].label != "AN Y" {
		t.Errorf("without names: %v, %v", train, err)
	}
}

// Mathematical questions with a table, a unit or choices, and solutions, each ending in its answer.
func TestMathPrompts(t *testing.T) {
	for _, c := range []struct {
		row  mathRow
		want string
	}{
		{mathRow{Question: "Q?"}, "Question: Q?\nAnswer:"}, {mathRow{Problem: "P?"}, "Question: P?\nAnswer:"},
		{mathRow{Question: "Q?", Table: "a | b"}, "Question: a | b\nQ?\nAnswer:"},
		{mathRow{Question: "Q?", Table: "a | b", Title: "T"}, "Question: T\na | b\nQ?\nAnswer:"},
		{mathRow{Question: "Q?", Title: "T"}, "Question: Q?\nAnswer:"},
		{mathRow{Question: "Q?", Unit: "kg", Choices: []string{"1", "2"}},
			"Question: Q? (unit: kg) Choices: 1, 2.\nAnswer:"},
	} {
		if got := c.row.prompt(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.row, got, c.want)
		}
	}
	for _, c := range []struct {
		solution, answer,
		want string
	}{{" 2+2 is 4.\n#### 4 ", "4", "Question: Q?\nAnswer: 2+2 is 4.\n#### 4"},
		{"It is four.", "4", "Question: Q?\nAnswer: It is four.\n#### 4"}} {
		if got := (&mathRow{Question: "Q?", Solution: c.solution, Answer: c.answer}).solved(); got != c.want {
			t.Errorf("%q: %q, want %q", c.solution, got, c.want)
		}
	}
}

// Examples of mathematical questions: those with a solution, never the question itself, as many as are asked for.
func TestMathExamples(t *testing.T) {
	var rows, train strings.Builder
	for i := range 4 {
		fmt.Fprintf(&rows, "{\"question\":\"What is %d+1?\",\"answer\":\"%d\",\"solution\":\"sum\\n#### %d\"}\n", i,
			i+1, i+1)
		fmt.Fprintf(&train, "{\"question\":\"And %d+2?\",\"answer\":\"%d\",\"solution\":\"add\\n#### %d\"}\n", i, i+2,
			i+2)
	}
	train.WriteString(`{"question":"Unsolved?","answer":"9"}` + "\n")
	dir := setFiles(t, map[string]string{"math/carp_en_test.jsonl": rows.String(),
		"math/mawps_test.jsonl": rows.String(), gsm8kTrain + ".jsonl": train.String()})
	for _, name := range []string{"carp_en", "mawps"} { // examples of the same file, and of another
		for _, shots := range []int{0, 2, 3} {
			j := prepared(t, lookup(t, name), eval.Options{Data: dir, Shots: shots}, 4096)
			if len(j.Gold) != 4 {
				t.Fatalf("%d questions", len(j.Gold))
			}
			for i, g := range j.Gold {
				own := fmt.Sprintf("Question: What is %d+1?\nAnswer:", i)
				if strings.Count(g.Context, "\nAnswer:") != shots+1 || !strings.HasSuffix(g.Context, own) ||
					strings.Count(g.Context, own) != 1 || strings.Contains(g.Context, "Unsolved") ||
					g.Text != fmt.Sprintf(" #### %d", i+1) {
					t.Errorf("%s with %d examples: %q %q", name, shots, g.Context, g.Text)
				}
				if shots > 0 && strings.Contains(g.Context, "And ") != (name == "mawps") {
					t.Errorf("%s: examples of the wrong file: %q", name, g.Context)
				}
			}
		}
		opt := eval.Options{Data: dir, Shots: 4}
		opt.Measure([]eval.Target{modelOf("stub", &knower{}, 4096)})
		if _, err := opt.Prepare(t.Context(), lookup(t, name)); err == nil ||
			!strings.Contains(err.Error(), "4 examples are asked for") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// echoing continues every prompt with itself.
type echoing struct{ knower }

func (*echoing) GenerateUntil(_ context.Context, reqs []eval.Generation) ([]string, error) {
	var out []string
	for _, r := range reqs {
		out = append(out, fmt.Sprintf("%s%d", r.Prompt, r.MaxTokens))
	}
	return out, nil
}

// Samples are the prompts asked for, in order, with what the model wrote.
func TestSamples(t *testing.T) {
	r := answer(t, lookup(t, "samples"),
		eval.Options{Set: map[string]string{"samples.prompts": "one,zwei é", "samples.tokens": "7"}}, &echoing{}, 256)
	want := []Sample{{"one", "one7"}, {"zwei é", "zwei é7"}}
	if got := detail[[]Sample](t, r); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
	if m, ok := r.Metric("bytes"); !ok || m.Value != 6 {
		t.Errorf("%+v", m)
	}
	if r := answer(t, lookup(t, "samples"), eval.Options{Limit: 2}, &echoing{}, 256); r.N != 2 {
		t.Errorf("%d samples, want 2", r.N)
	}
}
