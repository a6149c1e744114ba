package experiment

import (
	"strings"
	"unicode/utf8"
)

// columns is the width of the document's prose; tables and code are as wide as they are.
const columns = 120

// prose breaks text at spaces into lines of the document's width. The first line begins with lead, the others with as
// many spaces.
func prose(lead, text string) string {
	var b strings.Builder
	b.WriteString(lead)
	indent := utf8.RuneCountInString(lead)
	at := indent
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			at += n
		case at+1+n > columns:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent + n
		default:
			b.WriteByte(' ')
			at += 1 + n
		}
		b.WriteString(word)
	}
	b.WriteByte('\n')
	return b.String()
}
