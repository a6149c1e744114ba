package harness

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
)

// told answers by a rule and keeps what it was asked.
type told struct {
	asked []string
	text  string // what it generates
}

func (m *told) Loglikelihood(_ context.Context, reqs []eval.Continuation) ([]eval.Score, error) {
	out := make([]eval.Score, len(reqs))
	for i, r := range reqs {
		m.asked = append(m.asked, r.Context+"|"+r.Text)
		out[i] = eval.Score{LogProb: -float64(len(r.Text)), Tokens: 1, Greedy: strings.HasSuffix(r.Text, "y")}
	}
	return out, nil
}

func (m *told) LoglikelihoodRolling(_ context.Context, texts []string) ([]eval.Score, error) {
	m.asked = append(m.asked, texts...)
	out := make([]eval.Score, len(texts))
	for i, s := range texts {
		out[i] = eval.Score{LogProb: -float64(2 * len(s)), Tokens: 1}
	}
	return out, nil
}

func (m *told) GenerateUntil(_ context.Context, reqs []eval.Generation) ([]string, error) {
	out := make([]string, len(reqs))
	for i, r := range reqs {
		m.asked = append(m.asked, fmt.Sprintf("%s|%q %d", r.Prompt, r.Until, r.MaxTokens))
		out[i] = m.text
	}
	return out, nil
}

// ask writes a task and its documents, asks it, and returns the requests and the metrics.
func ask(t *testing.T, text, rows, said string, shots int) ([]string, map[string]float64, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "d.jsonl"), rows)
	write(t, filepath.Join(dir, "t.yaml"), text)
	tasks, _, err := Read(dir)
	if err != nil {
		return nil, nil, err
	}
	if _, err := prepareOne(&tasks[0]); err != nil {
		return nil, nil, err
	}
	m := &told{text: said}
	r := run(t, tasks[0], m, eval.Options{Shots: shots})
	got := map[string]float64{}
	for _, x := range r.Metrics {
		got[x.Name] = x.Value
	}
	return m.asked, got, nil
}

const (
	head = "task: mine\ndataset_path: json\ndataset_kwargs: {data_files: {test: d.jsonl, train: d.jsonl}}\n" +
		"test_split: test\n"
	choose   = head + "output_type: multiple_choice\n"
	generate = head + "doc_to_text: q\ndoc_to_target: a\n"
	pupils   = `{"q": "one", "a": 0, "c": ["x", "y y"], "s": "un"}` + "\n" +
		`{"q": "two", "a": 1, "c": ["zz", "w"], "s": "deux"}` + "\n"
)

// keyCases are task files with one key more or less, a number of examples, and the requests.
var keyCases = map[string]struct {
	text  string
	shots int
	want  []string
}{
	"columns": {choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\n", 0,
		[]string{"one| x", "one| y y", "two| zz", "two| w"}},
	"templates": {choose +
		"doc_to_text: 'Q {{q}}'\ndoc_to_target: '{{a}}'\ndoc_to_choice: \"{{['+' + q, '-']}}\"\n",
		0, []string{"Q one| +one", "Q one| -", "Q two| +two", "Q two| -"}},
	"mapping of choices": {choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: {b: no way, a: yes sir}\n", 0,
		[]string{"one| no way", "one| yes sir", "two| no way", "two| yes sir"}},
	"delimiter": {choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\ntarget_delimiter: ''\n", 0,
		[]string{"one|x", "one|y y", "two|zz", "two|w"}},
	"prefix": {choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\ngen_prefix: 'So'\n", 0,
		[]string{"one So| x", "one So| y y", "two So| zz", "two So| w"}},
	"prefix of its own space": {choose +
		"doc_to_text: '{{q}} '\ndoc_to_target: a\ndoc_to_choice: c\ngen_prefix: s\n", 0,
		[]string{"one un| x", "one un| y y", "two deux| zz", "two deux| w"}},
	"description": {choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\ndescription: 'Of {{s}}: '\n", 0,
		[]string{"Of un: one| x", "Of un: one| y y", "Of deux: two| zz", "Of deux: two| w"}},
	"description of a field": {choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\ndescription: s\n", 0,
		[]string{"unone| x", "unone| y y", "deuxtwo| zz", "deuxtwo| w"}},
	"contexts": {choose + "doc_to_text: '{{a}}'\ndoc_to_target: s\ndoc_to_choice: c\n", 0,
		[]string{"x| un", "y y| un", "zz| deux", "w| deux"}},
	"first example": {choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\nfewshot_split: train\n" +
		"fewshot_config: {sampler: first_n}\n", 1,
		[]string{"one x\n\none| x", "one x\n\none| y y", "one x\n\ntwo| zz", "one x\n\ntwo| w"}},
	"an example is not the question": {choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\n" +
		"fewshot_split: test\nfewshot_config: {sampler: first_n}\n", 1,
		[]string{"two w\n\none| x", "two w\n\none| y y", "one x\n\ntwo| zz", "one x\n\ntwo| w"}},
	"delimiters of examples": {choose +
		"doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\nfewshot_split: train\nfewshot_delimiter: '; '\n" +
		"fewshot_config: {sampler: first_n, target_delimiter: '='}\n", 1,
		[]string{"one=x; one| x", "one=x; one| y y", "one=x; two| zz", "one=x; two| w"}},
	"form of examples": {choose +
		"doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\nfewshot_config: {split: train, sampler: first_n, " +
		"doc_to_text: 'E {{q}}', doc_to_target: 1, doc_to_choice: ['n', 'm'], fewshot_delimiter: '/'}\n", 1,
		[]string{"E one m/one| x", "E one m/one| y y", "E one m/two| zz", "E one m/two| w"}},
	"prefix of examples": {choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\n" +
		"fewshot_config: {split: train, sampler: first_n, gen_prefix: 'So'}\n", 1,
		[]string{"one So x\n\none| x", "one So x\n\none| y y", "one So x\n\ntwo| zz", "one So x\n\ntwo| w"}},
	"prefix of examples after a space": {choose + "doc_to_text: '{{q}} '\ndoc_to_target: a\ndoc_to_choice: c\n" +
		"fewshot_config: {split: train, sampler: first_n, gen_prefix: 'So '}\n", 1,
		[]string{"one So x\n\none | x", "one So x\n\none | y y", "one So x\n\ntwo | zz", "one So x\n\ntwo | w"}},
	"samples": {choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\n" +
		"fewshot_config: {sampler: first_n, samples: [{q: S, a: 0, c: [k]}]}\n", 1,
		[]string{"S k\n\none| x", "S k\n\none| y y", "S k\n\ntwo| zz", "S k\n\ntwo| w"}},
	"indices": {choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\n" +
		"fewshot_config: {split: train, fewshot_indices: [1]}\n", 1,
		[]string{"two w\n\none| x", "two w\n\none| y y", "two w\n\ntwo| zz", "two w\n\ntwo| w"}},
	"a prefix after contexts": {choose +
		"doc_to_text: '{{a}}'\ndoc_to_target: s\ndoc_to_choice: c\ngen_prefix: ' so'\n", 0,
		[]string{"x so| un", "y y so| un", "zz so| deux", "w so| deux"}},
	"indices of the first": {choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\n" +
		"fewshot_config: {split: train, sampler: first_n, fewshot_indices: [1]}\n", 1,
		[]string{"one x\n\none| x", "one x\n\none| y y", "one x\n\ntwo| zz", "one x\n\ntwo| w"}},
	"samples of any depth": {choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\n" +
		"fewshot_config: {sampler: first_n, doc_to_text: '{{d.e.f}}{{d.l[1].g}}', samples: [{a: 0, c: [k], d: " +
		"{e: {f: S}, l: [1, {g: T}]}}]}\n", 1,
		[]string{"ST k\n\none| x", "ST k\n\none| y y", "ST k\n\ntwo| zz", "ST k\n\ntwo| w"}},
	"tags of YAML": {choose + "doc_to_text: !!str q\ndoc_to_target: !!int 1\ndoc_to_choice: !!seq [p, !other r]\n",
		0, []string{"one| p", "one| r", "two| p", "two| r"}},
	"contexts of examples": {choose + "doc_to_text: '{{a}}'\ndoc_to_target: s\ndoc_to_choice: c\n" +
		"fewshot_split: train\nfewshot_config: {sampler: first_n}\n", 1,
		[]string{"x un\n\nx| un", "x un\n\ny y| un", "x un\n\nzz| deux", "x un\n\nw| deux"}},
	"likelihood": {head + "output_type: loglikelihood\ndoc_to_text: q\ndoc_to_target: s\n", 0,
		[]string{"one|un", "two|deux"}},
	"rolling":  {head + "output_type: loglikelihood_rolling\ndoc_to_target: s\n", 0, []string{"un", "deux"}},
	"generate": {generate, 0, []string{"one|[\"\\n\\n\"] 256", "two|[\"\\n\\n\"] 256"}},
	"its settings": {generate +
		"generation_kwargs: {until: ['.', Q], max_gen_toks: 7, do_sample: false, temperature: 0.0}\n", 0,
		[]string{`one|["." "Q"] 7`, `two|["." "Q"] 7`}},
	"its delimiter": {generate + "fewshot_delimiter: '#'\n", 0, []string{`one|["#"] 256`, `two|["#"] 256`}},
	"validation": {strings.Replace(generate, "test_split: test", "validation_split: train", 1), 0,
		[]string{"one|[\"\\n\\n\"] 256", "two|[\"\\n\\n\"] 256"}},
}

// TestEveryKey: each key of a file changes the requests as lm-evaluation-harness describes it, and nothing else.
func TestEveryKey(t *testing.T) {
	for name, c := range keyCases {
		got, _, err := ask(t, c.text, pupils, "", c.shots)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v\nwant %q", name, got, err, c.want)
		}
	}
}

const (
	columnsTask = choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\n"
	allMetrics  = "metric_list: [{metric: acc}, {metric: acc_norm}, {metric: acc_bytes}, {metric: exact_match}, " +
		"{metric: f1}, {metric: mcc}]\n"
	scoredRows = `{"q": "1", "a": 0, "c": ["x", "éééé"]}` + "\n" + `{"q": "2", "a": 1, "c": ["mm", "nny"]}` + "\n" +
		`{"q": "3", "a": [1, 0], "c": ["oy", "pppy"]}` + "\n" +
		`{"q": "4", "a": 1, "c": ["k", "lll"]}` + "\n"
)

// metricCases are task files, documents and what the model says, with the figures that follow.
var metricCases = map[string]struct {
	text, rows, said string
	want             map[string]float64
}{
	// Scores with the delimiter: −2 −9; −3 −4; −3 −5; −2 −4. By character: −2 −9/4; −3/2 −4/3; −3/2 −5/4; −2 −4/3.
	// By byte: −2 −9/8; the others as by character. The first choice is said each time: gold 0 1 1 1, said 0 0 0 0.
	"choices": {columnsTask + allMetrics, scoredRows, "",
		map[string]float64{"acc": 0.5, "acc_norm": 1, "acc_bytes": 0.75, "exact_match": 0.5, "f1": 0, "mcc": 0}},
	"usual": {columnsTask, scoredRows, "", map[string]float64{"acc": 0.5, "acc_norm": 1}},
	"likelihood": {head + "output_type: loglikelihood\ndoc_to_text: q\ndoc_to_target: '{{q}}y'\n", scoredRows, "",
		map[string]float64{"perplexity": math.Exp(2), "acc": 1}},
	"rolling": {head + "output_type: loglikelihood_rolling\ndoc_to_target: q\n", `{"q": "a b c"}` + "\n" +
		`{"q": "d"}` + "\n", "", map[string]float64{"word_perplexity": math.Exp(12. / 4),
		"byte_perplexity": math.Exp(2), "bits_per_byte": 2 / math.Ln2}},
	"generate": {generate, `{"q": "1", "a": "7"}` + "\n" + `{"q": "2", "a": "8"}` + "\n", "7",
		map[string]float64{"exact_match": 0.5}},
	"no trimming": {generate, `{"q": "1", "a": "7"}` + "\n", " 7", map[string]float64{"exact_match": 0}},
	"an index":    {generate, `{"q": "1", "a": 7}` + "\n", "7", map[string]float64{"exact_match": 1}},
	"several": {generate, `{"q": "1", "a": ["6", "7"]}` + "\n" + `{"q": "2", "a": ["", "7 "]}` + "\n" +
		`{"q": "3", "a": ["77", "8"]}` + "\n", "7", map[string]float64{"exact_match": 1. / 3}},
	"ignored case": {generate + "metric_list: [{metric: exact_match, ignore_case: true}]\n",
		`{"q": "1", "a": "οδος"}` + "\n" + `{"q": "1", "a": "οδοσ"}` + "\n", "ΟΔΟΣ",
		map[string]float64{"exact_match": 0.5}},
	"ignored twice": {generate + "metric_list: [{metric: exact_match, regexes_to_ignore: ['x', ' ']}]\n",
		`{"q": "1", "a": "a x b"}` + "\n" + `{"q": "1", "a": "ab x"}` + "\n" + `{"q": "1", "a": "axc"}` +
			"\n", "xa  xbx", map[string]float64{"exact_match": 2. / 3}},
	"ignored": {generate + "metric_list: [{metric: exact_match, ignore_case: true, ignore_punctuation: true, " +
		"ignore_numbers: true, regexes_to_ignore: ['\\$', 'x+']}]\n",
		`{"q": "1", "a": "Abc"}` + "\n" + `{"q": "1", "a": "abd"}` + "\n", "$aB(c)! 12xx",
		map[string]float64{"exact_match": 0}},
	"ignored but for a space": {generate + "metric_list: [{metric: exact_match, ignore_case: true, " +
		"ignore_punctuation: true, ignore_numbers: true, regexes_to_ignore: ['\\$', 'x+']}]\n",
		`{"q": "1", "a": "Abc"}` + "\n" + `{"q": "1", "a": "abd"}` + "\n", "$aB(c)!12xx",
		map[string]float64{"exact_match": 0.5}},
	"ignored before the case": {generate +
		"metric_list: [{metric: exact_match, ignore_case: true, regexes_to_ignore: ['X+', 'y']}]\n",
		`{"q": "1", "a": "abxY"}` + "\n" + `{"q": "1", "a": "abx"}` + "\n", "aXXbxY",
		map[string]float64{"exact_match": 0.5}},
	"not ignored": {generate + "metric_list: [{metric: exact_match, ignore_case: false, ignore_punctuation: " +
		"false, ignore_numbers: false}]\n",
		`{"q": "1", "a": "a"}` + "\n" + `{"q": "1", "a": "a."}` + "\n" + `{"q": "1", "a": "A"}` + "\n" +
			`{"q": "1", "a": "a1"}` + "\n", "a", map[string]float64{"exact_match": 0.25}},
	"filters": {generate + "filter_list: [{name: up, filter: [{function: regex, regex_pattern: '([a-z]+)', " +
		"group_select: -1}, {function: uppercase}, {function: take_first}]}, {name: low, filter: [{function: " +
		"lowercase}, {function: remove_whitespace}, {function: take_first_k, k: 1}]}, {name: map, filter: " +
		"[{function: remove_whitespace}, {function: map, mapping_dict: {ONE two: x}, default_value: y}]}]\n",
		`{"q": "1", "a": "TWO"}` + "\n" + `{"q": "1", "a": "one two"}` + "\n" + `{"q": "1", "a": "x"}` + "\n" +
			`{"q": "1", "a": "y"}` + "\n", " ONE two\n",
		map[string]float64{"exact_match,up": 0.25, "exact_match,low": 0.25, "exact_match,map": 0.25}},
}

// TestMetricsByHand: the figures of requests whose scores are known. The log-probability of a continuation is minus its
// length, of a text minus twice its length, and what ends in y is greedy.
func TestMetricsByHand(t *testing.T) {
	for name, c := range metricCases {
		_, got, err := ask(t, c.text, c.rows, c.said, 0)
		same := maps.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
		if err != nil || !same {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
}

// Filters of answers, against Python's re.findall and str.
func TestFilters(t *testing.T) {
	step := func(pairs ...any) *keys {
		o := newObject()
		for i := 0; i < len(pairs); i += 2 {
			o.set(pairs[i].(string), pairs[i+1])
		}
		return &keys{object: o}
	}
	table := newObject()
	table.set("a", 1)
	for _, c := range []struct {
		k        *keys
		in, want string
	}{
		{step("function", "regex"), "#### 1,200 #### 7", "1,200"},
		{step("function", "regex"), "none", "[invalid]"},
		{step("function", "regex", "group_select", -1), "#### 1 #### -7.5", "-7.5"},
		{step("function", "regex", "group_select", 1), "#### 1 #### 7", "7"},
		{step("function", "regex", "group_select", 2, "fallback", "?"), "#### 1 #### 7", "?"},
		{step("function", "regex", "group_select", -3, "fallback", "?"), "#### 1 #### 7", "?"},
		{step("function", "regex", "regex_pattern", "a(?P<x>b*)|c(d)"), "acd", "[invalid]"},
		{step("function", "regex", "regex_pattern", "a(?P<x>b*)|c(d)", "group_select", 1), "acd", "d"},
		{step("function", "regex", "regex_pattern", `\w+\Z`), "one two", "two"},
		{step("function", "regex", "regex_pattern", `\w+\Z`), "one two\n", "[invalid]"}, // unlike $
		{step("function", "regex", "regex_pattern", `\w+$`), "one two\n", "two"},
		{step("function", "regex", "regex_pattern", ` .`), "x y", "y"},
		{step("function", "map", "mapping_dict", table), "a", "1"},
		{step("function", "map", "mapping_dict", table), "b", "None"},
		{step("function", "map", "mapping_dict", table, "default_value", 3), "b", "3"},
		{step("function", "remove_whitespace"), "\t a b\n", "a b"},
		{step("function", "lowercase"), "Abc ÄΟΔΟΣ İ", "abc äοδος i\u0307"},
		{step("function", "uppercase"), "abc straße ﬁ ǆ", "ABC STRASSE FI Ǆ"},
	} {
		f, err := readFilter(c.k)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f(c.in); err != nil || got != c.want {
			t.Errorf("%v of %q: %q, %v; want %q", c.k.at, c.in, got, err, c.want)
		}
	}
	for _, k := range []*keys{step("function", "take_first"), step("function", "majority_vote"),
		step("function", "take_first_k"), step("function", "take_first_k", "k", 1)} {
		if f, err := readFilter(k); f != nil || err != nil {
			t.Errorf("%v: %v", k.at, err)
		}
	}
	for _, k := range []*keys{step("function", "take_first_k", "k", 2), step("function", "map"),
		step("function", "regex", "regex_pattern", "("), step("function", "regex", "group_select", "x"),
		step("function", 3)} {
		if _, err := readFilter(k); err == nil {
			t.Errorf("%v passes", k.at)
		}
	}
}

// Python's literals, and what is none.
func TestLiterals(t *testing.T) {
	for in, want := range map[string]any{
		"True": 1, "False": 0, "None": nil, "7": 7, "-7": -7, "0": 0, "1.5": 1.5, "07": 7.0, "1e3": 1000.0,
		" ( 1 , 'a' ) ": []any{1, "a"}, "(1, 2.5)": []any{1, 2.5}, "[True, None]": []any{1, nil},
		"(False)": []any{0},
		"[]":      []any{}, "[1,]": []any{1}, "[[1], ('b',)]": []any{[]any{1}, []any{"b"}}, `'it\'s'`: "it's",
		`"a\tb\n\\"`:             "a\tb\n\\",
		`'\x41\u00e9\U0001F600'`: "Aé😀", `'\d\xzz'`: `\d\xzz`, `"é'"`: "é'", `'\a\b\f\v\r\"'`: "\a\b\f\v\r\"",
		"'a\\\nb'": "ab",
	} {
		if got, err := literal(in); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, %v; want %#v", in, got, err, want)
		}
	}
	for _, in := range []string{"", " ", "[", "[1", "[1 2]", "(1]", "'a", `'a\`, `'\x4`, `"\u00e`, `['\U0001F60`, "x",
		"1 2", "[1] 2", "'a' 'b'", strings.Repeat("[", maxDepth+2) + strings.Repeat("]", maxDepth+2)} {
		if v, err := literal(in); err == nil {
			t.Errorf("%q is %#v", in, v)
		}
	}
	if _, err := literal(strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)); err != nil {
		t.Error(err)
	}
}
