package harness

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/eval"
)

// Examples with answers of every form: the first of several, none, whole questions to choose from, functions of the
// harness, keys without a value.
func TestExamplesOfEveryForm(t *testing.T) {
	const rest = "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\nfewshot_split: train\n"
	for name, c := range map[string]struct{ text, rows, want string }{
		"several answers": {generate + "fewshot_split: train\nfewshot_config: {sampler: first_n}\n",
			`{"q": "Q", "a": ["first", "second"]}`, "Q first\n\nQ"},
		"several indices": {choose + rest + "fewshot_config: {sampler: first_n}\n",
			`{"q": "Q", "a": [1, 0], "c": ["x", "y"]}`, "Q y\n\nQ"},
		"its own space": {generate +
			"fewshot_split: train\nfewshot_config: {sampler: first_n, doc_to_text: '{{q}} '}\n",
			`{"q": "Q", "a": "A"}`, "Q  A\n\nQ"},
		"no answer": {generate + "fewshot_split: train\nfewshot_config: {sampler: first_n, doc_to_target: ''}\n",
			`{"q": "Q", "a": "A"}`, "QQ"},
		"no value": {choose + rest +
			"fewshot_config: {sampler: first_n, doc_to_text: null, target_delimiter: null, other: null}\n",
			`{"q": "Q", "a": 0, "c": ["x", "y"]}`, "Q x\n\nQ"},
		"a function": {choose + rest +
			"fewshot_config: {sampler: first_n, doc_to_text: !function copa.utils.doc_to_text}\n",
			`{"q": "Q", "a": 0, "c": ["x", "y"], "premise": "It rained.", "question": "cause"}`,
			"It rained because x\n\nQ"},
	} {
		asked, _, err := ask(t, c.text, c.rows+"\n", "", 1)
		if err != nil || len(asked) == 0 {
			t.Errorf("%s: %q, %v", name, asked, err)
			continue
		}
		if got, _, _ := strings.Cut(asked[0], "|"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What cannot be asked is refused with the value, also in an example.
func TestOddDocuments(t *testing.T) {
	const rest = "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\n"
	const shot = "num_fewshot: 1\nfewshot_split: train\n"
	const row = `{"q": "Q", "a": 0, "c": ["x", "y"], "list": ["q"], "eastern": "٣"}`
	for _, c := range []struct{ text, row, want string }{
		{choose + rest + shot + "fewshot_config: {doc_to_text: list}\n", row,
			"example: doc_to_text gives [q], want a text"},
		{choose + rest + shot + "fewshot_config: {doc_to_text: 2}\n", row,
			"example: the index 2 is outside of 2 choices"},
		{choose + rest + shot + "fewshot_config: {doc_to_target: 2}\n", row,
			"example: the index 2 is outside of 2 choices"},
		{choose + rest + shot + "fewshot_config: {doc_to_target: 1.5}\n", row,
			"example: doc_to_target gives 1.5, want a text or the index"},
		{choose + "doc_to_text: q\ndoc_to_target: '{{eastern}}'\ndoc_to_choice: c\n", row,
			`doc_to_target: "٣" is not an index`},
		{choose + "doc_to_text: '{{eastern}}'\ndoc_to_target: a\ndoc_to_choice: c\n", row,
			`doc_to_text: "٣" is not an index`},
		{choose + "doc_to_text: 1\ndoc_to_target: 7\ndoc_to_choice: c\n", row,
			"doc_to_target gives 7, want a text or the index"},
		{generate + "doc_to_choice: c\n", `{"q": 1, "a": 0, "c": ["x", "y"]}`,
			"doc_to_text gives an index, which only multiple_choice can take"},
		{choose + rest + "process_docs: upper\n", row, "process_docs: upper is not a function"},
		{choose + rest + "process_results: upper\n", row, "process_results: upper is not a function"},
		{choose + rest + "metric_list: [{metric: f1, aggregation: nanmean}]\n", row,
			"f1: aggregation is nanmean; here it is f1"},
		{choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: !function copa.utils.doc_to_choice\n",
			`{"q": "Q", "a": 0, "choice1": "A", "choice2": ""}`, `field "choice2" is empty`},
		{"include: part\n" + choose + rest, row, "include: "},
		{"include: .\n" + choose + rest, row, "it is not a plain file"},
	} {
		if _, _, err := ask(t, c.text, c.row+"\n", "", 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n%v; want %q", strings.TrimPrefix(c.text, head), err, c.want)
		}
	}
	if _, metrics, err := ask(t, choose+rest+"metric_list: [{metric: acc, aggregation: nanmean}]\n", row+"\n", "",
		0); err != nil || metrics["acc"] != 1 {
		t.Errorf("a mean without NaN: %v, %v", metrics, err)
	}
}

// Without examples their split is not read, and need not be there.
func TestSplitOfNoExamples(t *testing.T) {
	text := generate + "fewshot_split: gone\n"
	if asked, _, err := ask(t, text, pupils, "", 0); err != nil || len(asked) != 2 {
		t.Errorf("%q, %v", asked, err)
	}
	if _, err := prepareText(t, text+"num_fewshot: 1\n"); err == nil ||
		!strings.Contains(err.Error(), `examples: data_files has no split "gone"; it has test, train`) {
		t.Errorf("%v", err)
	}
}

// A pattern of a task file cannot take forever, and the white space of WikiText is the harness's, with its oddities.
func TestPatterns(t *testing.T) {
	r, err := compile(`(?P<x>a+)\Z`)
	if err != nil || r.MatchTimeout <= 0 || r.MatchTimeout > time.Minute {
		t.Errorf("%v, %v", r.MatchTimeout, err)
	}
	for in, want := range map[string]string{"a /' 5/ b": "a /'[0-9]/ b", "the dogs ' x": "the dogs' x",
		"1 @,@ 000 @.@ 5 @-@ a": "1,000.5-a", "( a ) [ b ] { c } \" d \" ' e '": "(a) [b] {c} \"d\" 'e'",
		"a : b ; c . d ! e ? f , g": "a: b; c. d! e? f, g", "= = = = x": "==== x", "= = = x": "=== x", "= = x": "== x",
		"5 ° C \n d\n e": "5°C\nd\ne", "it 's N x": "it's 1 x"} {
		if got := detokenized(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Notes name each key without effect once, those of metrics too, and no key of a task that cannot be run.
func TestNotes(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "d.jsonl"), pupils)
	text := choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\ntag: x\ntask_alias: y\n" +
		"metric_list: [{metric: acc, weight_by_size: true}]\n"
	write(t, filepath.Join(dir, "a.yaml"), text)
	write(t, filepath.Join(dir, "b.yaml"), strings.Replace(text, "mine", "other", 1)+"should_decontaminate: false\n")
	write(t, filepath.Join(dir, "c.yaml"),
		strings.Replace(text, "mine", "third", 1)+"doc_to_decontamination_query: q\nfrobnicate: 1\n")
	_, notes, err := Read(dir)
	want := []string{dir + ": ignored, since it has no effect here: tag, task_alias, weight_by_size in metric_list"}
	if err != nil || !slices.Equal(notes, want) {
		t.Errorf("%q, %v; want %q", notes, err, want)
	}
}

// A task file may name documents below --data by their full path, and none beside it.
func TestFilesBelowData(t *testing.T) {
	dir, below := t.TempDir(), t.TempDir()
	for name, want := range map[string]string{filepath.Join(below, "in", "d.jsonl"): "",
		filepath.Join(filepath.Dir(below), filepath.Base(below)+"d.jsonl"): "is outside of"} {
		write(t, name, pupils)
		write(t, filepath.Join(dir, "t.yaml"),
			strings.ReplaceAll(generate, "d.jsonl", fmt.Sprintf("%q", filepath.ToSlash(name))))
		tasks, _, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		opt := eval.Options{Shots: -1, Data: below}
		opt.Measure([]eval.Target{{Model: eval.Model{Name: "stub", Context: 512}, LM: &told{}}})
		_, err = opt.Prepare(t.Context(), &tasks[0])
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
