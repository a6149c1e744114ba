package escape

import "testing"

func TestEscape(t *testing.T) {
	for in, want := range map[string][2]string{
		"plain ä €":             {"plain ä €", "plain ä €"},
		"a\nb\tc":               {"a\nb\tc", `a\x0ab\x09c`},
		"\x1b[31mred\u009b":     {`\x1b[31mred\x9b`, `\x1b[31mred\x9b`},
		"cut \xe2\x82 short":    {`cut \xe2\x82 short`, `cut \xe2\x82 short`},
		"a sign �":              {"a sign �", "a sign �"},
		"\r\x00\x7f":            {`\x0d\x00\x7f`, `\x0d\x00\x7f`},
		"\u202eltr\u2066\u200f": {`\u202eltr\u2066\u200f`, `\u202eltr\u2066\u200f`},
		"a\u2028b\u2029":        {`a\u2028b\u2029`, `a\u2028b\u2029`},
		"می\u200cخواهم":         {"می\u200cخواهم", "می\u200cخواهم"},
		"":                      {"", ""},
	} {
		if got := [2]string{Text(in), Line(in)}; got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
