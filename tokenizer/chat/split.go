package chat

import (
	"strings"
	"unicode/utf8"
)

// split is str.split and str.rsplit: at white space if there is no separator, at most limit times.
func split(s string, by, limit any, fromRight bool) list {
	n := intOf("split", limit, -1)
	var parts []string
	if by == nil {
		parts = splitSpace(s, n, fromRight)
	} else {
		parts = splitText(s, textOf("split", by), n, fromRight)
	}
	out := make(list, len(parts))
	for i, p := range parts {
		out[i] = p
	}
	return out
}

// splitText splits at a separator, at most n times if n is not negative.
func splitText(s, sep string, n int, fromRight bool) []string {
	switch {
	case sep == "":
		fail("split: the separator is empty")
	case (n < 0 || fromRight) && strings.Count(s, sep) >= maxListed || n >= maxListed:
		fail("%w", errLarge)
	case n < 0:
		return strings.Split(s, sep)
	case !fromRight:
		return strings.SplitN(s, sep, min(n, len(s))+1)
	}
	parts := strings.Split(s, sep)
	if k := len(parts) - n; k > 1 {
		parts = append([]string{strings.Join(parts[:k], sep)}, parts[k:]...)
	}
	return parts
}

// splitSpace splits at white space, at most n times if n is not negative. The rest keeps the white space at its far
// end.
func splitSpace(s string, n int, fromRight bool) []string {
	if countWords(s, func(r rune) bool { return !isSpace(r) }) > maxListed {
		fail("%w", errLarge)
	}
	parts := strings.FieldsFunc(s, isSpace)
	switch {
	case n < 0 || len(parts) <= n:
		return parts
	case fromRight:
		last := parts[len(parts)-n:]
		for i := range last {
			s = strings.TrimRightFunc(s, isSpace)
			s = s[:len(s)-len(last[len(last)-1-i])]
		}
		return append([]string{strings.TrimRightFunc(s, isSpace)}, last...)
	}
	for _, p := range parts[:n] {
		s = strings.TrimLeftFunc(s, isSpace)[len(p):]
	}
	return append(parts[:n:n], strings.TrimLeftFunc(s, isSpace))
}

// countWords counts runs of some characters.
func countWords(s string, of func(rune) bool) (n int) {
	inWord := false
	for _, r := range s {
		is := of(r)
		if is && !inWord {
			n++
		}
		inWord = is
	}
	return n
}

// partition is str.partition and str.rpartition.
func partition(s string, by any, fromRight bool) tuple {
	sep := textOf("partition", by)
	if sep == "" {
		fail("partition: the separator is empty")
	}
	at := strings.Index(s, sep)
	if fromRight {
		at = strings.LastIndex(s, sep)
	}
	switch {
	case at >= 0:
		return tuple{s[:at], sep, s[at+len(sep):]}
	case fromRight:
		return tuple{"", "", s}
	}
	return tuple{s, "", ""}
}

// lineEnds are the characters at which str.splitlines splits; \r\n is one end.
const lineEnds = "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"

func splitLines(s string, keep bool) list {
	out := list{}
	for s != "" {
		if len(out) > maxListed {
			fail("%w", errLarge)
		}
		i := strings.IndexAny(s, lineEnds)
		if i < 0 {
			return append(out, s)
		}
		_, width := utf8.DecodeRuneInString(s[i:])
		if strings.HasPrefix(s[i:], "\r\n") {
			width = 2
		}
		end := i
		if keep {
			end += width
		}
		out, s = append(out, s[:end]), s[i+width:]
	}
	return out
}
