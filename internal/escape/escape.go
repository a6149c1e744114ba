// Package escape makes text of foreign origin safe to print: what a terminal would obey is shown as \xNN or \uNNNN
// instead, and so are bytes that are not UTF-8.
package escape

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text escapes all control characters but tabs and ends of lines, and what changes the direction of text.
func Text(s string) string { return escape(s, "\n\t") }

// Line escapes tabs and ends of lines too, so that the result is one line.
func Line(s string) string { return escape(s, "") }

func escape(s, kept string) string {
	var b strings.Builder
	for i, r := range s {
		_, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsControl(r) && !strings.ContainsRune(kept, r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
