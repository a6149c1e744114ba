package harness

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
)

// asked reads a task of the documents pupils and runs it.
func asked(t *testing.T, text, said string, opt eval.Options) (eval.Task, *told, *eval.Result) {
	t.Helper()
	tasks, err := pupilTasks(t, text)
	if err != nil {
		t.Fatal(err)
	}
	m := &told{text: said}
	return tasks[0], m, run(t, tasks[0], m, opt)
}

// Metrics are in the order of the file, the first being the headline, each with its direction and label; measures of
// samples that the file does not name come after them.
func TestMetricsInOrder(t *testing.T) {
	likely := head + "output_type: loglikelihood\ndoc_to_text: q\ndoc_to_target: s\n"
	rolling := head + "output_type: loglikelihood_rolling\ndoc_to_target: s\n"
	choices := choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\n"
	for list, want := range map[string]string{
		choices: "acc higher accuracy, %; acc_norm higher accuracy, per character, %",
		choices + "metric_list: [{metric: f1}, {metric: acc_norm}, {metric: mcc}, {metric: acc}]\n": "f1 higher F1; " +
			"acc_norm higher accuracy, per character, %; mcc higher Matthews correlation; acc higher accuracy, %",
		choices + "metric_list: [{metric: mcc}]\n": "mcc higher Matthews correlation; acc higher accuracy, %",
		likely: "perplexity lower perplexity; acc higher accuracy, %",
		likely + "metric_list: [{metric: perplexity}]\n": "perplexity lower perplexity; " +
			"nll lower negative log-likelihood, nats",
		rolling: "word_perplexity lower perplexity per word; byte_perplexity lower perplexity per byte; " +
			"bits_per_byte lower bits per byte",
		rolling + "metric_list: [{metric: byte_perplexity}]\n": "byte_perplexity lower perplexity per byte; " +
			"nll_per_byte lower loss, nats/byte",
		generate + "filter_list: [{name: low, filter: [{function: lowercase}]}, " +
			"{name: none, filter: [{function: take_first}]}]\n": "exact_match,low higher exact match (low), %; " +
			"exact_match higher exact match, %",
	} {
		_, _, r := asked(t, list, "x", eval.Options{Shots: -1})
		var got []string
		for _, m := range r.Metrics {
			d, _ := m.Better.MarshalText()
			got = append(got, fmt.Sprintf("%s %s %s", m.Name, d, m.Label))
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s\nhas %s\nwant %s", strings.TrimPrefix(list, head), strings.Join(got, "; "), want)
		}
	}
}

// Number of examples and version of a task: those of the file, the user's number unless the file states zero, a version
// of at least 1.
func TestShotsAndVersion(t *testing.T) {
	choices := choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\nfewshot_split: train\n"
	for _, c := range []struct {
		more                 string
		user, shots, version int
	}{
		{"", -1, 0, 1}, {"", 1, 1, 1}, {"num_fewshot: 2\n", -1, 2, 1}, {"num_fewshot: 2\n", 0, 0, 1},
		{"num_fewshot: 0\n", 2, 0, 1}, {"num_fewshot: null\n", 2, 2, 1},
		{"metadata: {version: 3}\n", -1, 0, 3}, {"metadata: {version: 1.6}\n", -1, 0, 2},
		{"metadata: {version: 0.0}\n", -1, 0, 1}, {"metadata: {}\n", -1, 0, 1},
	} {
		task, m, r := asked(t, choices+c.more, "", eval.Options{Shots: c.user})
		if n := strings.Count(m.asked[0], "\n\n"); n != c.shots || r.Shots != c.shots || task.Version != c.version ||
			r.Version != c.version {
			t.Errorf("%q, %d asked for: %d examples in %q, %d in the result; version %d", c.more, c.user, n, m.asked[0],
				r.Shots, task.Version)
		}
	}
	first := func(seed string) []string {
		text := choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\nnum_fewshot: 1\nfewshot_split: train\n"
		_, m, _ := asked(t, text, "", eval.Options{Shots: -1, Set: map[string]string{"mine.fewshot_seed": seed}})
		return m.asked
	}
	if a := first("1234"); slices.Equal(a, first("1235")) && slices.Equal(a, first("1236")) &&
		slices.Equal(a, first("7")) {
		t.Errorf("four seeds draw the same examples: %q", a)
	}
}

// Guessing earns the share of choices that are right, in every accuracy; text has no such floor.
func TestChanceOfSeveral(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "d.jsonl"),
		`{"q": "1", "a": [1, 0], "c": ["x", "y", "z"]}`+"\n"+`{"q": "2", "a": 1, "c": ["u", "v"]}`+"\n")
	write(t, filepath.Join(dir, "t.yaml"), choose+"doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\n"+
		"metric_list: [{metric: acc}, {metric: acc_norm}, {metric: acc_bytes}, {metric: exact_match}]\n")
	tasks, _, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, tasks[0], &told{}, eval.Options{Shots: -1})
	for _, m := range r.Metrics {
		want := (2./3 + 1./2) / 2
		if m.Name == "exact_match" {
			want = 0
		}
		if !(math.Abs(m.Floors["chance"]-want) <= 1e-12) {
			t.Errorf("%s: chance %g, want %g", m.Name, m.Floors["chance"], want)
		}
	}
	if r.Config["output_type"] != "multiple_choice" || r.Config["source"] != "d.jsonl" || r.StandIn() {
		t.Errorf("%v", r.Config)
	}
}

// hopeless finds everything impossible.
type hopeless struct{ told }

func (*hopeless) Loglikelihood(_ context.Context, reqs []eval.Continuation) ([]eval.Score, error) {
	out := make([]eval.Score, len(reqs))
	for i := range out {
		out[i].LogProb = -1e6
	}
	return out, nil
}

// A perplexity that is not finite is an error that says what is wrong, not a row of the table.
func TestPerplexityOfDiverged(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "d.jsonl"), pupils)
	write(t, filepath.Join(dir, "t.yaml"), head+"output_type: loglikelihood\ndoc_to_text: q\ndoc_to_target: s\n")
	tasks, _, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	target := eval.Target{Model: eval.Model{Name: "m", Context: 512}, LM: &hopeless{}}
	if _, err := eval.Run(t.Context(), []eval.Target{target}, tasks, eval.Options{Shots: -1}); err == nil ||
		!strings.Contains(err.Error(), "perplexity is +Inf: the model has diverged") {
		t.Errorf("%v", err)
	}
}

// Files without a split are the training split, as in the harness's loader; a flag for remote code has no effect.
func TestFilesWithoutSplit(t *testing.T) {
	text := strings.Replace(generate, "test_split: test", "test_split: train", 1)
	for _, files := range []string{"d.jsonl", "[d.jsonl]", "'*.jsonl'"} {
		got, _, err := ask(t, strings.Replace(text, "{data_files: {test: d.jsonl, train: d.jsonl}}",
			"{data_files: "+files+", trust_remote_code: true}", 1), pupils, "", 0)
		if err != nil || len(got) != 2 || !strings.HasPrefix(got[1], "two|") {
			t.Errorf("%s: %q, %v", files, got, err)
		}
	}
	if _, _, err := ask(t, strings.Replace(generate, "{data_files: {test: d.jsonl, train: d.jsonl}}",
		"{data_files: d.jsonl}", 1), pupils, "", 0); err == nil || !strings.Contains(err.Error(), "it has train") {
		t.Errorf("%v", err)
	}
}
