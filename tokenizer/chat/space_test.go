package chat

import "testing"

// Only white space at the beginning of a line is removed before a statement or a comment. Expected texts are jinja2's.
func TestSpaces(t *testing.T) {
	for source, want := range map[string]string{
		"{{ 'a' }} {% if true %}b{% endif %} c": "a b c", "{{ 'a' }}  {# x #}b": "a  b", "{% if true %}\t{% endif %}": "\t", "x {% if true %}y{% endif %}": "x y",
		"a\n  {% if true %}\n  b\n  {% endif %}\n": "a\n  b\n", "  {# x #}b": "b", "{{ 'a' }}\n \t{% if true %}b{% endif %}": "a\nb", "a {%- if true %} {% endif %}b": "a b",
		"{% raw %} {% x %} {% endraw %}{{ 1 }} {% raw %}y{% endraw %}": " {% x %} 1 y",
	} {
		if got, err := render(source, hello); err != nil || got != want {
			t.Errorf("%q gives %q, %v; want %q", source, got, err, want)
		}
	}
}
