package chat

import (
	"fmt"
	"testing"
)

// expressions are templates and what each gives.
var expressions = map[string]string{
	`{{ {'b': [1, {'c': none}], 'a': 'é<&>'} | tojson }}`: `{"b": [1, {"c": null}], "a": "é<&>"}`,
	`{{ {'b': [1, 2], 'a': {}} | tojson(indent=2) }}`:     "{\n  \"b\": [\n    1,\n    2\n  ],\n  \"a\": {}\n}",

	`{{ {'b': 1, 'a': [], 'c': {'z': true}} | tojson(indent=4, sort_keys=true) }}`: "{\n    \"a\": [],\n" +
		"    \"b\": 1,\n    \"c\": {\n        \"z\": true\n    }\n}",

	`{{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }}`:    `{"a": 2, "b": 1}`,
	`{{ [1.0, 100.0, 1e16, 1e-5, 0.1, -2.0] | tojson }}`: `[1.0, 100.0, 1e+16, 1e-05, 0.1, -2.0]`,

	`{{ None }} {{ True }} {{ [none] }} {{ none is none }} {{ None == none }} {{ {'a': none}.a is none }}`: `None True [None] True True True`,

	`{{ 'a' ~ 1.0 ~ [none, 'x'] ~ {'k': 1.5} }} {{ [1.0, none, true, [1]] | join(' ') }}`: `a1.0[None, 'x']{'k': 1.5} 1.0 None True [1]`,

	`{{ [1, {'a': 2}] | tojson(separators=(',', ':')) }}`:    `[1,{"a":2}]`,
	`{{ [1, 2] | tojson(indent=1, separators=(';', '=')) }}`: "[\n 1;\n 2\n]",
	`{{ ['a"\\/\n\t', 1.5, -0.5, 1e20, true] | tojson }}`:    `["a\"\\/\n\t", 1.5, -0.5, 1e+20, true]`,

	`{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 // -2 }} {{ -7 // -2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ -7 % -3 }} {{ 6 % 3 }} {{ -6 // 3 }}`:                                               `3 -4 -4 3 1 2 -2 -1 0 -2`,
	`{{ 7.5 // 2 }} {{ -7.5 // 2 }} {{ 7.5 % 2 }} {{ -7.5 % 2 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 2 ** 3 }} {{ 2 ** -1 }} {{ 1.5 * 2 }} {{ 3 - 5 }} {{ 2.5 - 1 }} {{ 1 + 2.5 }} {{ 2.0 ** 2 }}`: `3.0 -4.0 1.5 0.5 3.5 3.0 8 0.5 3.0 -2 1.5 3.5 4.0`,

	`{{ 'ab' * 3 }}|{{ 2 * 'x' }}|{{ 'a' * 0 }}|{{ 'a' * -1 }}|{{ 'a' ~ 1 ~ 2.5 ~ none ~ true }}`: `ababab|xx|||a12.5NoneTrue`,

	`{{ [1] + [2, 3] }} {{ ['a'] + [] }} {{ true + 1 }} {{ 5 - true }}`: `[1, 2, 3] ['a'] 2 4`,

	`{{ range(3) | list }} {{ range(2, 5) | list }} {{ range(5, 0, -2) | list }} {{ range(0, 7, 3) | list }} {{ range(3, 3) | list }} {{ range(-1) | list }} {{ range(0, 6, 2) | list }}`: `[0, 1, 2] [2, 3, 4] [5, 3, 1] [0, 3, 6] [] [] [0, 2, 4]`,

	`{{ 'a\nb\n\nc' | indent }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\n\nb' | indent(1, false, true) }}|{{ 'a\nb' | indent('>') }}|` +
		`{{ 'a\nb' | indent(width=3, first=true) }}`: "a\n    b\n\n    c|  a\n  b|a\n \n b|a\n>b|   a\n   b",
	`{{ 'aXbXc' | replace('X', '-') }} {{ 'aXbXc' | replace('X', '-', 1) }} {{ 'aXbXc'.replace('X', '', 1) }} {{ 'ab' | replace('', '.') }} {{ 'aaa' | replace('a', 'b', 0) }}`: `a-b-c a-bXc abXc .a.b. aaa`,

	`{{ [3, 1, 3, 2, 1] | unique | list }} {{ ['b', 'a', 'b'] | unique | join }}`:      `[3, 1, 2] ba`,
	`{% for k, v in {'b': 2, 'a': 1, 'c': 0} | dictsort %}{{ k }}{{ v }}{% endfor %}`:  `a1b2c0`,
	`{{ [1, 2, 3] | reverse | list }} {{ 'abc' | reverse }} {{ [] | reverse | list }}`: `[3, 2, 1] cba []`,

	`{{ ['a', 1, none] | join('-') }} {{ [] | join(',') }} {{ 'abc' | join('.') }} {{ [1] | join(',') }}`: `a-1-None  a.b.c 1`,

	`{{ [1, 2, 3][-1] }} {{ [1, 2, 3][0] }} {{ [1, 2, 3][-3] }} {{ 'abc'[-3] }} {{ [1, 2, 3][:2] }} {{ [1, 2, 3][1:] }} {{ [1, 2, 3][::-1] }}`: `3 1 1 a [1, 2] [2, 3] [3, 2, 1]`,

	`{% set x = 1 if false else 2 %}{{ x }}{% set y = 3 if true %}{{ y }}`: `23`,
	`{% set x %}a{{ 1 + 1 }}b{% endset %}[{{ x }}]{{ x | length }}`:        `[a2b]3`,

	`{% set ns = namespace(n=0, t='') %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% set ns.t = ns.t ~ i %}{% endfor %}{{ ns.n }} {{ ns.t }}`: `6 0123`,
	`{% for i in [1, 2, 3, 4] %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}`:                   `13`,
	`{% for i in 'abc' %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.first }}{{ loop.last }} {% endfor %}`:                                          `03TrueFalse 12FalseFalse 21FalseTrue `,

	`{{ {'a': 1, 'b': 2}.keys() | list }} {{ {'a': 1, 'b': 2}.values() | list }} {{ {'a': 1, 'b': 2}.items() | list | length }} {{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 5) }}`: `['a', 'b'] [1, 2] 2 1 None 5`,
	`{{ dict(a=1, b='x') }} {{ dict(a=1).a }}`:           `{'a': 1, 'b': 'x'} 1`,
	`{{ ['x', 'y'].index('y') }} {{ 'abc'.index('c') }}`: `1 2`,
	`{{ none }} {{ true }} {{ false }} {{ 1.0 }} {{ 1e16 }} {{ 123456789.5 }} {{ 0.0001 }} {{ 0.00001 }} {{ -0.0 }} {{ 1e15 }} {{ 1e308 * 10 }} {{ -1e308 * 10 }} {{ 1e308 * 10 - 1e308 * 10 }} {{ [1.0, 'a', "it's", 'a"b', 'tab\t'] }} {{ {'k': [none, false]} }}`: `None True False 1.0 1e+16 123456789.5 0.0001 1e-05 -0.0 1000000000000000.0 inf -inf nan [1.0, 'a', "it's", 'a"b', 'tab\t'] {'k': [None, False]}`,

	`{{ ('yes' if 1 > 2 else 'no') ~ ('a' if true else 'b') }} {{ ['p' if 0 else 'q', 'r'] }} {{ {'k': 'v' if 1 else 'w'} }} {{ (1 if false else 2 if false else 3) }} {{ 'x' if false }}|`: `noa ['q', 'r'] {'k': 'v'} 3 |`,

	`{% if [] %}a{% elif 0 %}b{% elif '' %}c{% else %}d{% endif %}{% if not none and 1 %}e{% endif %}`: `de`,

	`{{ 'a b'.title() }} {{ 'ÀB'.lower() }} {{ 'x'.isdigit() }} {{ '12'.isdigit() }} {{ 'a-b'.split('-') }} {{ '  a '.strip() }}|`: `A B àb False True ['a', 'b'] a|`,

	`{{ [3, 1, 2] | sort }} {{ [1, 2, 3] | max }} {{ [1, 2, 3] | min }} {{ [1, 2] | length }} {{ 'abc' | upper }} {{ '42' | int + 1 }} {{ 'x' | int }} {{ 3.7 | int }} {{ '2.5' | float }} {{ 2.567 | round(1) }} {{ -3 | abs }}`: `[1, 2, 3] 3 1 2 ABC 43 0 3 2.5 2.6 3`,
	`{{ 'a' in 'abc' }} {{ 'z' in ['z'] }} {{ 'k' in {'k': 1} }} {{ 'q' not in {'k': 1} }} {{ 1 == 1.0 }} {{ 'a' < 'b' }} {{ 2 >= 3 }} {{ 1 != 2 }}`:                                                                              `True True True True True True False True`,
	`{{ x is defined }} {{ 1 is number }} {{ 'a' is string }} {{ [] is iterable }} {{ {} is mapping }} {{ none is none }} {{ 3 is odd }} {{ 4 is even }} {{ 4 is divisibleby(2) }}`:                                               `False True True True True True True True True`,
}

// Operators, filters, statements and printed values give what jinja2 3.1 gives (with the tojson of transformers); what
// raises an exception there fails here.
func TestExpressions(t *testing.T) {
	for source, want := range expressions {
		gives(t, source, want)
	}
	for _, source := range []string{
		`{{ 1 // 0 }}`,
		`{{ 1.0 / 0 }}`,
		`{{ 1 % 0 }}`,
		`{{ 'a' - 1 }}`,
		`{{ [1] - [1] }}`,
		`{{ none + 1 }}`,
		`{{ 'abc'.index('z') }}`,
		`{{ [1].index(2) }}`,
		`{{ range() }}`,
		`{{ range(1, 2, 0) | list }}`,
		`{{ 'a'.split('') }}`,
		`{{ 'abc'.nope() }}`,
		`{{ {}.nope() }}`,
		`{{ absent.x }}`,
		`{% set a.b = 1 %}`,
		`{% set x = 1 2 %}`,
		`{% set 'x' = 1 %}`,
	} {
		fails(t, source)
	}
}

// range gives start, start + step, … as long as they are before stop in the direction of the step, as Python's does.
func TestEveryRange(t *testing.T) {
	for start := -4; start <= 4; start++ {
		for stop := -4; stop <= 4; stop++ {
			for step := -5; step <= 5; step++ {
				if step == 0 {
					continue
				}
				want := "["
				for i := start; i < stop && step > 0 || i > stop && step < 0; i += step {
					want += fmt.Sprint(i) + " "
				}
				source := fmt.Sprintf("[{%% for i in range(%d, %d, %d) %%}{{ i }} {%% endfor %%}", start, stop, step)
				if got, err := render(source, Conversation{}); err != nil || got != want {
					t.Errorf("%s gives %q, %v; want %q", source, got, err, want)
				}
			}
		}
	}
}

// Widths and precisions of texts count characters, whatever their bytes; numbers to the left have no zeros after them.
func TestFormatsCountCharacters(t *testing.T) {
	for source, want := range map[string]string{
		`{{ '%.0s|%.1s|%.3s|%.4s|%.9s' % ('éß😀x', 'éß😀x', 'éß😀x', 'éß😀x', 'éß😀x') }}`:           `|é|éß😀|éß😀x|éß😀x`,
		`{{ '{:.0}|{:.1}|{:.3}|{:.4s}|{:.9}'.format('éß😀x', 'éß😀x', 'éß😀x', 'éß😀x', 'éß😀x') }}`: `|é|éß😀|éß😀x|éß😀x`,
		`{{ '%3s|%-3s|%4.1s' % ('é', 'ß', '😀x') }}`:                                             `  é|ß  |   😀`,
		`{{ '%-05d|%0-5d|%05d|%-5d|%-+05d|%+05d|%-05.1f|' % (42, 42, 42, 42, 42, 42, 42) }}`:    `42   |42   |00042|42   |+42  |+0042|42.0 |`,
		`{{ '{:3}|{:>3}|{:é^5}|{:4.1}|'.format('é', 'ß', '😀', 'ßx') }}`:                         `é  |  ß|éé😀éé|ß   |`,
		`{{ 'é'.center(4, 'ß') }}|{{ '😀'.ljust(3, 'é') }}|{{ 'é'.rjust(3) }}`:                   `ßéßß|😀éé|  é`,
	} {
		gives(t, source, want)
	}
}

// Formats of infinities and NaN, of floats by n, items of ranges, comments of signs alone, and arguments given twice:
// as jinja2 3.1.6 with Python 3 prints them, or refuses them.
func TestFormatsBeyondNumbers(t *testing.T) {
	const set = `{% set big = 1e308 %}{% set i = big * 10 %}`
	for source, want := range map[string]string{
		`{{ '{:f}'.format(i) }} {{ '{:F}'.format(-i) }} {{ '{:e}'.format(i-i) }} {{ '{:%}'.format(i) }}`:           `inf -INF nan inf%`,
		`{{ '{:g}'.format(i) }} {{ '{:G}'.format(i-i) }} {{ '{:n}'.format(i) }} {{ '{:.3}'.format(i-i) }}`:         `inf NAN inf nan`,
		`{{ '{:6f}'.format(i) }}|{{ '{:06f}'.format(-i) }}|{{ '{:.2f}'.format(i-i) }}|{{ '{:+f}'.format(i) }}`:     `   inf|-00inf|nan|+inf`,
		`{{ '{:n} {:n} {:n} {:c}'.format(1.5, 1234567.0, 1234, 65) }} {{ '{:,}'.format(i) }}`:                      `1.5 1.23457e+06 1234 A inf`,
		`{{ '%f' % i }} {{ '%F' % -i }} {{ '%e' % (i-i) }} {{ '%5.1f' % i }} {{ '%05f' % i }} {{ '%+f' % (i-i) }}`: `inf -INF nan   inf 00inf +nan`,

		`{{ range(5)[2] }} {{ range(1, 9, 3)[-1] }} {{ range(5)[1:4][1] }} {{ range(9)[::-2][1] }}`: `2 7 2 6`,
		`{{ [5,6].1 }} {{ 'ab'.0 }} {{ {1: 'x'}.1 }} {{ [[1,2],[3]].0.1 }}`:                         `6 a x 2`,
		`{{ 87288117400.0 // 6.6 }} {{ 565400750.0 // -5.7 }} {{ -2174.61894 // -8.716 }}`:          `13225472333.0 -99193115.0 249.0`,
		`a {#-#} b|a {#+#} b|a {#- -#} b|a {#--#} b`:                                                `a b|a  b|ab|ab`,
	} {
		gives(t, set+source, want)
	}
	for _, source := range []string{
		`{{ 'aXb'|replace('X', '-', old='a') }}`, `{{ 'a'|indent(2, width=3) }}`, `{{ [1, 2]|join(',', d=';') }}`,
		`{{ 'a'|default('x', default_value='y') }}`, `{{ 3.7|round(1, precision=2) }}`,
		`{{ 'a'|replace('a') }}`, `{{ '{:c}'.format(-1) }}`, `{{ '{:c}'.format(1114112) }}`, `{{ 5|truncate }}`,
		`{{ 10.0 ** 400 }}`, `{{ 'a'.center(5, 'xy') }}`, `{{ 'a'.ljust(5, '') }}`,
		`{% for i in [1] %}{% endfor %}{% break %}`, `{% for i in [1] %}{% endfor %}{% continue %}`,
	} {
		fails(t, source)
	}
}

// alone renders a text without variables.
func alone(source string) (string, error) {
	tpl, err := ParseText(source)
	if err != nil {
		return "", err
	}
	return tpl.RenderText(nil)
}

func gives(t *testing.T, source, want string) {
	t.Helper()
	if got, err := alone(source); err != nil || got != want {
		t.Errorf("%s\n got %q, %v\nwant %q", source, got, err, want)
	}
}

func fails(t *testing.T, source string) {
	t.Helper()
	if got, err := alone(source); err == nil {
		t.Errorf("%s gives %q; in jinja2 it fails", source, got)
	}
}
