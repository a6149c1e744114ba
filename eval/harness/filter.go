package harness

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/dlclark/regexp2/v2"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// pipeline is a named chain of filters over an answer.
type pipeline struct {
	name  string
	steps []func(string) (string, error)
}

func (p *pipeline) apply(s string) (string, error) {
	var err error
	for _, f := range p.steps {
		if s, err = f(s); err != nil {
			return "", fmt.Errorf("filter %s: %w", p.name, err)
		}
	}
	return s, nil
}

// readFilters reads filter_list. There is one answer per question, so filters that choose among several have no effect.
func readFilters(v any, kind string) ([]pipeline, error) {
	if v == nil {
		return []pipeline{{name: "none"}}, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, errors.New("filter_list: want a list")
	}
	var out []pipeline
	for _, x := range list {
		o, _ := x.(*object)
		if o == nil {
			return nil, errors.New("filter_list: want a list of mappings with name and filter")
		}
		k := &keys{object: o}
		p := pipeline{name: k.text("name", "")}
		steps, ok := o.at["filter"].([]any)
		if p.name == "" || !ok || k.err != nil {
			return nil, errors.New("filter_list: an entry has no name or no filter")
		}
		for _, s := range steps {
			step, _ := s.(*object)
			if step == nil {
				return nil, fmt.Errorf("filter_list: %s: want a list of mappings with function", p.name)
			}
			f, err := readFilter(&keys{object: step})
			if err != nil {
				return nil, fmt.Errorf("filter_list: %s: %w", p.name, err)
			}
			if f != nil && kind != "generate_until" {
				return nil, fmt.Errorf("filter_list: %s: %s has no text to filter", p.name, kind)
			}
			if f != nil {
				p.steps = append(p.steps, f)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// readFilter reads one step; nil leaves answers unchanged.
func readFilter(k *keys) (func(string) (string, error), error) {
	switch name := k.text("function", ""); name {
	case "take_first", "majority_vote":
		return nil, k.err
	case "take_first_k":
		if n := k.number("k", 1); n != 1 {
			return nil, fmt.Errorf("take_first_k: k is %d; there is one answer", n)
		}
		return nil, k.err
	case "regex":
		return readRegex(k)
	case "remove_whitespace":
		return func(s string) (string, error) { return strings.TrimFunc(s, unicode.IsSpace), nil }, nil
	case "lowercase":
		return func(s string) (string, error) { return lower(s), nil }, nil
	case "uppercase":
		return func(s string) (string, error) { return upper(s), nil }, nil
	case "map":
		return readMap(k)
	default:
		return nil, fmt.Errorf("the filter %q is not known; there are lowercase, majority_vote, map, regex, "+
			"remove_whitespace, take_first, take_first_k, uppercase", name)
	}
}

// lower and upper are Python's: by Unicode's full mappings, in which one character may become several (ß is SS in
// capitals).
func lower(s string) string { return cases.Lower(language.Und).String(s) }
func upper(s string) string { return cases.Upper(language.Und).String(s) }

// readMap replaces whole answers.
func readMap(k *keys) (func(string) (string, error), error) {
	table, ok := k.at["mapping_dict"].(*object)
	if !ok {
		return nil, errors.New("map: mapping_dict is missing")
	}
	def := "None"
	if v := k.at["default_value"]; v != nil {
		def = fmt.Sprint(v)
	}
	return func(s string) (string, error) {
		if v, ok := table.at[s]; ok {
			return fmt.Sprint(v), nil
		}
		return def, nil
	}, nil
}

// readRegex extracts one match from an answer: the group_select-th, negative counting from the end.
func readRegex(k *keys) (func(string) (string, error), error) {
	pattern, err := compile(k.text("regex_pattern", `#### (\-?[0-9\.\,]+)`))
	at, fallback := k.number("group_select", 0), k.text("fallback", "[invalid]")
	if err != nil || k.err != nil {
		return nil, errors.Join(err, k.err)
	}
	return func(s string) (string, error) {
		list, err := findAll(pattern, s)
		i := at
		if i < 0 {
			i += len(list)
		}
		if err != nil || i < 0 || i >= len(list) {
			return fallback, err
		}
		for _, group := range list[i] { // the first group that matched something
			if group != "" || len(list[i]) == 1 {
				return strings.TrimFunc(group, unicode.IsSpace), nil
			}
		}
		return fallback, nil
	}, nil
}

// compile reads a regular expression of Python's kind.
func compile(pattern string) (*regexp2.Regexp, error) {
	r, err := regexp2.Compile(strings.NewReplacer(`\\`, `\\`, `(?P<`, `(?<`, `\Z`, `\z`).Replace(pattern), regexp2.None)
	if err != nil {
		return nil, fmt.Errorf("the pattern %q: %w", pattern, err)
	}
	r.MatchTimeout = time.Second
	return r, nil
}

// findAll is re.findall: the groups of each match, or the whole match if there are none.
func findAll(r *regexp2.Regexp, s string) (out [][]string, err error) {
	for m, err := r.FindStringMatch(s); m != nil || err != nil; m, err = r.FindNextMatch(m) {
		if err != nil {
			return nil, err
		}
		groups := m.Groups()
		if len(groups) > 1 {
			groups = groups[1:]
		}
		row := make([]string, len(groups))
		for i := range groups {
			row[i] = groups[i].String()
		}
		out = append(out, row)
	}
	return out, nil
}
