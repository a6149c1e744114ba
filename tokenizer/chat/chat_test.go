package chat

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"
)

// TestGolden renders what Hugging Face's JavaScript Jinja rendered (tools/golden/chat_golden.mjs).
func TestGolden(t *testing.T) {
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name, Template, Want string
		Error                *string
		Generate             bool
		Messages, Tools      json.RawMessage
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.Error != nil {
			t.Errorf("%s: the golden file has an error: %s", c.Name, *c.Error)
			continue
		}
		conv := Conversation{Messages: c.Messages, Generate: c.Generate}
		if c.Tools != nil {
			conv.Tools = c.Tools
		}
		got, err := render(c.Template, conv)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
		} else if got != c.Want {
			t.Errorf("%s, generate %v:\n got %q\nwant %q", c.Name, c.Generate, got, c.Want)
		}
	}
}

func render(source string, c Conversation) (string, error) {
	t, err := Parse(source, map[string]string{"bos_token": "<s>", "eos_token": "</s>"})
	if err != nil {
		return "", err
	}
	return t.Render(c)
}

var hello = Conversation{Messages: []Message{{"user", "hello"}}}

// attacks are templates that ask for too much, with what the error says of each; one asks for much and gets it.
var attacks = []struct{ name, source, text string }{
	{"include", "{% include '/etc/passwd' %}", `"include" is not supported`},
	{"import", "{% import '/etc/passwd' as x %}", `"import" is not supported`},
	{"from", "{% from 'x' import y %}", `"from" is not supported`},
	{"extends", "{% extends '/etc/passwd' %}", `"extends" is not supported`},
	{"range", "{% for i in range(1000000000) %}{% endfor %}", "more than 65536 numbers"},
	{"loops", strings.Repeat("{% for i in range(60000) %}", 4) + strings.Repeat("{% endfor %}", 4), "takes"},
	{"filtered loops", strings.Repeat("{% for i in range(60000) if i %}", 3) + strings.Repeat("{% endfor %}", 3),
		"takes"},
	{"recursive loop", "{% for m in messages recursive %}{{ loop(messages) }}{% endfor %}", "recursive"},
	{"repeat", "{{ 'a' * 1000000000 }}", "more than 4194304 bytes"},
	{"repeat overflow", "{{ 'abcdefgh' * 2305843009213693952 }}", "more than 4194304 bytes"},
	{"doubling", "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
		"bytes"},
	{"doubling by plus",
		"{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}", "bytes"},
	{"doubling by block", "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set y %}{{ ns.x }}{{ ns.x " +
		"}}{% endset %}{% set ns.x = y %}{% endfor %}", "bytes"},
	{"laughs", "{% set ns = namespace(x='ha') %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor " +
		"%}{{ ns.x }}", "bytes"},
	{"laughs in dicts", "{% set ns = namespace(x='ha') %}{% for i in range(60) %}{% set ns.x = {'a': ns.x, 'b': " +
		"ns.x} %}{% endfor %}{{ ns.x | tojson }}", "bytes"},
	{"deep",
		"{% set ns = namespace(x='ha') %}{% for i in range(6000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
		"deeper"},
	{"hoard", "{% set ns = namespace(l=[]) %}{% for i in range(60000) %}{% set ns.l = ns.l + ['a' * 100000] " +
		"%}{% endfor %}", "bytes"},
	{"cycle", "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", "namespace"},
	{"cycle in list", "{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns }}", "namespace"},
	{"cycle in dict", "{% set ns = namespace() %}{% set ns.a = dict(b=ns) %}{{ ns }}", "namespace"},
	{"macro", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "deeper than 32"},
	{"macros",
		"{% macro f() %}{{ g() }}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
		"deeper than 32"},
	{"macro tree", "{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(30) }}",
		"takes"},
	{"print", "{% for i in range(60000) %}{{ " +
		"'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' }}{% endfor %}",
		"prints more than"},
	{"parentheses", "{{ " + strings.Repeat("(", 50000) + "1" + strings.Repeat(")", 50000) + " }}",
		"more than 2000 tokens"},
	{"nots", "{{ " + strings.Repeat("not ", 50000) + "1 }}", "more than 2000 tokens"},
	{"blocks", strings.Repeat("{% if true %}", 5000) + strings.Repeat("{% endif %}", 5000), "inside each other"},
	{"size", strings.Repeat("a", 300000), "at most 262144"},
	{"replace", "{{ ('a' * 100000).replace('', 'b' * 100000) }}", "more than 4194304 bytes"},
	{"replace filter", "{{ ('a' * 100000) | replace('a', 'b' * 100000) }}", "more than 4194304 bytes"},
	{"join", "{{ range(60000) | join('b' * 100000) }}", "more than 4194304 bytes"},
	{"join method", "{{ ('b' * 100000).join(range(60000)) }}", "more than 4194304 bytes"},
	{"indent", "{{ ('a\n' * 1000000) | indent(1000) }}", "more than 4194304 bytes"},
	{"letters", "{% for c in 'a' * 1000000 %}{% endfor %}", "at most 65536"},
	{"long chain", "{{ 'x'" + strings.Repeat(".strip()", 450) + " }}", ""},
	{"zero", "{{ 1 % 0 }}", "division by zero"},
	{"zero filter", "{{ 1 // 0 }}", "division by zero"},
	{"raise", "{{ raise_exception('no ' + messages[0].role) }}", "no user"},
	{"method", "{{ messages.__class__() }}", "__class__"},
	{"percent", "{{ '%1000000000d' % 1 }}", "more than 4194304 bytes"},
	{"percent star", "{{ '%*s' % (1000000000, 1) }}", "more than 4194304 bytes"},
	{"percent digits", "{{ '%.1000000f' % 1 }}", "1000000 digits"},
	{"format", "{{ '{:1000000000}'.format(1) }}", "more than 4194304 bytes"},
	{"format in format", "{{ '{:{}}'.format(1, 1000000000) }}", "more than 4194304 bytes"},
	{"format many", "{{ ('{0}' * 1000000).format('a' * 1000) }}", "prints more than"},
	{"format attribute", "{{ '{0.__class__}'.format(1) }}{{ '{0.__class__.__mro__}'.format(1) }}", "__class__"},
	{"center", "{{ 1 | center(1000000000) }}{{ 1 }}", "more than 4194304 bytes"},
	{"ljust", "{{ 'a'.ljust(1000000000) }}", "more than 4194304 bytes"},
	{"zfill", "{{ 'a'.zfill(1000000000) }}", "more than 4194304 bytes"},
	{"repeat list", "{{ ([1] * 1000000000) | length }}", "more than 4194304 bytes"},
	{"repeat tuple", "{{ 4611686018427387904 * (1, 2, 3, 4) }}", "more than 4194304 bytes"},
	{"power", "{{ 10 ** 1000000000 }}", "more than 63 bits"},
	{"overflow", "{{ 9223372036854775807 + 1 }}", "more than 63 bits"},
	{"batch", "{{ [1] | batch(1000000000, 'x') | list }}", "batch: of 1000000000 items"},
	{"append", "{% set l = [] %}{{ l.append(l) }}", "not safe"},
	{"unknown filter", "{{ 1 | urlize(1000000000) }}", "urlize"},
	{"lipsum", "{{ lipsum(1000000000) }}", "'lipsum' is undefined"},
	{"call block", "{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{{ caller() }}{% endmacro %}{% call " +
		"f() %}{% endcall %}", "deeper than 32"},
	{"caller", "{% macro f() %}{{ caller() }}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}{{ g() " +
		"}}{% endcall %}{% endmacro %}{{ g() }}", "deeper than 32"},
	{"loop in itself", "{% for i in [1] %}{% set ns = namespace() %}{% set ns.a = [loop, ns] %}{% endfor %}",
		"namespace"},
	{"unclosed", "{% if true %}", "endif"},
	{"broken", "{{ 'abc", ""},
}

// TestAttacks: every template ends soon, in bounded memory, with an error that names the limit.
func TestAttacks(t *testing.T) {
	for _, a := range attacks {
		const slow = "takes longer" // on a busy machine the clock may be the first bound
		begin := time.Now()
		out, err := render(a.source, hello)
		if took := time.Since(begin); took > 10*maxTime { // far above what a busy machine adds
			t.Errorf("%s took %v", a.name, took)
		}
		switch {
		case a.name == "long chain":
			if err != nil || out != "x" {
				t.Errorf("%s: %q, %v", a.name, out, err)
			}
		case !errors.Is(err, ErrTemplate) || !strings.Contains(err.Error(), a.text) &&
			!strings.Contains(err.Error(), slow):
			t.Errorf("%s: error %v, want one with %q", a.name, err, a.text)
		case strings.Contains(err.Error(), "\x00"):
			t.Errorf("%s: error %q tells of our own filters", a.name, err)
		case len(err.Error()) > 600:
			t.Errorf("%s: the error has %d bytes", a.name, len(err.Error()))
		}
	}
}

// TestMore holds what Python does and the golden file cannot say.
func TestMore(t *testing.T) {
	now := time.Date(2026, 3, 7, 9, 5, 4, 0, time.UTC)
	for _, c := range []struct{ source, want string }{
		{"{{ true }} {{ 1.0 }} {{ [true, 'a'] }}", "True 1.0 [True, 'a']"},
		{"{{ strftime_now('%d %b %Y, %H:%M %%') }}", "07 Mar 2026, 09:05 %"},
		{"{% generation %}{{ messages[0].content }}{% endgeneration %}", "hello"},
		{"{{ {'b': 1, 'a': 'ü</x>'} | tojson }}", `{"b": 1, "a": "ü</x>"}`},
		{"{{ [1.0, 1e20, 0.00001, 2] | tojson }}", `[1.0, 1e+20, 1e-05, 2]`},
		{"{{ [1e308 * 10, -1e308 * 10, 1e308 * 10 - 1e308 * 10] | tojson }}", `[Infinity, -Infinity, NaN]`},
		{"{{ (-7) // 2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 3 / 2 }}", "-4 2 1024 1.5"},
		{"{{ 'a b  c'.split() | join('-') }} {{ 'a,b,c'.split(',', 1)[1] }} {{ 'a,b,c'.rsplit(',', 1)[0] }}",
			"a-b-c b,c a,b"},
		{"{{ 'Hello World'.title() }} {{ 'xxabxx'.strip('x') }} {{ 'ab'.startswith(('x', 'a')) }}",
			"Hello World ab True"},
		{"{{ 'l1\nl2' | indent(2) }}", "l1\n  l2"},
		{"{{ messages[0].get('nothing', 'd') }} {{ messages[0].get('role') }} {{ messages[0].keys() | list }}",
			"d user ['role', 'content']"},
		{"{% set x = 'a' if messages else 'b' %}{{ x }}{% set y = 'a' if not messages else 'b' %}{{ y }}", "ab"},
		{"{{ more }} {{ enable_thinking is defined and not enable_thinking }}", "words True"},
	} {
		conv := hello
		conv.Now, conv.Vars = now, map[string]any{"more": "words", "enable_thinking": false}
		got, err := render(c.source, conv)
		if err != nil || got != c.want {
			t.Errorf("%s\n got %q (%v)\nwant %q", c.source, got, err, c.want)
		}
	}
}

// A number, a dot and a rune of several bytes is an attribute of the number if it is a name, and an error otherwise;
// such text outside of expressions is fine.
func TestNumberBeforeRune(t *testing.T) {
	for _, source := range []string{"{% if ２.é %}{% endif %}", "{% set x = [1, 2.\xb9] %}", "t{%7\xf0\xa5.2.獮",
		"{{ 2.² }}", "{{ 2.€ }}"} {
		if got, err := render(source, hello); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%q: %q, %v", source, got, err)
		}
	}
	for source, want := range map[string]string{"1.首先{{ '2.其次' }}{# 3.é #}": "1.首先2.其次",
		"{{ 2.é }}{{ 1.5.獮 }}{{ 1e3.é }}{{ 0x1.é }}": "", "{{ 2.5 }}é": "2.5é",
		"{% raw %}{{ 2.é }}{% endraw %}": "{{ 2.é }}"} {
		if got, err := render(source, hello); err != nil || got != want {
			t.Errorf("%q: %q, %v", source, got, err)
		}
	}
}

// FuzzTemplate feeds arbitrary templates: none may panic, hang or crash.
func FuzzTemplate(f *testing.F) {
	f.Add("{% for m in messages %}{{ m.role ~ m['content'] | trim }}{% endfor %}")
	f.Add("{% macro f(x) %}{{ x }}{% endmacro %}{{ f([1, {'a': 2}]) | tojson }}")
	f.Add("{% set ns = namespace(a=1) %}{% set ns.a = ns.a + 1 %}{{ ns.a[1:2] }}")
	f.Add("{{ '%5.2f|%(a)s' % (1, none) }}{{ '{0[a]:>{1}}{x!r}'.format({'a': 1}, 9, x=()) }}{{ [1] * 2 < (3,) == 4 }}")
	f.Add("{%- raw -%} a {%+ endraw -%}{#- b #}{% filter upper | trim %}{% with a, b = 1, 2 %}{{ loop.cycle(a) }}{% " +
		"endwith %}{% endfilter %}")
	f.Add("{% call(x) f(*[1], **{'y': 2}) %}{{ x }}{% endcall %}{% for a, (b, c) in [] if a else 1 %}{% break %}{% " +
		"else %}{% endfor %}")
	f.Add("{{ messages | groupby('role') | map(attribute='list.0') | batch(2, '') | sum(start=[]) | unique | " +
		"sort(attribute='a,b') | truncate(3) }}")
	f.Fuzz(func(t *testing.T, source string) {
		out, err := render(source, hello)
		if err == nil && len(out) > maxValue {
			t.Errorf("%d bytes", len(out))
		}
		if err != nil && (strings.Contains(err.Error(), "runtime error") ||
			strings.Contains(err.Error(), "interface conversion")) {
			t.Error(err)
		}
	})
}

// TestLoad finds a folder's template in each place that it may have.
func TestLoad(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string // rendered; "" when there is none
		bad   string // part of the error
	}{
		"none":      {files: map[string]string{}},
		"no config": {files: map[string]string{"chat_template.jinja": "A{{ bos_token }}"}, want: "A"},
		"file": {files: map[string]string{"chat_template.jinja": "F{{ bos_token }}",
			"tokenizer_config.json": `{"bos_token": "<s>", "chat_template": "C"}`}, want: "F<s>"},
		"config": {files: map[string]string{
			"tokenizer_config.json": `{"bos_token": {"content": "<b>", "special": true}, "chat_template": "C{{ bos_token }}"}`},
			want: "C<b>"},
		"list": {files: map[string]string{
			"tokenizer_config.json": `{"chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]}`},
			want: "D"},
		"no default": {files: map[string]string{
			"tokenizer_config.json": `{"chat_template": [{"name": "rag", "template": "T"}]}`}, bad: "default"},
		"number": {files: map[string]string{"tokenizer_config.json": `{"chat_template": 7}`},
			bad: "must be a string"},
		"null":   {files: map[string]string{"tokenizer_config.json": `{"chat_template": null}`}},
		"broken": {files: map[string]string{"tokenizer_config.json": `{`}, bad: "tokenizer_config.json"},
		"include": {files: map[string]string{"chat_template.jinja": "{% include 'tokenizer_config.json' %}"},
			bad: "include"},
	} {
		tpl, err := Load(func(name string, _ int64) ([]byte, error) {
			if text, ok := c.files[name]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		})
		if c.bad != "" {
			if err == nil || !strings.Contains(err.Error(), c.bad) {
				t.Errorf("%s: error %v, want one with %q", name, err, c.bad)
			}
			continue
		}
		if err != nil || (tpl == nil) != (c.want == "") {
			t.Errorf("%s: template %v, error %v", name, tpl, err)
			continue
		}
		if tpl != nil {
			if got, err := tpl.Render(hello); err != nil || got != c.want {
				t.Errorf("%s: %q (%v), want %q", name, got, err, c.want)
			}
		}
	}
}
