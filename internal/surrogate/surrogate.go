// Package surrogate finds halves of characters in JSON.
//
// JSON writes a character outside the basic plane as two escapes, a surrogate pair. Its grammar allows one of them
// alone, which stands for no character: UTF-8 cannot hold it, and encoding/json silently puts U+FFFD there.
package surrogate

import (
	"bytes"
	"strconv"
	"unicode/utf16"
)

// Lone finds an escape in JSON that is half of a surrogate pair without the other: \ud83d where \ud83d\ude00 was
// meant. Programs produce it by cutting a UTF-16 string in the middle of a character.
func Lone(json []byte) (escape string, found bool) {
	b := json
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return "", false
		}
		b = b[i:]
		r, ok := escaped(b)
		switch {
		case !ok:
			b = b[min(2, len(b)):] // a backslash, a quote, a control character
			continue
		case !utf16.IsSurrogate(r):
			b = b[6:]
			continue
		}
		low, _ := escaped(b[6:])
		if utf16.DecodeRune(r, low) == '\uFFFD' {
			return string(b[:6]), true
		}
		b = b[12:]
	}
}

// escaped reads \uXXXX at the beginning of b.
func escaped(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}
