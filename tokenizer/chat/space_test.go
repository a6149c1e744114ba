package chat

import (
	"strings"
	"testing"
)

// Only white space at the beginning of a line is removed before a statement or a comment. Expected texts are jinja2's.
func TestSpaces(t *testing.T) {
	for source, want := range map[string]string{
		"{{ 'a' }} {% if true %}b{% endif %} c": "a b c", "{{ 'a' }}  {# x #}b": "a  b",
		"{% if true %}\t{% endif %}": "\t", "x {% if true %}y{% endif %}": "x y",
		"a\n  {% if true %}\n  b\n  {% endif %}\n": "a\n  b\n", "  {# x #}b": "b",
		"{{ 'a' }}\n \t{% if true %}b{% endif %}": "a\nb", "a {%- if true %} {% endif %}b": "a b",
		"{% raw %} {% x %} {% endraw %}{{ 1 }} {% raw %}y{% endraw %}": " {% x %} 1 y",
	} {
		if got, err := render(source, hello); err != nil || got != want {
			t.Errorf("%q gives %q, %v; want %q", source, got, err, want)
		}
	}
}

// A template whose lines end as on Windows or as on old Macs gives the same text as any other. Expected texts are
// jinja2's.
func TestLineEnds(t *testing.T) {
	for source, want := range map[string]string{
		"a\n\nb\n{{ 'c' }} {% if true %}d{% endif %} e\n":                     "a\n\nb\nc d e",
		"x\ny\n{% for m in messages %}\n  {{ m.role }} {# q #}\n{% endfor %}": "x\ny\n  user ",
		"x\ny\n{{ [1 if true else 2, 'p\nq'] | join }}\n\n":                   "x\ny\n1p\nq\n",
	} {
		for _, end := range []string{"\n", "\r\n", "\r"} {
			if got, err := render(strings.ReplaceAll(source, "\n", end), hello); err != nil || got != want {
				t.Errorf("%q with lines that end in %q gives %q, %v; want %q", source, end, got, err, want)
			}
		}
	}
}
