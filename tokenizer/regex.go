package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// pattern finds a literal or a regular expression in text.
type pattern struct {
	literal string // used when re is nil
	re      *regexp2.Regexp
}

// foreign lists spellings that Oniguruma, the engine of Hugging Face, reads differently from ours.
var foreign = []string{`[[:`, `[^[:`, `&&`, `\h`, `\H`, `\K`, `\R`, `\X`, `\y`, `\Y`, `\O`, `\N`, `\g`, `\p{^`}

// compileRegex compiles a regular expression in Oniguruma's Ruby syntax: ^ and $ match at line ends.
func compileRegex(expr string) (pattern, error) {
	plain := strings.ReplaceAll(expr, `\\`, "")
	for _, f := range foreign {
		if strings.Contains(plain, f) {
			return pattern{}, fmt.Errorf("pattern %q uses %s, which is not supported", expr, f)
		}
	}
	ours, err := translate(expr)
	if err != nil {
		return pattern{}, fmt.Errorf("pattern %q: %w", expr, err)
	}
	re, err := regexp2.Compile(ours, regexp2.Multiline)
	if err != nil {
		return pattern{}, fmt.Errorf("pattern %q: %w", expr, err)
	}
	return pattern{re: re}, nil
}

// each calls f for every match in s in order. An empty match right behind the previous match does not count.
func (p pattern) each(s string, f func(start, stop int)) {
	if p.re == nil {
		if p.literal == "" {
			return
		}
		for from := 0; ; {
			n := strings.Index(s[from:], p.literal)
			if n < 0 {
				return
			}
			f(from+n, from+n+len(p.literal))
			from += n + len(p.literal)
		}
	}
	// A match error can only come from the engine's limit on backtracking; what was found so far stands and the rest of s
	// counts as unmatched, so no text is lost.
	all, _ := p.re.FindAllStringIndex(s, -1)
	last := -1
	for _, m := range all {
		if m[0] == m[1] && m[0] == last {
			continue
		}
		f(m[0], m[1])
		last = m[1]
	}
}

// replace returns s with every match replaced by content, which is literal text.
func (p pattern) replace(s, content string) string {
	if p.re == nil {
		if p.literal == "" {
			return s
		}
		return strings.ReplaceAll(s, p.literal, content)
	}
	var b strings.Builder
	done := 0
	p.each(s, func(start, stop int) {
		b.WriteString(s[done:start])
		b.WriteString(content)
		done = stop
	})
	if done == 0 && b.Len() == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// single reports whether p is a literal of one character, so that it can be replaced in fragments of a text.
func (p pattern) single() bool { return p.re == nil && utf8.RuneCountInString(p.literal) == 1 }
