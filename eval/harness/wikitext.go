package harness

import (
	"regexp"
	"strings"
)

// space is Python's \s in a text, which includes non-ASCII space.
const space = `[\s\v\p{Z}\x{1c}-\x{1f}\x{85}]`

// pairs of brackets and quotation marks lose the white space inside them.
var pairs = []struct {
	find *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\(` + space + `*([^)]*?)` + space + `*\)`), "($1)"},
	{regexp.MustCompile(`\[` + space + `*([^\]]*?)` + space + `*\]`), "[$1]"},
	{regexp.MustCompile(`\{` + space + `*([^}]*?)` + space + `*\}`), "{$1}"},
	{regexp.MustCompile(`"` + space + `*([^"]*?)` + space + `*"`), `"$1"`},
	{regexp.MustCompile(`'` + space + `*([^']*?)` + space + `*'`), "'$1'"},
}

// odd is a pattern of the harness that does not do what was intended: it looks for slashes.
var odd = regexp.MustCompile(`/' [0-9]/`)

// detokenized turns WikiText's page into running text.
func detokenized(s string) string {
	s = strings.ReplaceAll(s, "s '", "s'")
	s = odd.ReplaceAllLiteralString(s, "/'[0-9]/")
	for _, p := range [][2]string{{" @-@ ", "-"}, {" @,@ ", ","}, {" @.@ ", "."},
		{" : ", ": "}, {" ; ", "; "}, {" . ", ". "}, {" ! ", "! "}, {" ? ", "? "}, {" , ", ", "}} {
		s = strings.ReplaceAll(s, p[0], p[1])
	}
	for _, p := range pairs {
		s = p.find.ReplaceAllString(s, p.with)
	}
	for _, p := range [][2]string{{"= = = =", "===="}, {"= = =", "==="}, {"= =", "=="}, {" ° ", "°"}, {" \n", "\n"},
		{"\n ", "\n"}, {" N ", " 1 "}, {" 's", "'s"}} {
		s = strings.ReplaceAll(s, p[0], p[1])
	}
	return s
}
