package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"antiphase/data"
	"antiphase/tokenizer/chat"
)

// fields turns documents into text. The names of the documents' columns are known: a text that equals one of them means
// the column.
type fields struct {
	columns   map[string]bool
	choices   bool // doc_to_choice is present: digits are then an index
	templates map[string]*chat.Template
}

// render fills a template.
func (f *fields) render(source string, doc map[string]any) (string, error) {
	if !strings.Contains(source, "{") {
		return source, nil
	}
	t := f.templates[source]
	if t == nil {
		var err error
		if t, err = chat.ParseText(source); err != nil {
			return "", err
		}
		f.templates[source] = t
	}
	return t.RenderText(doc)
}

// text is doc_to_text: the question, or the index of the right one if choices are part of the context.
func (f *fields) text(spec any, doc map[string]any) (any, error) {
	v, whole, err := f.value(spec, doc)
	if s, _ := v.(string); !whole && f.choices && digits(s) {
		return indexed(s)
	}
	return v, err
}

// target is doc_to_target: the answer, its index, or several of either.
func (f *fields) target(spec any, doc map[string]any) (any, error) {
	v, whole, err := f.value(spec, doc)
	s, isText := v.(string)
	switch {
	case err != nil || !isText || whole:
		return v, err
	case f.choices && digits(s):
		return indexed(s)
	case len(s) >= 2 && s[0] == '[' && s[len(s)-1] == ']':
		if list, err := literal(s); err == nil {
			return list, nil
		}
	}
	return s, nil
}

// list is doc_to_choice.
func (f *fields) list(spec any, doc map[string]any) ([]string, error) {
	var v any
	switch s := spec.(type) {
	case *object:
		for _, key := range s.keys {
			v = append(listOf(v), s.at[key])
		}
	default:
		var whole bool
		var err error
		if v, whole, err = f.value(spec, doc); err != nil {
			return nil, err
		}
		if text, ok := v.(string); ok && !whole {
			if v, err = literal(text); err != nil {
				return nil, fmt.Errorf("%.80q is not a list: %w", text, err)
			}
		}
	}
	out := []string{}
	for _, x := range listOf(v) {
		s, ok := x.(string)
		if !ok {
			return nil, fmt.Errorf("the choice %v is not a text; put it into quotation marks", x)
		}
		if s == "" {
			return nil, errors.New("a choice is empty")
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%v is not a list of choices", v)
	}
	return out, nil
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

// value is a field's value; whole means that it is the column itself or a function's result, not a template's text.
func (f *fields) value(spec any, doc map[string]any) (v any, whole bool, err error) {
	switch s := spec.(type) {
	case string:
		if f.columns[s] {
			x, ok := doc[s]
			if !ok {
				return nil, true, fmt.Errorf("field %q is missing", s)
			}
			return simple(x), true, nil
		}
		text, err := f.render(s, doc)
		return text, false, err
	case *fieldFunction:
		v, err := s.apply(doc)
		return v, true, err
	}
	return spec, true, nil
}

// simple converts a document's numbers as in Python: integers and bools are indices.
func simple(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return int(i)
		}
		x, _ := v.Float64()
		return x
	case bool:
		if v {
			return 1
		}
		return 0
	case []any:
		return data.EachOf(v, simple)
	}
	return v
}

// digits is Python's str.isdigit.
func digits(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsDigit(r) }) < 0
}

func indexed(s string) (any, error) {
	v, err := literal(s)
	if err != nil {
		return nil, fmt.Errorf("%q is not an index", s)
	}
	return v, nil
}
