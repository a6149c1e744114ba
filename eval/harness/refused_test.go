package harness

import (
	"strings"
	"testing"
)

// refusedKeys are task files with a value that a key cannot have, and what the error says.
var refusedKeys = []struct{ text, want string }{
	{columnsTask + "fewshot_config: 3\n", "fewshot_config: want a mapping"},
	{columnsTask + "fewshot_config: {fewshot_indices: 3}\n", "fewshot_indices: want a list of whole numbers"},
	{columnsTask + "fewshot_config: {fewshot_indices: [a]}\n", "fewshot_indices: want a list of whole numbers"},
	{columnsTask + "num_fewshot: 1\nfewshot_config: {fewshot_indices: [2]}\n",
		"fewshot_indices has 2; there are 2 documents"},
	{columnsTask + "num_fewshot: 1\nfewshot_config: {fewshot_indices: [-1]}\n",
		"fewshot_indices has -1; there are 2 documents"},
	{columnsTask + "fewshot_config: {samples: 3}\n", "samples: 3 cannot be had"},
	{columnsTask + "fewshot_config: {samples: [3]}\n", "samples: want a list of mappings"},
	{columnsTask + "fewshot_config: {other: 3}\n", `fewshot_config: key "other" is not supported`},
	{columnsTask + "fewshot_config: {doc_to_text: !function utils.x}\n", "doc_to_text: the function utils.x"},
	{columnsTask + "num_fewshot: 2\nfewshot_split: test\nfewshot_config: {sampler: first_n}\n",
		"2 examples are asked for, there are 1"},
	{columnsTask + "num_fewshot: 2\nfewshot_split: test\n",
		"2 examples are asked for, there are 2 documents to draw from"},
	{columnsTask + "num_fewshot: x\n", "num_fewshot: x is not a whole number"},
	{columnsTask + "target_delimiter: 3\n", "target_delimiter: 3 is not a text"},
	{columnsTask + "filter_list: 3\n", "filter_list: want a list"},
	{columnsTask + "filter_list: [3]\n", "filter_list: want a list of mappings"},
	{columnsTask + "filter_list: [{name: x}]\n", "an entry has no name or no filter"},
	{columnsTask + "filter_list: [{filter: []}]\n", "an entry has no name or no filter"},
	{columnsTask + "filter_list: [{name: x, filter: [3]}]\n", "filter_list: x: want a list of mappings"},
	{columnsTask + "filter_list: [{name: x, filter: [{function: lowercase}]}]\n",
		"multiple_choice has no text to filter"},
	{columnsTask + "metric_list: 3\n", "metric_list: want a list"},
	{columnsTask + "metric_list: []\n", "metric_list: want a list"},
	{columnsTask + "metric_list: [3]\n", "metric_list: want a list of mappings"},
	{columnsTask + "metric_list: [{metric: !function m.x}]\n", "the metric m.x is Python"},
	{columnsTask + "metric_list: [{metric: acc, higher_is_better: false}]\n", "higher_is_better is false"},
	{columnsTask + "metric_list: [{metric: acc, other: 3}]\n", `acc: key "other" is not supported`},
	{columnsTask + "metric_list: [{metric: exact_match, regexes_to_ignore: ['(']}]\n", "the pattern"},
	{columnsTask + "metric_list: [{metric: acc, aggregation: !function m.x}]\n", "aggregation: the function m.x"},
	{generate + "generation_kwargs: 3\n", "generation_kwargs: want a mapping"},
	{generate + "generation_kwargs: {max_gen_toks: -3}\n", "-3 tokens at most"},
	{generate + "generation_kwargs: {max_gen_toks: 0}\n", "0 tokens at most"},
	{generate + "generation_kwargs: {temperature: 0.5}\n", "temperature is 0.5"},
	{generate + "generation_kwargs: {top_p: 1}\n", `generation_kwargs: key "top_p" is not supported`},
	{strings.Replace(generate, "doc_to_target: a\n", "", 1), "doc_to_target is missing"},
	{strings.Replace(generate, "doc_to_text: q\n", "", 1), "doc_to_text is missing"},
	{strings.Replace(columnsTask, "doc_to_choice: c\n", "", 1), "doc_to_choice is missing"},
	{strings.Replace(columnsTask, "dataset_path: json\n", "", 1), "dataset_path is missing"},
	{strings.Replace(columnsTask, "dataset_kwargs: {", "dataset_kwargs: {other: 3, ", 1),
		`dataset_kwargs: key "other" is not supported`},
	{strings.Replace(columnsTask, "dataset_kwargs: {", "dataset_kwargs: {other: {a: 3}, ", 1),
		`dataset_kwargs: key "other" is not supported`},
	{strings.Replace(columnsTask, "doc_to_choice: c", "doc_to_choice: []", 1), "is not a list of choices"},
	{strings.Replace(columnsTask, "doc_to_choice: c", "doc_to_choice: ['', a]", 1), "a choice is empty"},
	{strings.Replace(columnsTask, "doc_to_choice: c", "doc_to_choice: 'x {{q}}'", 1), `"x one" is not a list`},
	{strings.Replace(columnsTask, "doc_to_target: a", "doc_to_target: []", 1), "doc_to_target gives no choice"},
	{strings.Replace(columnsTask, "doc_to_target: a", "doc_to_target: 2", 1), "which is none of the 2 choices"},
	{strings.Replace(columnsTask, "doc_to_target: a", "doc_to_target: -1", 1), "which is none of the 2 choices"},
	{strings.Replace(columnsTask, "doc_to_text: q", "doc_to_text: c", 1), "want a text"},
	{strings.Replace(columnsTask, "doc_to_text: q", "doc_to_text: 2", 1), "the index 2 is outside of 2 choices"},
	{strings.Replace(generate, "doc_to_target: a", "doc_to_target: []", 1), "doc_to_target gives no answer"},
	{strings.Replace(generate, "doc_to_target: a", "doc_to_target: 1.5", 1),
		"want a text or the index of a choice"},
}

// TestEveryKeyRefused: a value that a key cannot have is an error that names the key.
func TestEveryKeyRefused(t *testing.T) {
	for _, c := range refusedKeys {
		_, _, err := ask(t, c.text, pupils, "", 0)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n%v; want %q", strings.TrimPrefix(c.text, head), err, c.want)
		}
	}
	for rows, want := range map[string]string{"": "no documents", `{"q": "x"}` + "\n" +
		`{"a": 0, "q": "x", "c": ["x"]}` + "\n": `field "a" is missing`} {
		if _, _, err := ask(t, columnsTask, rows, "", 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", rows, err)
		}
	}
}
