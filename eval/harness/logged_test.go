package harness

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"antiphase/eval"
)

// What is kept of a sample on request, for every kind: the requests, what is right and what the model said, by hand.
func TestSamplesByHand(t *testing.T) {
	for text, want := range map[string]string{
		choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\n": "map[contexts:[one] continuations:[ x  y y] " +
			"right:[0] scores:[{-2 1 false} {-4 1 true}]]; map[contexts:[two] continuations:[ zz  w] right:[1] " +
			"scores:[{-3 1 false} {-2 1 false}]]",
		choose + "doc_to_text: a\ndoc_to_target: s\ndoc_to_choice: c\n": "map[contexts:[x y y] continuations:[ un  " +
			"un] right:[0] scores:[{-3 1 false} {-3 1 false}]]; map[contexts:[zz w] continuations:[ deux  deux] " +
			"right:[1] scores:[{-5 1 false} {-5 1 false}]]",
		head + "output_type: loglikelihood\ndoc_to_text: q\ndoc_to_target: s\n": "map[context:one continuation:un " +
			"score:{-2 1 false}]; map[context:two continuation:deux score:{-4 1 false}]",
		head + "output_type: loglikelihood_rolling\ndoc_to_target: s\n": "map[score:{-4 1 false} text:un]; " +
			"map[score:{-8 1 false} text:deux]",
		generate +
			"filter_list: [{name: low, filter: [{function: lowercase}]}, {name: none, filter: [{function: " +
			"take_first}]}]\n": "map[filtered:map[low:so " +
			"none:So] prompt:one text:So wanted:[0]]; map[filtered:map[low:so none:So] prompt:two text:So wanted:[1]]",
	} {
		_, _, r := asked(t, text, "So", eval.Options{Shots: -1, LogSamples: true})
		var got []string
		for i, a := range r.Answers {
			if a.ID != fmt.Sprint(i) {
				t.Errorf("sample %d is %q", i, a.ID)
			}
			got = append(got, fmt.Sprint(a.Doc))
		}
		if s := strings.Join(got, "; "); s != want {
			t.Errorf("%s\nlogs %s\nwant %s", strings.TrimPrefix(text, head), s, want)
		}
	}
}

// Questions may be asked in any order and apart: each has the answer that it has among all.
func TestAskedInAnyOrder(t *testing.T) {
	for _, text := range []string{choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\n", head +
		"output_type: loglikelihood\ndoc_to_text: q\ndoc_to_target: s\n",
		head + "output_type: loglikelihood_rolling\ndoc_to_target: s\n", generate} {
		j, err := prepareText(t, text)
		if err != nil {
			t.Fatal(err)
		}
		all, err := j.Ask(t.Context(), &told{text: "1"}, []int{0, 1})
		if err != nil || len(all) != 2 || reflect.DeepEqual(all[0], all[1]) {
			t.Fatalf("%s\n%+v, %v", strings.TrimPrefix(text, head), all, err)
		}
		for _, which := range [][]int{{1}, {1, 0}, {1, 1, 0}} {
			got, err := j.Ask(t.Context(), &told{text: "1"}, which)
			if err != nil || len(got) != len(which) {
				t.Fatalf("%v: %+v, %v", which, got, err)
			}
			for i, w := range which {
				if !reflect.DeepEqual(got[i], all[w]) {
					t.Errorf("%s\n%v: answer %d is %+v, want %+v", strings.TrimPrefix(text, head), which, i,
						got[i], all[w])
				}
			}
		}
	}
}

// A limit is one of the questions, in their order; examples still come from all documents.
func TestLimit(t *testing.T) {
	text := head + "output_type: generate_until\ndoc_to_text: q\ndoc_to_target: s\nfewshot_split: train\n" +
		"fewshot_config: {sampler: first_n}\nnum_fewshot: 2\n"
	for limit, want := range map[int]int{0: 2, 1: 1, 2: 2, 3: 2} {
		_, m, r := asked(t, text, "", eval.Options{Shots: -1, Limit: limit})
		if len(m.asked) != want || r.N != want || !strings.HasPrefix(m.asked[0], "one un\n\ntwo deux\n\none|") {
			t.Errorf("%d of 2: %d samples, %q", limit, r.N, m.asked)
		}
	}
}

// A result says where its questions come from: the data, the kind, the functions of the harness, each once in the order
// of use, and a hash of the task file and of all that it includes.
func TestConfigOfAResult(t *testing.T) {
	copa := head + "output_type: multiple_choice\ndoc_to_text: !function copa.utils.doc_to_text\n" +
		"doc_to_target: !function copa.utils.doc_to_target\ndoc_to_choice: !function copa.utils.doc_to_choice\n" +
		"fewshot_config: {doc_to_text: !function copa.utils.doc_to_text}\n"
	rows := `{"premise": "It rained.", "question": "cause", "choice1": "Clouds came.", "choice2": "Dry.", "label": 1}` +
		"\n"
	config := func(part, own string) (out string, hash any) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "d.jsonl"), rows)
		write(t, filepath.Join(dir, "t.yaml"),
			"include: part\n"+strings.Replace(copa, head, "task: mine\ntest_split: test\n", 1)+own)
		write(t, filepath.Join(dir, "part"), part)
		write(t, filepath.Join(dir, "data", "org", "set", "test.jsonl"), rows)
		c := run(t, tasksOf(t, dir)["mine"], &told{}, eval.Options{Shots: -1, Data: filepath.Join(dir, "data")}).Config
		return fmt.Sprint(c["source"], "; ", c["output_type"], "; ", c["functions"]), c["task_file"]
	}
	const functions = "copa.utils.doc_to_text, copa.utils.doc_to_target, copa.utils.doc_to_choice"
	local := "dataset_path: json\ndataset_kwargs: {data_files: {test: [d.jsonl, d.jsonl]}}\n"
	got, first := config(local, "")
	if want := "d.jsonl d.jsonl; multiple_choice; " + functions; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, again := config(local, ""); again != first || len(fmt.Sprint(first)) != 16 {
		t.Errorf("the same files have the hashes %v and %v", first, again)
	}
	if _, other := config(local+"# changed\n", ""); other == first {
		t.Error("another included file has the same hash")
	}
	if _, other := config(local, "# changed\n"); other == first {
		t.Error("another file has the same hash")
	}
	if got, _ := config("dataset_path: org/set\n", ""); got != "org/set; multiple_choice; "+functions {
		t.Errorf("below --data: %s", got)
	}
	_, _, r := asked(t, generate, "", eval.Options{Shots: -1})
	if f, ok := r.Config["functions"]; ok {
		t.Errorf("a task without functions has %v", f)
	}
}

// The chance of guessing right is the mean over questions of the share of right choices.
func TestChance(t *testing.T) {
	rows := `{"q": "1", "a": [0, 1], "c": ["x", "y", "z"]}` + "\n" + `{"q": "2", "a": [3], "c": ["x", "y", "z", "v"]}` +
		"\n"
	dir := t.TempDir()
	write(t, filepath.Join(dir, "d.jsonl"), rows)
	write(t, filepath.Join(dir, "t.yaml"), choose+"doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\n"+
		"metric_list: [{metric: acc}, {metric: acc_norm}, {metric: acc_bytes}, {metric: exact_match}]\n")
	write(t, filepath.Join(dir, "u.yaml"), strings.Replace(generate, "mine", "text", 1)+"doc_to_choice: c\n")
	write(t, filepath.Join(dir, "l.yaml"),
		strings.Replace(head, "mine", "likely",
			1)+"output_type: loglikelihood\ndoc_to_text: q\ndoc_to_target: q\ndoc_to_choice: c\n")
	tasks := tasksOf(t, dir)
	for _, m := range run(t, tasks["mine"], &told{}, eval.Options{Shots: -1}).Metrics {
		chance, ok := m.Floors["chance"]
		if want := (2./3 + 1./4) / 2; ok != (m.Name != "exact_match") || ok &&
			!(chance-want < 1e-12 && want-chance < 1e-12) {
			t.Errorf("%s by chance: %v %v, want %v", m.Name, chance, ok, want)
		}
	}
	for _, name := range []string{"text", "likely"} {
		for _, m := range run(t, tasks[name], &told{}, eval.Options{Shots: -1}).Metrics {
			if len(m.Floors) > 0 {
				t.Errorf("%s has the floors %v", name, m.Floors)
			}
		}
	}
}
