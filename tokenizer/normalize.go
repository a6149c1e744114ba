package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalizer rewrites a segment of text before it is split into words. A result longer than room bytes is discarded and
// the text is unchanged.
type normalizer func(p piece, room int) piece

// sequence applies normalizers in order; an empty list gives nil.
func sequence(ns []normalizer) normalizer {
	switch len(ns) {
	case 0:
		return nil
	case 1:
		return ns[0]
	}
	return func(p piece, room int) piece {
		for _, n := range ns {
			p = n(p, room)
		}
		return p
	}
}

// textNormalizer makes a normalizer of a function of the text alone.
func textNormalizer(f func(string) string) normalizer {
	return func(p piece, _ int) piece {
		p.s = f(p.s)
		return p
	}
}

// normalForm applies a Unicode normal form to the text between characters that it must not change.
func normalForm(form norm.Form) normalizer {
	return textNormalizer(func(s string) string {
		i := strings.IndexFunc(s, unnormalized)
		if i < 0 {
			return form.String(s)
		}
		var b strings.Builder
		for ; i >= 0; i = strings.IndexFunc(s, unnormalized) {
			n := runeLen(s, i)
			b.WriteString(form.String(s[:i]))
			b.WriteString(s[i : i+n])
			s = s[i+n:]
		}
		b.WriteString(form.String(s))
		return b.String()
	})
}

// lowercase maps each character separately, so a final sigma has no special form; only İ becomes two characters.
func lowercase(s string) string {
	changed := false
	for _, r := range s {
		if r == 'İ' || lower(r) != r {
			changed = true
			break
		}
	}
	if !changed {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i, r := range s {
		switch {
		case r == 'İ':
			b.WriteString("i\u0307")
		case r == utf8.RuneError:
			b.WriteString(s[i : i+runeLen(s, i)])
		default:
			b.WriteRune(lower(r))
		}
	}
	return b.String()
}

func stripAccents(s string) string {
	if strings.IndexFunc(s, isAccent) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if !isAccent(r) {
			b.WriteString(s[i : i+runeLen(s, i)])
		}
	}
	return b.String()
}

// strip removes white space at the ends. A text stripped at its beginning no longer counts as the beginning of the
// whole text.
func strip(left, right bool) normalizer {
	return func(p piece, _ int) piece {
		if left {
			n := len(p.s)
			p.s = strings.TrimLeftFunc(p.s, unicode.IsSpace)
			p.first = p.first && len(p.s) == n
		}
		if right {
			p.s = strings.TrimRightFunc(p.s, unicode.IsSpace)
		}
		return p
	}
}

// prepend puts text in front of a non-empty segment.
func prepend(text string) normalizer {
	return textNormalizer(func(s string) string {
		if s == "" {
			return s
		}
		return text + s
	})
}

// replaceNormalizer replaces a pattern.
func replaceNormalizer(re pattern, content string) normalizer {
	return func(p piece, room int) piece {
		p.s = re.replace(p.s, content, room)
		return p
	}
}

// normal normalizes a segment within the tokenizer's budget.
func (t *Tokenizer) normal(p piece) piece {
	if t.normalize == nil {
		return p
	}
	return t.normalize(p, room(len(p.s)))
}
