package harness

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// literal reads a Python literal: texts, numbers, True, False, None, and lists and tuples of them.
func literal(s string) (any, error) {
	p := &literalReader{rest: s}
	v, err := p.value(0)
	if err == nil && p.skip() != "" {
		err = fmt.Errorf("%.20q follows", p.rest)
	}
	return v, err
}

type literalReader struct{ rest string }

func (p *literalReader) skip() string {
	p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace)
	return p.rest
}

func (p *literalReader) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deep")
	}
	s := p.skip()
	switch {
	case s == "":
		return nil, errors.New("it ends early")
	case s[0] == '[' || s[0] == '(':
		return p.list(map[byte]byte{'[': ']', '(': ')'}[s[0]], depth)
	case s[0] == '\'' || s[0] == '"':
		return p.text(rune(s[0]))
	}
	n := strings.IndexAny(s, ",])")
	if n < 0 {
		n = len(s)
	}
	word := strings.TrimSpace(s[:n])
	p.rest = s[n:]
	switch word {
	case "True":
		return 1, nil
	case "False":
		return 0, nil
	case "None":
		return nil, nil
	}
	if i, err := strconv.Atoi(word); err == nil && (word == "0" || strings.TrimLeft(word, "+-")[0] != '0') {
		return i, nil
	}
	x, err := strconv.ParseFloat(word, 64)
	if err != nil {
		return nil, fmt.Errorf("%.20q is neither a text nor a number", word)
	}
	return x, nil
}

func (p *literalReader) list(end byte, depth int) (any, error) {
	p.rest = p.rest[1:]
	out := []any{}
	for {
		if s := p.skip(); s != "" && s[0] == end {
			p.rest = s[1:]
			return out, nil
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		switch s := p.skip(); {
		case s != "" && s[0] == ',':
			p.rest = s[1:]
		case s == "" || s[0] != end:
			return nil, errors.New("a list does not end")
		}
	}
}

// simpleEscapes are those of one letter.
var simpleEscapes = map[rune]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a",
	'b': "\b", 'f': "\f", 'v': "\v", '\n': ""}

func (p *literalReader) text(quote rune) (any, error) {
	var b strings.Builder
	s := p.rest[1:]
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		s = s[n:]
		switch {
		case r == quote:
			p.rest = s
			return b.String(), nil
		case r != '\\' || s == "":
			b.WriteRune(r)
			continue
		}
		r, n = utf8.DecodeRuneInString(s)
		s = s[n:]
		if e, ok := simpleEscapes[r]; ok {
			b.WriteString(e)
			continue
		}
		width := map[rune]int{'x': 2, 'u': 4, 'U': 8}[r]
		code, err := strconv.ParseUint(s[:min(width, len(s))], 16, 32)
		if width == 0 || width > len(s) || err != nil { // Python keeps unknown escapes
			b.WriteString("\\" + string(r))
			continue
		}
		b.WriteRune(rune(code))
		s = s[width:]
	}
	return nil, errors.New("a text does not end")
}
