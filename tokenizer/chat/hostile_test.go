package chat

import (
	"strings"
	"testing"
	"time"
)

// What would take far more time or memory than it is charged for is refused before it is made, or is made in a time
// that grows with the size of its input.
func TestHostile(t *testing.T) {
	many := strings.Repeat
	for name, c := range map[string]struct{ source, want, text string }{
		"sort keys": {"{{ range(1000) | sort(attribute=',' * 200000) | length }}", "",
			"an attribute of 200001 parts, at most 100 are read"},
		"sort by most":     {"{{ [{}] | sort(attribute=',' * 99) | length }}", "1", ""},
		"sort by too many": {"{{ [{}] | sort(attribute=',' * 100) | length }}", "", "an attribute of 101 parts"},
		"map path": {"{{ [1, 1] | map(attribute='.' * 2000000, default={}) | list | length }}", "",
			"an attribute of 2000001 parts"},
		"groupby path": {"{{ [1, 1] | groupby('.' * 100000, default={}) | length }}", "",
			"an attribute of 100001 parts"},
		"join path": {"{{ ['a', 'a'] | join(attribute='0.' * 100 ~ '0') }}", "", "an attribute of 101 parts"},
		"map of map": {"{{ 'a' | map(*(['map'] * 300000)) | list }}", "",
			"calls macros or filters deeper than 32"},
		"map in macros": {"{% macro f() %}{{ 'a' | map('map', 'upper') | map('list') | list }}{% endmacro %}{% for i " +
			"in range(40) %}{{ f() if i > 38 else '' }}{% endfor %}", "[['A']]", ""},
		"separators":      {"{{ '{:,.2000000d}'.format(1) }}", "", "an integer with a precision"},
		"wide separators": {"{{ '{:0800000,}'.format(1) | length }}", "800001", ""},
		"markup is true":  {"{% set m = ('é' * 2000000) | safe %}{{ " + many("m and ", 990) + "1 }}", "1", ""},
		"strip": {
			"{{ ('a' * 100000).strip('é' * 100000 ~ 'a') }}|{{ ('a' * 100000) | trim('é' * 100000 ~ 'a') }}", "|", ""},
		"flags":      {"{{ ('%' ~ ' ' * 4000000 ~ 'd') % 1 }}", "", "format"},
		"characters": {"{{ ('a' * 4000000) | sort | length }}", "", "makes a value of more than 4194304 bytes"},
		"unpacked":   {"{% set a, b = 'a' * 4000000 %}", "", "makes a value of more than 4194304 bytes"},
		"arguments":  {"{{ dict(*('a' * 4000000)) }}", "", "makes a value of more than 4194304 bytes"},
		"split": {"{{ (',' * 4000000).split(',') | length }}", "",
			"makes a value of more than 4194304 bytes"},
		"split from right": {"{{ (',' * 4000000).rsplit(',', 1) | length }}", "",
			"makes a value of more than 4194304 bytes"},
		"split once":     {"{{ (',' * 4000000).split(',', 1) | length }}", "2", ""},
		"split at space": {"{{ ('a ' * 2000000).split() | length }}", "", "makes a value of more than 4194304 bytes"},
		"split lines": {"{{ ('\\n' * 1000000).splitlines() | length }}", "",
			"makes a value of more than 4194304 bytes"},
		"indent": {"{{ ('\\n' * 1000000) | indent(0) | length }}", "",
			"makes a value of more than 4194304 bytes"},
		"patterns": {"{{ 'a' | regex_replace('a', 'b') }}", "",
			"regex_replace is not supported in chat templates"},
		"nested keys": {"{% set x = ('a' * 40000,) %}" + many("{% set x = (x,) %}", 90) +
			"{{ {x: 1}[x] }}", "1", ""},
		"least integer": {"{{ (-9223372036854775807 - 1) // -1 }}", "", "more than 63 bits"},
		"least width": {"{% set n = -9223372036854775807 - 1 %}{{ 'a' | center(n) }}{{ 'b'.zfill(n) }}{{ " +
			"'-c'.zfill(n) }}{{ 'd'.ljust(n) }}{{ 'e'.rjust(n) }}", "ab-cde", ""},
		"greatest cut": {
			"{{ 'a b' | truncate(9223372036854775807) }}{{ 'a b' | truncate(3, leeway=9223372036854775807) }}",
			"a ba b", ""},
		"texts as JSON": {"{{ ([''] * 100000) | tojson | length }}", "400000", ""},
		"its remainder": {"{{ (-9223372036854775807 - 1) % -1 }}", "0", ""},
	} {
		got, err := render(c.source, hello)
		if err != nil && strings.Contains(err.Error(), errLate.Error()) {
			continue // on a busy machine the clock may be the first bound
		}
		if err == nil && c.text != "" || err != nil && (c.text == "" || !strings.Contains(err.Error(), c.text)) ||
			got != c.want {
			t.Errorf("%s: %.60q, %.200v; want %q, an error with %q", name, got, err, c.want, c.text)
		}
	}
}

// A pattern of a text template is refused if its steps for the text, or its result, would be too many.
func TestPatternBounds(t *testing.T) {
	for source, want := range map[string]string{
		"{{ ('a' * 4000000) | regex_replace('', 'b' * 40000) }}":                "makes a value of more than",
		"{{ ('a' * 100000) | regex_replace('a', 'b' * 100) }}":                  "makes a value of more than",
		"{{ ('a' * 1000) | regex_replace('(a+)', '\\\\1' * 10000) }}":           "makes a value of more than",
		"{{ ('a' * 1000000) | regex_replace('(a?){500}(a|b){400}c', '') }}":     "steps for a text of 1000000 bytes",
		"{{ ('ab' * 10) | regex_replace('(a)(b)', '\\\\2$\\\\1') | length }}30": "",
	} {
		tpl, err := ParseText(source)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tpl.RenderText(nil)
		if want == "" && (err != nil || got != "3030") || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %.40q, %v; want an error with %q", source, got, err, want)
		}
	}
}

// These look at the time before each step, since a few dozen of them may take longer than a rendering may.
func TestTimeOfSmallResults(t *testing.T) {
	n := func(v any) expr { return &constant{v} }
	long := strings.Repeat("k", 2000)
	ns := &scope{vars: map[string]any{"n": &namespace{newDict()}}}
	for name, step := range map[string]func(r *run){
		"filter":       func(r *run) { r.filter("length", "a", params{}) },
		"call":         func(r *run) { r.call(&function{call: func(*run, params) any { return nil }}, params{}) },
		"tuple as key": func(r *run) { (&dictExpr{keys: []expr{n(tuple{1})}, values: []expr{n(1)}}).eval(r, nil) },
		"long key":     func(r *run) { r.item(newDict(), long) },
		"format":       func(r *run) { r.arithmetic("%", "%d", 1) },
		"attribute":    func(r *run) { r.path(newDict(), "a") },
		"keys to sort": func(r *run) { r.sortBy([]any{1}, nil, func(x any) any { return x }) },
		"namespace":    func(r *run) { (&target{name: "n", attribute: "a"}).assign(r, ns, 1) },
	} {
		func() {
			defer func() {
				if f, ok := recover().(failure); !ok || f.Error() != errLate.Error() {
					t.Errorf("%s: %v", name, f)
				}
			}()
			step(&run{budget: &budget{steps: 100, work: maxWork, end: time.Unix(0, 0)}})
		}()
	}
}

// A list is charged for more than its printed size, since it needs more memory, and so are keys to sort by.
func TestListsAreCharged(t *testing.T) {
	for _, c := range []struct {
		v    any
		want int
	}{{"abc", 11}, {markup("abc"), 11}, {list{"a", "b"}, 26 + 2*24}, {tuple{"a"}, 17 + 24},
		{&generator{rest: []any{"a"}}, 17 + 24}, {5, 8}} {
		b := &budget{steps: 10, work: 1000, end: time.Now().Add(time.Hour)}
		if b.made(c.v); 1000-b.work != c.want {
			t.Errorf("%v costs %d, want %d", c.v, 1000-b.work, c.want)
		}
	}
	defer func() {
		if f, ok := recover().(failure); !ok || f.Error() != "makes more than 268435456 bytes" {
			t.Errorf("keys to sort by: %v", f)
		}
	}()
	sorted(&run{budget: &budget{steps: 10, work: 500, end: time.Now().Add(time.Hour)}}, list{1, 2},
		params{args: []any{nil, nil, "a,b"}})
}
