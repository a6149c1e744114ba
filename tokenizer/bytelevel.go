package tokenizer

import "unicode/utf8"

// The byte-level alphabet writes each byte as one printable character: bytes that already are printable Latin-1
// characters stand for themselves, the other 68 take U+0100 onwards in order.
var (
	byteRune [256]rune
	runeByte [256 + 68]int16 // -1: not in the alphabet
	byteText [256]string     // byteRune as UTF-8
)

func init() {
	for i := range runeByte {
		runeByte[i] = -1
	}
	spare := rune(256)
	for b := range 256 {
		r := rune(b)
		if b < '!' || b > '~' && b < 0xA1 || b == 0xAD {
			r = spare
			spare++
		}
		byteRune[b] = r
		byteText[b] = string(r)
		runeByte[r] = int16(b)
	}
}

// appendByteText appends s spelled in the byte-level alphabet.
func appendByteText(dst []byte, s string) []byte {
	for i := range len(s) {
		dst = append(dst, byteText[s[i]]...)
	}
	return dst
}

// appendByteLevel appends the bytes a byte-level token stands for. A token with any character outside the alphabet
// stands for its own text.
func appendByteLevel(dst []byte, tok string) []byte {
	n := len(dst)
	for _, r := range tok {
		if int(r) >= len(runeByte) || runeByte[r] < 0 {
			return append(dst[:n], tok...)
		}
		dst = append(dst, byte(runeByte[r]))
	}
	return dst
}

// lossy appends b to dst as UTF-8. Each maximal invalid part (a lead byte with the continuation bytes that could follow
// it, or one stray byte) becomes one U+FFFD. If final is false it stops before a trailing part that more bytes could
// complete, and returns how many bytes of b it consumed.
func lossy(dst, b []byte, final bool) ([]byte, int) {
	i := 0
	for i < len(b) {
		r, n := utf8.DecodeRune(b[i:])
		if r != utf8.RuneError || n > 1 {
			dst = append(dst, b[i:i+n]...)
			i += n
			continue
		}
		bad, open := invalidPart(b[i:])
		if open && !final {
			return dst, i
		}
		dst = append(dst, "\uFFFD"...)
		i += bad
	}
	return dst, i
}

// invalidPart returns the length of the maximal invalid part at the start of b, which is not valid there, and whether b
// ends before that part is decided.
func invalidPart(b []byte) (n int, open bool) {
	need, lo, hi := 0, byte(0x80), byte(0xBF)
	switch c := b[0]; {
	case c >= 0xC2 && c <= 0xDF:
		need = 1
	case c >= 0xE0 && c <= 0xEF:
		need = 2
		if c == 0xE0 {
			lo = 0xA0
		} else if c == 0xED {
			hi = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		need = 3
		if c == 0xF0 {
			lo = 0x90
		} else if c == 0xF4 {
			hi = 0x8F
		}
	}
	for n = 1; n <= need; n++ {
		if n == len(b) {
			return n, true
		}
		if b[n] < lo || b[n] > hi {
			return n, false
		}
		lo, hi = 0x80, 0xBF
	}
	return 1, false
}
