package tokenizer

import (
	"strings"
	"testing"
)

// TestMatchersCover: whatever the pattern and the text, even one that is not UTF-8, the spans cover it in order.
func TestMatchersCover(t *testing.T) {
	texts := []string{"", "a", "aa bb", "\xff", "a\xffb\xe2\x82c", "é\xc3 é",
		strings.Repeat("\xf0\x9f", 5), "日本\x80語 12"}
	for _, expr := range []string{`a+`, `x*`, `\w+`, `\s`, `(?=b)`, `.`, `[^a]`, `\bb`, `é`, PatternGPT2,
		PatternLlama3} {
		p, err := compileRegex(expr, &budget{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range texts {
			done := 0
			for _, sp := range matchPattern(p)(nil, s) {
				if sp.start != done || sp.stop < sp.start || sp.stop > len(s) {
					t.Fatalf("%s on %q: span %v behind %d", expr, s, sp, done)
				}
				done = sp.stop
			}
			if done != len(s) {
				t.Fatalf("%s on %q: %d of %d bytes covered", expr, s, done, len(s))
			}
		}
	}
}

func TestTranslate(t *testing.T) {
	for in, want := range map[string]string{
		`a?+b*+c++`:    `(?>a?)(?>b*)(?>c+)`,
		`(?:a|b)++`:    `(?>(?:a|b)+)`,
		`[a-c]++x`:     `(?>[a-c]+)x`,
		`\.++`:         `(?>\.+)`,
		`a{1,3}+`:      `(?:a{1,3})+`,
		`a+?b??`:       `a+?b??`,
		`(?i:a)(?!b)`:  `(?i:a)(?!b)`,
		`a{b`:          `a{b`,
		`\\w[\\w]`:     `\\w[\\w]`,
		`[\]\[]`:       `[\]\[]`,
		`\p{Zs}\P{Lt}`: `\p{Zs}\P{Lt}`,
		`\`:            `\`,
	} {
		got, err := translate(in)
		if err != nil || got != want {
			t.Errorf("%s becomes %s, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{`[a[b]]`, `[a`, `[`} {
		if got, err := translate(in); err == nil {
			t.Errorf("%s becomes %s; want an error", in, got)
		}
	}
}

// Numbers that are newer than Go's tables, by every escape that has them, alone and in a class; what was tried on short
// texts has its whole time afterwards.
func TestEscapesOfNewNumbers(t *testing.T) {
	for expr, want := range map[string]bool{`\d`: true, `[\d]`: true, `\D`: false, `[^\d!]`: false, `\p{N}`: true,
		`[\p{N}]`: true, `\P{N}`: false, `\w`: true, `\W`: false, `\p{L}`: false} {
		p, err := compileRegex(expr, &budget{})
		if err != nil {
			t.Fatal(err)
		}
		if p.re.MatchTimeout != searchTime {
			t.Errorf("%s has %v", expr, p.re.MatchTimeout)
		}
		for _, pair := range newNumbers {
			for _, r := range pair {
				n := 0
				p.each("!"+string(r)+"!", func(start, stop int) {
					if start > 0 && start <= len(string(r)) { // not the marks on both sides
						n += stop - start
					}
				})
				if whole := len(string(r)); n != whole && n != 0 || (n == whole) != want {
					t.Errorf("%s matches %d bytes of %U", expr, n, r)
				}
			}
		}
	}
}

// Brackets that stand for themselves, properties, and quantifiers that do not give back, as Oniguruma reads them.
func TestTranslatedParts(t *testing.T) {
	for _, c := range []struct{ expr, text, want string }{
		{`[]a]`, "x]a[", "]a"}, {`[^]a]`, "x]a[", "x["}, {`\p{Lu}b`, "Ab ab", "Ab"}, {`\p{Lu}+b`, "ABb", "ABb"},
		{`a++b`, "aab", "aab"}, {`a++a`, "aaa", ""},
		{`\(+x`, "((x", "((x"}, {`(?:a|b)++b`, "abab", ""}, {`x{2}`, "xxx", "xx"}, {`x{a`, "x{a", "x{a"},
		{`a?+a`, "a", ""}, {`\P{Lu}+`, "Aab", "ab"},
	} {
		p, err := compileRegex(c.expr, &budget{})
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		got := ""
		p.each(c.text, func(start, stop int) { got += c.text[start:stop] })
		if got != c.want {
			t.Errorf("%s finds %q in %q, want %q", c.expr, got, c.text, c.want)
		}
	}
}
