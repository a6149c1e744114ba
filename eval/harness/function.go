package harness

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"antiphase/eval"
	"antiphase/eval/task"
)

// Python functions of the harness that task files name. These are our own versions, checked against the harness's by
// golden files; all others are rejected by name. A key is module.function; if the module's name is unspecific (utils),
// it is prefixed with the task's or the folder's name.
type (
	docFunction struct {
		apply func(doc map[string]any) error
	}
	fieldFunction struct {
		apply func(doc map[string]any) (any, error)
	}
	resultFunction struct{ words, bytes func(doc map[string]any) int }
	totalFunction  struct {
		apply func(gold, said []int) float64
	}
)

var docFunctions = map[string]*docFunction{
	"hellaswag.utils.process_docs": {hellaSwag},
}

var fieldFunctions = map[string]*fieldFunction{
	"preprocess_wikitext.wikitext_detokenizer": {func(doc map[string]any) (any, error) {
		page, err := textOf(doc, "page")
		return detokenized(page), err
	}},
	"preprocess_winogrande.doc_to_text": {func(doc map[string]any) (any, error) {
		switch answer, err := textOf(doc, "answer"); answer {
		case "1", "2":
			return int(answer[0] - '1'), nil
		default:
			return nil, errors.Join(err, fmt.Errorf("field \"answer\" is %q, want 1 or 2", answer))
		}
	}},
	"preprocess_winogrande.doc_to_target": {func(doc map[string]any) (any, error) {
		_, after, err := blank(doc)
		return strings.TrimFunc(after, unicode.IsSpace), err
	}},
	"preprocess_winogrande.doc_to_choice": {func(doc map[string]any) (any, error) {
		before, _, err := blank(doc)
		one, err1 := textOf(doc, "option1")
		two, err2 := textOf(doc, "option2")
		return []any{before + one, before + two}, errors.Join(err, err1, err2)
	}},
	"copa.utils.doc_to_text":   {copaText},
	"copa.utils.doc_to_target": {copaTarget},
	"copa.utils.doc_to_choice": {func(doc map[string]any) (any, error) {
		one, err1 := copaChoice(doc, "choice1")
		two, err2 := copaChoice(doc, "choice2")
		return []any{one, two}, errors.Join(err1, err2)
	}},
	"preprocess_wsc.default_doc_to_text": {wscText},
}

var resultFunctions = map[string]*resultFunction{
	// Words and bytes are those of the page before detokenization.
	"preprocess_wikitext.process_results": {
		words: func(doc map[string]any) int { page, _ := textOf(doc, "page"); return task.Words(page) },
		bytes: func(doc map[string]any) int { page, _ := textOf(doc, "page"); return len(page) },
	},
}

var totalFunctions = map[string]*totalFunction{
	"aggregate.cb_multi_fi": {func(gold, said []int) float64 {
		return eval.MacroF1(gold, said, 3)
	}},
}

// find looks up a function by name.
func find[T any](s *spec, folder, key string, v any, known map[string]*T) (*T, error) {
	name, ok := v.(function)
	if !ok {
		return nil, fmt.Errorf("%s: %v is not a function (!function module.name)", key, v)
	}
	for _, full := range []string{string(name), s.name + "." + string(name), folder + "." + string(name)} {
		if f := known[full]; f != nil {
			if !slices.Contains(s.functions, full) {
				s.functions = append(s.functions, full)
			}
			return f, nil
		}
	}
	return nil, fmt.Errorf("%s: the function %s is Python of the task's own, which does not run here; known are %s",
		key, name, strings.Join(sortedKeys(known), ", "))
}

// textOf is a field that must be text.
func textOf(doc map[string]any, field string) (string, error) {
	s, ok := doc[field].(string)
	if !ok {
		return "", fmt.Errorf("field %q is missing or not a text", field)
	}
	return s, nil
}

// hellaSwag adds the prompt, the cleaned endings and the right one's index.
func hellaSwag(doc map[string]any) error {
	activity, err1 := textOf(doc, "activity_label")
	a, err2 := textOf(doc, "ctx_a")
	b, err3 := textOf(doc, "ctx_b")
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	endings, ok := doc["endings"].([]any)
	if !ok {
		return errors.New(`field "endings" is missing or not a list`)
	}
	choices := make([]any, len(endings))
	for i, e := range endings {
		s, ok := e.(string)
		if !ok {
			return fmt.Errorf("ending %d is not a text", i)
		}
		choices[i] = task.CleanWikiHow(s)
	}
	gold, err := strconv.Atoi(fmt.Sprint(doc["label"]))
	if err != nil {
		return fmt.Errorf("field \"label\" is %v, want the index of the right ending", doc["label"])
	}
	doc["query"], doc["choices"], doc["gold"] = task.HellaSwagPrompt(activity, a, b), choices, gold
	return nil
}

// blank splits WinoGrande's sentence at its gap.
func blank(doc map[string]any) (before, after string, err error) {
	s, err := textOf(doc, "sentence")
	before, after, ok := strings.Cut(s, "_")
	if err == nil && !ok {
		err = errors.New(`field "sentence" has no blank "_"`)
	}
	return before, after, err
}

func copaText(doc map[string]any) (any, error) {
	premise, err1 := textOf(doc, "premise")
	question, err2 := textOf(doc, "question")
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return task.COPAPrompt(premise, question)
}

func copaChoice(doc map[string]any, field string) (string, error) {
	s, err := textOf(doc, field)
	if err == nil && s == "" {
		err = fmt.Errorf("field %q is empty", field)
	}
	return task.COPAChoice(s), err
}

func copaTarget(doc map[string]any) (any, error) {
	if simple(doc["label"]) == 0 {
		return copaChoice(doc, "choice1")
	}
	return copaChoice(doc, "choice2")
}

func wscText(doc map[string]any) (any, error) {
	text, err1 := textOf(doc, "text")
	noun, err2 := textOf(doc, "span1_text")
	pronoun, err3 := textOf(doc, "span2_text")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	at, ok := simple(doc["span2_index"]).(int)
	if !ok {
		return nil, fmt.Errorf("field \"span2_index\" is %v, want a number", doc["span2_index"])
	}
	return task.WSCPrompt(text, noun, pronoun, at)
}
