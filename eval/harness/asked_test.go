package harness

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/eval"
)

// pupilTasks are the tasks of a file about the documents pupils.
func pupilTasks(t *testing.T, text string) ([]eval.Task, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "d.jsonl"), pupils)
	write(t, filepath.Join(dir, "t.yaml"), text)
	tasks, _, err := Read(dir)
	return tasks, err
}

// prepareText prepares the task of a file, with examples from the same rows.
func prepareText(t *testing.T, text string) (*eval.Prepared, error) {
	t.Helper()
	tasks, err := pupilTasks(t, text)
	if err != nil {
		return nil, err
	}
	return prepareOne(&tasks[0])
}

// silent is a model that cannot be asked anything.
type silent struct{ error }

func (s silent) Loglikelihood(context.Context, []eval.Continuation) ([]eval.Score, error) {
	return nil, s
}
func (s silent) LoglikelihoodRolling(context.Context, []string) ([]eval.Score, error) { return nil, s }
func (s silent) GenerateUntil(context.Context, []eval.Generation) ([]string, error)   { return nil, s }

// The right continuation of a question of every kind, with the delimiter where the harness puts one, and the error of a
// model that fails.
func TestGoldOfEveryKind(t *testing.T) {
	until := head + "output_type: generate_until\ndoc_to_text: q\n"
	for text, want := range map[string]string{
		choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\ntarget_delimiter: '='\n": "one|=x two|=w",
		choose + "doc_to_text: q\ndoc_to_target: [1, 0]\ndoc_to_choice: c\n":                   "one| y y two| w",
		choose + "doc_to_text: a\ndoc_to_target: s\ndoc_to_choice: c\ntarget_delimiter: '='\n": "x|=un w|=deux",
		head + "output_type: loglikelihood\ndoc_to_text: q\ndoc_to_target: s\n":                "one|un two|deux",
		head + "output_type: loglikelihood_rolling\ndoc_to_text: ''\ndoc_to_target: s\n":       "",
		until + "doc_to_target: s\ntarget_delimiter: '='\n":                                    "one|=un two|=deux",
		until + "doc_to_target: a\ngen_prefix: 'A:'\n":                                         "one A:| 0 two A:| 1",
		until + "doc_to_target: [3, 4]\ntarget_delimiter: ''\n":                                "one|3 two|3",
		until + "doc_to_target: a\ndoc_to_choice: c\ndescription: D\n":                         "Done| x Dtwo| w",
	} {
		j, err := prepareText(t, text)
		if err != nil {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		var got []string
		for _, g := range j.Gold {
			got = append(got, g.Context+"|"+g.Text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s\n%q, want %q", strings.TrimPrefix(text, head), strings.Join(got, " "), want)
		}
		gone := errors.New("gone")
		if _, err := j.Ask(t.Context(), silent{gone}, []int{0, 1}); err == nil || err.Error() != "gone" {
			t.Errorf("%s\na model that fails: %v", strings.TrimPrefix(text, head), err)
		}
	}
}

// What cannot be rendered is named, with the document and the key.
func TestUnrendered(t *testing.T) {
	choices := choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\n"
	const bad = `"{{ q | nosuch }}"`
	for _, c := range []struct{ text, want string }{
		{choices + "description: " + bad + "\n", "document 0: description: "},
		{choices + "gen_prefix: " + bad + "\n", "document 0: gen_prefix: "},
		{strings.Replace(choices, "doc_to_text: q", "doc_to_text: "+bad, 1), "document 0: doc_to_text: "},
		{strings.Replace(choices, "doc_to_target: a", "doc_to_target: "+bad, 1), "document 0: doc_to_target: "},
		{strings.Replace(choices, "doc_to_choice: c", "doc_to_choice: "+bad, 1), "document 0: doc_to_choice: "},
		{choices + "num_fewshot: 1\nfewshot_config: {sampler: first_n, doc_to_text: " + bad + "}\n",
			"document 0: example: doc_to_text: "},
		{choices + "num_fewshot: 1\nfewshot_config: {sampler: first_n, doc_to_target: " + bad + "}\n",
			"document 0: example: doc_to_target: "},
		{choices + "num_fewshot: 1\nfewshot_config: {sampler: first_n, doc_to_choice: " + bad + "}\n",
			"document 0: example: doc_to_choice: "},
		{choices + "num_fewshot: 1\nfewshot_config: {sampler: first_n, gen_prefix: " + bad + "}\n",
			"document 0: example: gen_prefix: "},
		{generate + "filter_list: [{name: n, filter: [{function: nosuch}]}]\n",
			`filter_list: n: the filter "nosuch" is not known; there are lowercase,`},
		{generate + "filter_list: [{name: n, filter: [{function: regex, regex_pattern: '('}]}]\n",
			`filter_list: n: the pattern "(": `},
	} {
		if _, err := prepareText(t, c.text); err == nil || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s\n%v; want %q", strings.TrimPrefix(c.text, head), err, c.want)
		}
	}
}
