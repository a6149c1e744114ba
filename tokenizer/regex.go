package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// pattern finds a literal or a regular expression in text.
type pattern struct {
	literal string // used when re is nil
	re      *regexp2.Regexp
	budget  *budget
}

// foreign lists constructs that Oniguruma, Hugging Face's engine, interprets differently from ours.
var foreign = []string{`[[:`, `[^[:`, `&&`, `\h`, `\H`, `\K`, `\R`, `\X`, `\y`, `\Y`, `\O`, `\N`, `\g`, `\p{^`}

// compileRegex compiles a regular expression in Oniguruma's Ruby syntax: ^ and $ match at line ends.
func compileRegex(expr string, b *budget) (pattern, error) {
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
	if err := tryRegex(expr, re); err != nil {
		return pattern{}, fmt.Errorf("pattern %q: %w", expr, err)
	}
	return pattern{re: re, budget: b}, nil
}

// each calls f for every match in s in order. An empty match directly after the previous match does not count.
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
	last := -1
	for _, m := range p.search(s) {
		if m[0] == m[1] && m[0] == last {
			continue
		}
		f(m[0], m[1])
		last = m[1]
	}
}

// search lists the matches in s. If the engine gives up for lack of time or stack, earlier matches are kept and the
// rest of s counts as unmatched, so no text is lost. A timeout is retried once, because a process can be suspended for
// longer than its budget, and then recorded: another machine might have found more.
func (p pattern) search(s string) [][]int {
	begin := time.Now()
	all, err := p.re.FindAllStringIndex(s, -1)
	if err == nil || errors.Is(err, regexp2.ErrBacktrackingStackLimit) {
		return all
	}
	if time.Since(begin) < 2*searchTime {
		if all, err = p.re.FindAllStringIndex(s, -1); err == nil {
			return all
		}
	}
	p.budget.overrun("pattern %q takes longer than %v on a text of %d bytes", p.re.String(), searchTime, len(s))
	return all
}

// replace returns s with every match replaced by content, which is literal text, or s unchanged if the result would be
// longer than room.
func (p pattern) replace(s, content string, room int) string {
	if p.re == nil {
		if p.literal == "" {
			return s
		}
		if n := strings.Count(s, p.literal) * (len(content) - len(p.literal)); len(s)+n > room {
			p.budget.overrun("replacing %q by %q makes more than %d bytes of %d", p.literal,
				clip(content), room, len(s))
			return s
		}
		return strings.ReplaceAll(s, p.literal, content)
	}
	var b strings.Builder
	done, full := 0, false
	p.each(s, func(start, stop int) {
		if full = full || b.Len()+start-done+len(content) > room; full {
			return
		}
		b.WriteString(s[done:start])
		b.WriteString(content)
		done = stop
	})
	if full {
		p.budget.overrun("replacing %q by %q makes more than %d bytes of %d", p.re.String(),
			clip(content), room, len(s))
		return s
	}
	if done == 0 && b.Len() == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// clip shortens text quoted in an error.
func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

// single reports whether p is a literal of one character, which can be replaced in fragments of a text.
func (p pattern) single() bool { return p.re == nil && utf8.RuneCountInString(p.literal) == 1 }
