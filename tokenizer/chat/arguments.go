package chat

import (
	"fmt"
	"slices"

	"github.com/nikolalohinski/gonja/v2/exec"
)

// parameters are those of a method of texts: how many must be given, and all names, "" for one that Python takes by
// position only.
type parameters struct {
	need  int
	names []string
}

var (
	onePart  = parameters{1, []string{""}}
	bounded  = parameters{1, []string{"", "", ""}} // a part, and where to begin and to end the search
	trimmed  = parameters{0, []string{""}}
	splitter = parameters{0, []string{"sep", "maxsplit"}}

	// textParameters are those of the methods that take any.
	textParameters = map[string]parameters{
		"strip": trimmed, "lstrip": trimmed, "rstrip": trimmed, "split": splitter, "rsplit": splitter, "splitlines": {0, []string{"keepends"}},
		"find": bounded, "rfind": bounded, "index": bounded, "count": bounded, "startswith": bounded, "endswith": bounded,
		"removeprefix": onePart, "removesuffix": onePart, "join": onePart, "replace": {2, []string{"", "", "count"}},
	}
)

// arguments puts a method's arguments into the order of its parameters, with nil's value for those left out.
func arguments(method string, args []*exec.Value, named map[string]*exec.Value) ([]*exec.Value, error) {
	p := textParameters[method]
	if len(args) > len(p.names) {
		return nil, fmt.Errorf("%s takes at most %d arguments, got %d", method, len(p.names), len(args))
	}
	if len(args) < p.need {
		return nil, fmt.Errorf("%s needs %d arguments, got %d", method, p.need, len(args))
	}
	out := make([]*exec.Value, len(p.names))
	for i := range out {
		if out[i] = exec.AsValue(nil); i < len(args) {
			out[i] = args[i]
		}
	}
	for _, name := range sortedKeys(named) {
		i := slices.Index(p.names, name)
		if name == "" || i < 0 || i < len(args) {
			return nil, fmt.Errorf("%s takes no argument %.40q here", method, name)
		}
		out[i] = named[name]
	}
	for i, v := range out[:p.need] {
		many := method == "join" || (method == "startswith" || method == "endswith") && v.IsList()
		if !v.IsString() && !many {
			return nil, fmt.Errorf("argument %d of %s must be a text", i+1, method)
		}
	}
	return out, nil
}

// window is the part of s between two positions as str.find takes them, and the characters before it; ok is false if
// the part begins after its end.
func window(s string, from, to *exec.Value) (part string, before int, ok bool) {
	if !from.IsInteger() && !to.IsInteger() {
		return s, 0, true
	}
	r := []rune(s)
	position := func(v *exec.Value, otherwise int) int {
		if !v.IsInteger() {
			return otherwise
		}
		if n := v.Integer(); n >= 0 {
			return n
		}
		return max(v.Integer()+len(r), 0)
	}
	first, end := position(from, 0), min(position(to, len(r)), len(r))
	if first > end {
		return "", 0, false
	}
	return string(r[first:end]), first, true
}
