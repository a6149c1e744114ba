package harness

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"antiphase/internal/near"
)

// spec is a parsed task file: every key is used, ignored by name, or rejected.
type spec struct {
	name, group, path string
	kind              string // output_type
	version, shots    int
	hash              string // of the files
	files             []string
	data              source
	splits            struct{ train, valid, test, shots string }
	process           *docFunction
	results           *resultFunction
	ask, shot         form // forms of a question and of an example
	description       any
	sampler           string
	indices           []int
	samples           []map[string]any // examples included in the file
	until             []string
	maxTokens         int
	filters           []pipeline
	metrics           []metric
	functions         []string // functions of the harness that are implemented here
	ignored           []string
}

// form is how a document is rendered as text.
type form struct {
	text, target, choice, prefix any
	targetDelimiter, delimiter   string
}

// Keys of a task file. used have an effect here; idle have none, here or in a plain run of the harness; unable are not
// supported.
var (
	used = strings.Fields(`task dataset_path dataset_name dataset_kwargs training_split validation_split test_split
		fewshot_split process_docs doc_to_text doc_to_target doc_to_choice process_results description
		target_delimiter fewshot_delimiter fewshot_config num_fewshot metric_list output_type generation_kwargs
		repeats filter_list gen_prefix metadata`)
	idle = strings.Fields(
		`task_alias tag should_decontaminate doc_to_decontamination_query group aggregate_metric_list`)
	unable = strings.Fields(`custom_dataset use_prompt doc_to_image doc_to_audio unsafe_code class`)
)

// newSpec reads the keys of a file.
func newSpec(c config) (*spec, error) {
	s := &spec{path: filepath.Base(c.path), group: c.group, files: c.files, version: 1}
	for _, key := range c.keys {
		v := c.at[key]
		switch {
		case slices.Contains(used, key) || v == nil || v == false:
		case slices.Contains(idle, key):
			s.ignored = append(s.ignored, key)
		case slices.Contains(unable, key):
			return nil, fmt.Errorf("%s is not supported", key)
		default:
			if hint := near.Close(key, slices.Concat(used, idle)); hint != "" {
				return nil, fmt.Errorf("key %q is unknown; did you mean %q?", key, hint)
			}
			return nil, fmt.Errorf("key %q is unknown; a task has %s", key, strings.Join(used, ", "))
		}
	}
	k := &keys{object: c.object}
	s.name, s.kind = k.text("task", ""), k.text("output_type", "generate_until")
	s.splits.train, s.splits.valid, s.splits.test = k.text("training_split", ""), k.text("validation_split", ""),
		k.text("test_split", "")
	s.splits.shots = k.text("fewshot_split", "")
	s.description = c.at["description"]
	s.ask = form{text: c.at["doc_to_text"], target: c.at["doc_to_target"], choice: c.at["doc_to_choice"],
		prefix: c.at["gen_prefix"], targetDelimiter: k.text("target_delimiter", " "),
		delimiter: k.text("fewshot_delimiter", "\n\n")}
	if n := k.number("repeats", 1); n != 1 {
		k.fail("repeats is %d; answers are greedy, so one is all there is", n)
	}
	if m, ok := c.at["metadata"].(*object); ok {
		if v, ok := m.at["version"]; ok {
			s.version = max(1, int(math.Round(float(v))))
		}
	}
	s.shots = k.number("num_fewshot", 0)
	if n, ok := c.at["num_fewshot"]; ok && n == 0 {
		s.shots = -1 // nor does the harness let anyone override a zero stated in the file
	}
	s.data = readSource(k, filepath.Dir(c.path), c.root)
	var err error
	if s.hash, err = hashFiles(c.files); err != nil {
		return nil, err
	}
	return s, errors.Join(k.err, s.readParts(k, c), s.check())
}

// readParts reads the structured keys.
func (s *spec) readParts(k *keys, c config) error {
	folder := filepath.Base(filepath.Dir(c.path))
	var err error
	if f, ok := c.at["process_docs"]; ok && f != nil {
		if s.process, err = find(s, folder, "process_docs", f, docFunctions); err != nil {
			return err
		}
	}
	if f, ok := c.at["process_results"]; ok && f != nil {
		if s.results, err = find(s, folder, "process_results", f, resultFunctions); err != nil {
			return err
		}
	}
	for _, f := range []*any{&s.ask.text, &s.ask.target, &s.ask.choice} {
		if name, ok := (*f).(function); ok {
			if *f, err = find(s, folder, "doc_to_…", name, fieldFunctions); err != nil {
				return err
			}
		}
	}
	s.shot = s.ask
	if err := s.readShots(folder, c.at["fewshot_config"]); err != nil {
		return err
	}
	if err := s.readGeneration(c.at["generation_kwargs"]); err != nil {
		return err
	}
	if s.filters, err = readFilters(c.at["filter_list"], s.kind); err != nil {
		return err
	}
	s.metrics, err = readMetrics(s, folder, c.at["metric_list"])
	return errors.Join(err, k.err)
}

// check reports what is missing.
func (s *spec) check() error {
	switch {
	case kinds[s.kind] == nil:
		return fmt.Errorf("output_type is %q; there are %s", s.kind, strings.Join(sortedKeys(kinds), ", "))
	case s.ask.target == nil:
		return errors.New("doc_to_target is missing")
	case s.ask.text == nil && s.kind != "loglikelihood_rolling":
		return errors.New("doc_to_text is missing")
	case s.ask.choice == nil && s.kind == "multiple_choice":
		return errors.New("doc_to_choice is missing")
	case s.splits.test == "" && s.splits.valid == "":
		return errors.New("neither test_split nor validation_split is there: nothing to ask")
	case s.name == "" || strings.ContainsAny(s.name, "/\\ ,."):
		return fmt.Errorf("task: %q cannot be a name; want one without spaces, commas, points and slashes", s.name)
	}
	return nil
}

// readShots reads fewshot_config, whose keys change the form of examples.
func (s *spec) readShots(folder string, v any) error {
	s.sampler = "default"
	if v == nil {
		return nil
	}
	o, ok := v.(*object)
	if !ok {
		return errors.New("fewshot_config: want a mapping")
	}
	k := &keys{object: o}
	for _, key := range o.keys {
		x := o.at[key]
		if x == nil {
			continue
		}
		switch key {
		case "sampler":
			s.sampler = k.text(key, "")
		case "split":
			s.splits.shots = k.text(key, "")
		case "fewshot_indices":
			s.indices = k.numbers(key)
		case "samples":
			list, ok := x.([]any)
			if !ok {
				return fmt.Errorf("fewshot_config: samples: %v cannot be had; want a list of documents", x)
			}
			for _, e := range list {
				doc, ok := plain(e).(map[string]any)
				if !ok {
					return errors.New("fewshot_config: samples: want a list of mappings")
				}
				s.samples = append(s.samples, doc)
			}
		case "doc_to_text", "doc_to_target", "doc_to_choice":
			if name, ok := x.(function); ok {
				f, err := find(s, folder, key, name, fieldFunctions)
				if err != nil {
					return err
				}
				x = f
			}
			*map[string]*any{"doc_to_text": &s.shot.text, "doc_to_target": &s.shot.target,
				"doc_to_choice": &s.shot.choice}[key] = x
		case "gen_prefix":
			s.shot.prefix = x
		case "fewshot_delimiter":
			s.shot.delimiter = k.text(key, "")
		case "target_delimiter":
			s.shot.targetDelimiter = k.text(key, "")
		default:
			return fmt.Errorf("fewshot_config: key %q is not supported", key)
		}
	}
	if s.sampler != "default" && s.sampler != "first_n" {
		return fmt.Errorf("fewshot_config: sampler is %q; want default or first_n", s.sampler)
	}
	return k.err
}

// readGeneration reads generation_kwargs. Decoding is greedy.
func (s *spec) readGeneration(v any) error {
	s.until, s.maxTokens = []string{s.ask.delimiter}, 256 // the harness's own
	if v == nil {
		return nil
	}
	o, ok := v.(*object)
	if !ok {
		return errors.New("generation_kwargs: want a mapping")
	}
	k := &keys{object: o}
	for _, key := range o.keys {
		switch x := o.at[key]; key {
		case "until":
			s.until = texts(x)
		case "max_gen_toks", "max_new_tokens", "max_tokens":
			s.maxTokens = k.number(key, 256)
		case "do_sample":
			if x == true {
				return errors.New("generation_kwargs: do_sample is true; here decoding is greedy")
			}
		case "temperature":
			if float(x) > 0 {
				return fmt.Errorf("generation_kwargs: temperature is %v; here decoding is greedy", x)
			}
		default:
			return fmt.Errorf("generation_kwargs: key %q is not supported", key)
		}
	}
	if s.maxTokens < 1 {
		return fmt.Errorf("generation_kwargs: %d tokens at most; want a positive number", s.maxTokens)
	}
	return k.err
}

// keys reads values of a mapping and keeps the first error.
type keys struct {
	*object
	err error
}

func (k *keys) fail(format string, args ...any) {
	if k.err == nil {
		k.err = fmt.Errorf(format, args...)
	}
}

func (k *keys) text(key, def string) string {
	switch v := k.at[key].(type) {
	case nil:
		return def
	case string:
		return v
	default:
		k.fail("%s: %v is not a text", key, v)
		return def
	}
}

func (k *keys) number(key string, def int) int {
	switch v := k.at[key].(type) {
	case nil:
		return def
	case int:
		return v
	default:
		k.fail("%s: %v is not a whole number", key, v)
		return def
	}
}

func (k *keys) numbers(key string) (out []int) {
	list, ok := k.at[key].([]any)
	for _, x := range list {
		n, isInt := x.(int)
		ok = ok && isInt
		out = append(out, n)
	}
	if !ok {
		k.fail("%s: want a list of whole numbers", key)
	}
	return out
}

func float(v any) float64 {
	switch v := v.(type) {
	case int:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// plain converts a value of a file to the form used in documents.
func plain(v any) any {
	switch v := v.(type) {
	case *object:
		m := map[string]any{}
		for _, key := range v.keys {
			m[key] = plain(v.at[key])
		}
		return m
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	}
	return v
}
