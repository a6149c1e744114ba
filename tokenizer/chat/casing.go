package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// casings map a text as Python's str does: by Unicode's full mappings, in which one character may become several (ß is
// SS in capitals), and with the form of sigma that ends a word. No text becomes more than three times as long.
var casings = map[string]func(string) string{
	"upper": upper, "lower": lower, "capitalize": capitalize, "title": title, "casefold": casefold,
	"swapcase": swapcase,
}

const mostCased = 3 // bytes that a mapping makes of one

func upper(s string) string {
	if isASCII(s) { // cases is much slower
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

func lower(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// casefold folds Cherokee to its capitals, as Unicode prescribes for it alone; cases.Fold leaves them lower-cased.
func casefold(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 0xab70 && r <= 0xabbf || r >= 0x13f8 && r <= 0x13fd {
			return unicode.ToUpper(r)
		}
		return r
	}, cases.Fold().String(s))
}

// lowered is lower of each character of a valid text.
func lowered(s string) []string {
	one, all := cases.Lower(language.Und), lower(s)
	parts := make([]string, 0, len(s))
	for _, r := range s {
		n := utf8.RuneLen(r)
		if r >= utf8.RuneSelf && isCased(r) {
			n = len(one.String(string(r)))
		}
		parts, all = append(parts, all[:n]), all[n:]
	}
	return parts
}

// mapped is a text of which each character is replaced by f, with its place among the characters and its lower case.
func mapped(s string, f func(i int, r rune, lower string) string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	parts := lowered(s)
	i := 0
	for _, r := range s {
		parts[i] = f(i, r, parts[i])
		i++
	}
	return strings.Join(parts, "")
}

// capitalize is str.capitalize: title case for the first character, lower case for the others.
func capitalize(s string) string {
	return mapped(s, func(i int, r rune, lower string) string {
		if i == 0 {
			return titled(r)
		}
		return lower
	})
}

// title is str.title: a word begins after every character that has no case.
func title(s string) string {
	inWord := false
	return mapped(s, func(_ int, r rune, lower string) string {
		begins := !inWord
		if inWord = isCased(r); begins {
			return titled(r)
		}
		return lower
	})
}

func swapcase(s string) string {
	up := cases.Upper(language.Und)
	return mapped(s, func(_ int, r rune, lower string) string {
		switch {
		case isUpper(r):
			return lower
		case isLower(r):
			return up.String(string(r))
		}
		return string(r)
	})
}

// titled is the title case of a character.
func titled(r rune) string {
	switch {
	case r < utf8.RuneSelf:
		return string(unicode.ToUpper(r))
	case !isCased(r):
		return string(r)
	}
	return cases.Title(language.Und, cases.NoLower).String(string(r))
}

func isLower(r rune) bool { return unicode.In(r, unicode.Ll, unicode.Other_Lowercase) }

func isUpper(r rune) bool { return unicode.In(r, unicode.Lu, unicode.Other_Uppercase) }

func isCased(r rune) bool { return isLower(r) || isUpper(r) || unicode.Is(unicode.Lt, r) }

// allCased reports whether a text has characters of a case and no others that have one.
func allCased(s string, is func(rune) bool) bool {
	some := false
	for _, r := range s {
		if is(r) {
			some = true
		} else if isCased(r) {
			return false
		}
	}
	return some
}

// filterTitle is jinja2's title, which has its own idea of words: they begin after white space and the characters
// -({[<.
func filterTitle(s string) string {
	between := func(r rune) bool { return isSpace(r) || strings.ContainsRune("-({[<", r) }
	var out strings.Builder
	for s != "" {
		end := strings.IndexFunc(s, func(r rune) bool { return !between(r) })
		if end == 0 {
			end = strings.IndexFunc(s, between)
		}
		if end < 0 {
			end = len(s)
		}
		first, rest := cutRune(s[:end])
		out.WriteString(upper(first) + lower(rest))
		s = s[end:]
	}
	return out.String()
}

// cutRune separates the first character of a text.
func cutRune(s string) (first, rest string) {
	for i := range s {
		if i > 0 {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// caseFilter is a filter that maps case.
func caseFilter(name string, f func(string) string) filterFunc {
	return func(r *run, v any, p params) any {
		p.bind(name, 0)
		s := str(v)
		r.take(mostCased * len(s))
		return f(s)
	}
}
