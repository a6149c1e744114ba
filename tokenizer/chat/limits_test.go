package chat

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Both sides of every limit of a template: the most that is allowed gives its text, one more is refused by the limit's
// number.
func TestBothSides(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("{% if true %}", n) + "x" + strings.Repeat("{% endif %}", n) }
	calls := func(n int) string { // a macro that calls itself n times in all
		return fmt.Sprintf("{%% macro f(k) %%}{%% if k > 1 %%}{{ f(k - 1) }}{%% endif %%}{%% endmacro %%}{{ f(%d) }}ok",
			n)
	}
	for name, c := range map[string]struct {
		good, bad, want, text string
	}{
		"range": {"{{ range(65536) | length }}", "{{ range(65537) | length }}", "65536",
			"more than 65536 numbers"},
		"indent": {"{{ 'a\nb' | indent(1000) | length }}", "{{ 'a\nb' | indent(1001) | length }}", "1003",
			"a width of 1001"},
		"tojson": {"{{ [1] | tojson(indent=64) | length }}", "{{ [1] | tojson(indent=65) }}", "69",
			"an indent of 65"},
		"tojson below": {"{{ [1] | tojson(indent=1) }}", "{{ [1] | tojson(indent=-1) }}", "[\n 1\n]",
			"an indent of -1"},
		"blocks": {nested(100), nested(101), "x", "more than 100 blocks"},
		"macros": {calls(32), calls(33), "ok", "deeper than 32"},
		"repeat": {"{{ ('a' * 4194296) | length }}", "{{ ('a' * 4194305) | length }}", "4194296",
			"more than 4194304 bytes"},
		"size": {strings.Repeat("a", 1<<18), strings.Repeat("a", 1<<18+1), strings.Repeat("a", 1<<18),
			"is 262145 bytes, at most 262144 are read"},
		"loop": {"{% for i in 'abc' %}{{ i }}{% endfor %}", "{% for c in 'a' * 65537 %}{% endfor %}", "abc",
			"loops over 65537 items, at most 65536"},
		"join": {"{{ ('a' * 65536) | join('') | length }}", "{{ ('a' * 65537) | join('') | length }}", "65536",
			"joins more than 65536 items"},
		"reverse": {"{{ ('a' * 65536) | reverse | length }}", "{{ ('a' * 65537) | reverse | length }}", "65536",
			"reverses 65537 items"},
	} {
		got, err := render(c.good, hello)
		if err != nil && strings.Contains(err.Error(), "takes longer") {
			continue // on a busy machine the clock may be the first bound
		}
		if err != nil || got != c.want {
			t.Errorf("%s: %.60q, %v; want %.60q", name, got, err, c.want)
		}
		if got, err := render(c.bad, hello); err == nil || !strings.Contains(err.Error(), c.text) &&
			!strings.Contains(err.Error(), "takes longer") {
			t.Errorf("%s: %.60q, %v; want an error with %q", name, got, err, c.text)
		}
	}
}

// Both sides of the limits of a variable: its depth and its size.
func TestVariableBounds(t *testing.T) {
	deep := func(n int) any { // a list inside n-1 others
		v := any("x")
		for range n {
			v = []any{v}
		}
		return v
	}
	for n, good := range map[int]bool{100: true, 101: false} {
		conv := hello
		conv.Vars = map[string]any{"v": deep(n)}
		if _, err := render("{{ v | length }}", conv); (err == nil) != good || err != nil &&
			!strings.Contains(err.Error(), "v: makes a value nested deeper than 100") {
			t.Errorf("a value nested %d times: %v", n, err)
		}
	}
	for size, good := range map[int]bool{4<<20 - 2: true, 4<<20 - 1: false} {
		conv := hello
		conv.Vars = map[string]any{"v": strings.Repeat("x", size)}
		if _, err := render("{{ 1 }}", conv); (err == nil) != good || err != nil &&
			!strings.Contains(err.Error(), "bytes, at most 4194304 fit") {
			t.Errorf("a value of %d bytes: %v", size, err)
		}
	}
}

// A budget counts steps, bytes and time, and a value is measured with all that is in it.
func TestBudget(t *testing.T) {
	far := time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		b    budget
		n    int
		want string
	}{
		"fits":  {budget{steps: 1, work: 5, end: far}, 5, ""},
		"steps": {budget{steps: 0, work: 5, end: far}, 0, "takes more than 131072 steps"},
		"work":  {budget{steps: 5, work: 4, end: far}, 5, "makes more than 268435456 bytes"},
		"value": {budget{steps: 5, work: maxWork, end: far}, maxValue + 1, "makes a value of more than 4194304 bytes"},
		"largest value": {budget{steps: 5, work: maxWork, end: far},
			maxValue, ""},
		"time": {budget{steps: 65, work: 5}, 0, "takes longer than 2s"},

		"time is looked at sometimes": {budget{steps: 64, work: 5}, 0, ""},
		"and before much work": {budget{steps: 64, work: maxWork}, 1 << 16, "takes longer than " +
			maxTime.String()},
	} {
		b := c.b
		err := b.charge(c.n)
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []struct {
		v    any
		want int
	}{
		{nil, 8}, {"abc", 11}, {5, 8}, {list{"a", "b"}, 8 + 9 + 9}, {tuple{"ab"}, 8 + 10},
		{&generator{rest: []any{"ab"}}, 8 + 10}, {&namespace{newDict()}, 8},
		{dictOf("dict", params{names: []string{"k"}, named: map[string]any{"k": "vv"}}), 8 + 9 + 10},
		{&view{"dict_keys", list{"ab"}}, 8 + 10},
		{&numbers{0, 5, 1, 5}, 8 + 5*8}, {markup("abc"), 11}, {&undefined{why: "abc"}, 11},
	} {
		left := 1000
		if err := measure(c.v, 0, &left); err != nil || 1000-left != c.want {
			t.Errorf("%v measures %d, %v; want %d", c.v, 1000-left, err, c.want)
		}
	}
	for want, v := range map[error]any{errLarge: strings.Repeat("x", 2000), errShared: list{&namespace{newDict()}}} {
		left := 1000
		if err := measure(v, 0, &left); err != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

// A loop is charged for its items before the first iteration, which are the characters of a text.
func TestLoopCharge(t *testing.T) {
	r := &run{budget: &budget{steps: 1000, work: 1 << 20, end: time.Now().Add(time.Hour)}}
	if got := r.iterable(strings.Repeat("é", 400)); len(got) != 400 || r.steps != 1000-400/4-1 ||
		r.work != 1<<20-64*400 {
		t.Errorf("%d items, %d steps and %d bytes left", len(got), r.steps, r.work)
	}
}

// Dates by strftime, as C has it; what is not known stays as it is.
func TestStrftime(t *testing.T) {
	at := time.Date(2026, 3, 7, 15, 5, 4, 0, time.FixedZone("CET", 3600))
	for format, want := range map[string]string{
		"%Y-%m-%d %H:%M:%S": "2026-03-07 15:05:04", "%a %A %b %B": "Sat Saturday Mar March",
		"%e|%I|%p|%y|%j": " 7|03|PM|26|066", "%F %T %D": "2026-03-07 15:05:04 03/07/26", "%Z %z": "CET +0100",
		"%%Y %q %": "%Y %q %", "": "",
	} {
		if got := strftime(at, format); got != want {
			t.Errorf("%q: %q, want %q", format, got, want)
		}
	}
}

// An error is short and of its kind, whatever ended the rendering.
func TestFinish(t *testing.T) {
	long := finish(ErrText, fmt.Errorf("%s", strings.Repeat("é", 400)), nil)
	if got := long.Error(); got != "template: "+strings.Repeat("é", 250)+"…" {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if err := finish(ErrTemplate, nil, "oops"); err == nil || err.Error() != "chat template: oops" {
		t.Error(err)
	}
	if err := finish(ErrTemplate, nil, nil); err != nil {
		t.Error(err)
	}
	if err := finish(ErrTemplate, nil, failure{fmt.Errorf("the cause")}); err == nil ||
		err.Error() != "chat template: the cause" {
		t.Error(err)
	}
}

// A template cannot make its own reading or rendering take a time that doubles with a few more characters, or grows
// with the square of its length.
func TestTimeOfReading(t *testing.T) {
	many := func(s string) string { return strings.Repeat(s, (maxTemplate-8)/len(s)) }
	for name, c := range map[string]struct{ source, want, text string }{
		"defined": {"{{ " + strings.Repeat("(", 60) + "messages" + strings.Repeat(".b is defined)", 60) +
			" }}", "False", ""},
		"items": {"{{ " + strings.Repeat("(", 60) + "messages" + strings.Repeat("[0] is defined)", 60) +
			" }}", "False", ""},
		"quotes": {"{{ '" + many(`\'`), "", "expected"},
		"tags":   {many(`{{\'}}`), "", "'"},
		"raw":    {many("{% raw %}"), "", "endraw"},
		"keys":   {"{% set x = (1, 2) * 100000 %}{{ {x: 1} | length }}", "1", ""},
		"side": {"{% set n = namespace(k=0) %}{% macro f() %}{% set n.k = n.k + 1 %}{% endmacro %}{{ f().a is " +
			"defined }}{{ n.k }}", "False1", ""},
		"none": {"{{ {'a': none}.a is defined }}{{ {1: none}[1] is defined }}{{ [none][-1] is defined }}{{ [none][1] " +
			"is defined }}", "TrueTrueTrueFalse", ""},
		"undefined": {"{{ none['a'] is defined }}{{ 'ab'[1] is defined }}{{ 'ab'[2] is defined }}",
			"FalseTrueFalse", ""},
	} {
		begin := time.Now()
		got, err := render(c.source, hello)
		if err == nil && c.text != "" || err != nil && (c.text == "" || !strings.Contains(err.Error(), c.text)) ||
			got != c.want {
			t.Errorf("%s: %.60q, %.200v; want %q, an error with %q", name, got, err, c.want, c.text)
		}
		if took := time.Since(begin); took > 20*time.Second { // well below a second on an idle machine
			t.Errorf("%s: took %v", name, took)
		}
	}
}

// Steps that are not charged look at the time if they may take long.
func TestTimeIsLookedAt(t *testing.T) {
	many := list{1, 2}
	for name, step := range map[string]func(r *run){
		"equal":  func(r *run) { r.compares("==", many, many) },
		"in":     func(r *run) { r.compares("in", "a", "abc") },
		"test":   func(r *run) { r.test("lower", "a", params{}) },
		"key":    func(r *run) { r.item(newDict(), tuple{1}) },
		"text":   func(r *run) { r.item(strings.Repeat("a", longStep), 0) },
		"if":     func(r *run) { (&ifStmt{}).exec(r, nil, nil) },
		"unique": func(r *run) { unique(r, many, params{}) },
		"count":  func(r *run) { r.listMethod(many, "count", params{args: []any{1}}) },
	} {
		func() {
			defer func() {
				if f, ok := recover().(failure); !ok || f.Error() != errLate.Error() {
					t.Errorf("%s: %v", name, f)
				}
			}()
			step(&run{budget: &budget{steps: 65, work: maxWork}})
		}()
	}
}
