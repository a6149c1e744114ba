package tokenizer

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// translate rewrites a pattern of Oniguruma's Ruby syntax for our engine, which follows .NET:
//
//   - \p{…} of general categories and Han, \d and \w get the characters that Oniguruma's newer Unicode adds; \w also
//     follows its idea of a word, which outside a class takes in six Latin-1 numbers;
//   - \b and \B are written out with that \w;
//   - possessive x?+ x*+ x++ become atomic groups, and x{n,m}+ the repeated group that it is in Ruby;
//   - a class inside a class is refused: it is a union there and a subtraction or plain text here.
func translate(expr string) (string, error) {
	t := translator{in: expr}
	for t.pos < len(t.in) {
		if err := t.step(); err != nil {
			return "", err
		}
	}
	return string(t.out), nil
}

type translator struct {
	in     string
	pos    int
	out    []byte
	atom   int   // where in out the last atom begins, which a quantifier would repeat
	groups []int // where the open groups begin
}

func (t *translator) step() error {
	switch c := t.in[t.pos]; c {
	case '\\':
		t.atom = len(t.out)
		t.escape(false)
	case '[':
		t.atom = len(t.out)
		return t.class()
	case '(':
		t.groups = append(t.groups, len(t.out))
		t.take(1)
	case ')':
		if n := len(t.groups); n > 0 {
			t.atom = t.groups[n-1]
			t.groups = t.groups[:n-1]
		}
		t.take(1)
	case '?', '*', '+', '{':
		t.quantifier()
	default:
		t.atom = len(t.out)
		_, n := utf8.DecodeRuneInString(t.in[t.pos:])
		t.take(n)
	}
	return nil
}

// take copies n bytes.
func (t *translator) take(n int) {
	n = min(n, len(t.in)-t.pos)
	t.out = append(t.out, t.in[t.pos:t.pos+n]...)
	t.pos += n
}

// quantifier copies one quantifier and turns a possessive one into a group. The question mark that opens (?:…) lands
// here too and is merely copied.
func (t *translator) quantifier() {
	n := 1
	if t.in[t.pos] == '{' {
		n = strings.IndexByte(t.in[t.pos:], '}') + 1
		if n == 0 || strings.Trim(t.in[t.pos+1:t.pos+n-1], "0123456789,") != "" {
			t.atom = len(t.out)
			t.take(1) // a brace that is plain text
			return
		}
	}
	opens := t.pos > 0 && t.in[t.pos-1] == '(' && len(t.out) > 0 && t.out[len(t.out)-1] == '('
	t.take(n)
	if opens || t.pos == len(t.in) || t.in[t.pos] != '+' {
		if t.pos < len(t.in) && t.in[t.pos] == '?' {
			t.take(1) // lazy
		}
		return
	}
	t.pos++
	body := string(t.out[t.atom:])
	if n > 1 {
		t.out = append(t.out[:t.atom], "(?:"+body+")+"...)
	} else {
		t.out = append(t.out[:t.atom], "(?>"+body+")"...)
	}
}

// class copies [ … ].
func (t *translator) class() error {
	start := t.pos
	t.take(1)
	if t.pos < len(t.in) && t.in[t.pos] == '^' {
		t.take(1)
	}
	for first := true; t.pos < len(t.in); first = false {
		switch c := t.in[t.pos]; {
		case c == ']' && !first:
			t.take(1)
			return nil
		case c == '[':
			return fmt.Errorf("class %q holds another class, which is not supported; write \\[ for the character",
				t.in[start:])
		case c == '\\':
			t.escape(true)
		default:
			t.take(1)
		}
	}
	return fmt.Errorf("class %q is not closed", t.in[start:])
}

// classItems are the insides of classes that stand for the escapes.
var classItems = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	add := func(esc, text string, more ranges) {
		if m[esc] == "" {
			m[esc] = text
		}
		for _, r := range more {
			m[esc] += string(r[0]) + "-" + string(r[1])
		}
	}
	for cat, more := range newCategory {
		for _, name := range []string{cat, cat[:1]} {
			add(`\p{`+name+`}`, `\p{`+name+`}`, more)
		}
	}
	add(`\p{Han}`, `\p{Han}`, ranges{{0x2EBF0, 0x2EE5D}})
	add(`\d`, `\d`, newNumbers)
	add(`\w`, `\p{L}\p{Nl}\p{Other_Alphabetic}\p{M}\p{Nd}\p{Pc}`, newWords)
	return m
})

// escape copies a backslash and what belongs to it.
func (t *translator) escape(inClass bool) {
	rest := t.in[t.pos:]
	for esc, items := range classItems() {
		negated := esc[:1] + strings.ToUpper(esc[1:2]) + esc[2:]
		if esc == `\w` && !inClass {
			items += "²³¹¼½¾"
		}
		switch {
		case strings.HasPrefix(rest, esc) && inClass:
			t.out = append(t.out, items...)
		case strings.HasPrefix(rest, esc):
			t.out = append(t.out, "["+items+"]"...)
		case strings.HasPrefix(rest, negated) && !inClass:
			t.out = append(t.out, "[^"+items+"]"...)
		default:
			continue
		}
		t.pos += len(esc)
		return
	}
	if !inClass && (strings.HasPrefix(rest, `\b`) || strings.HasPrefix(rest, `\B`)) {
		w := "[" + classItems()[`\w`] + "]"
		same, turn := "(?:(?<="+w+")(?="+w+")|(?<!"+w+")(?!"+w+"))", "(?:(?<="+w+")(?!"+w+")|(?<!"+w+")(?="+w+"))"
		if rest[1] == 'b' {
			same = turn
		}
		t.out = append(t.out, same...)
		t.pos += 2
		return
	}
	if len(rest) > 2 && (rest[1] == 'p' || rest[1] == 'P') && rest[2] == '{' {
		t.take(strings.IndexByte(rest, '}') + 1)
		if strings.IndexByte(rest, '}') >= 0 {
			return
		}
	}
	t.take(1)
	_, n := utf8.DecodeRuneInString(t.in[t.pos:])
	t.take(n)
}
