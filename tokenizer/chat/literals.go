package chat

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// simpleEscapes are the escapes of one character.
var simpleEscapes = map[byte]string{
	'n': "\n", 't': "\t", 'r': "\r", 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", '\\': "\\", '\'': "'",
	'"': `"`, '\n': "",
}

// unescape reads Python's escapes in the inside of a quoted text. jinja2 writes characters beyond ASCII as escapes
// before it reads them, so that a backslash before such a character is a backslash before a backslash.
func unescape(s string) (string, error) {
	var out strings.Builder
	for s != "" {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			out.WriteString(s)
			break
		}
		out.WriteString(s[:i])
		if s = s[i+1:]; s == "" {
			return "", errors.New("a text ends in a backslash")
		}
		if c := s[0]; c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s)
			out.WriteString(escapeRune(r))
			s = s[n:]
			continue
		}
		text, n, err := oneEscape(s)
		if err != nil {
			return "", err
		}
		out.WriteString(text)
		s = s[n:]
	}
	return out.String(), nil
}

// escapeRune is what Python's backslashreplace writes for a character.
func escapeRune(r rune) string {
	switch {
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// oneEscape reads the escape that s begins with, after its backslash; n is its length.
func oneEscape(s string) (text string, n int, err error) {
	c := s[0]
	if text, ok := simpleEscapes[c]; ok {
		return text, 1, nil
	}
	if c >= '0' && c <= '7' {
		for n = 1; n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7'; n++ {
		}
		v, _ := strconv.ParseUint(s[:n], 8, 32) // three octal digits
		return string(rune(v)), n, nil
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	switch {
	case c == 'N':
		return "", 0, errors.New(`\N in a text is not supported`)
	case digits == 0:
		return `\` + s[:1], 1, nil // not an escape
	case len(s) <= digits:
		return "", 0, fmt.Errorf(`\%c in a text needs %d digits`, c, digits)
	}
	v, err := strconv.ParseUint(s[1:1+digits], 16, 32)
	if err != nil || !utf8.ValidRune(rune(v)) || v > utf8.MaxRune {
		return "", 0, fmt.Errorf(`\%s in a text is not a character`, s[:1+digits])
	}
	return string(rune(v)), 1 + digits, nil
}
