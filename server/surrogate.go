package server

import (
	"bytes"
	"strconv"
	"unicode/utf16"
)

// loneSurrogate finds an escape in valid JSON that is half of a character outside the basic plane, without the other half:
// \ud83d where \ud83d\ude00 was meant. JSON's grammar allows it and no UTF-8 text can hold it, so encoding/json would
// silently replace it by U+FFFD. Clients produce it by cutting a UTF-16 string in the middle of such a character.
func loneSurrogate(b []byte) (escape string, found bool) {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return "", false
		}
		b = b[i:]
		r, ok := escaped(b)
		switch {
		case !ok:
			b = b[2:] // a backslash, a quote, a control character
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
