package chat

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind int

const (
	endToken   kind = iota // of the template
	dataToken              // text outside tags
	printBegin             // {{
	printEnd               // }}
	blockBegin             // {%
	blockEnd               // %}
	nameToken
	textToken // in quotation marks
	numberToken
	opToken
)

// token is a piece of a template. value is that of a text or a number.
type token struct {
	kind  kind
	text  string
	value any
	line  int
}

// is reports whether a token is a name or an operator with this text.
func (t token) is(text string) bool {
	return (t.kind == nameToken || t.kind == opToken) && t.text == text
}

// String describes a token in errors.
func (t token) String() string {
	switch t.kind {
	case endToken:
		return "the end of the template"
	case dataToken:
		return "text"
	}
	return fmt.Sprintf("%.40q", t.text)
}

// lexer splits a template. Its rules about white space are those of jinja2: a minus sign in a tag removes all white
// space on that side. With trim, a statement or a comment removes the newline after it and the white space between it
// and the beginning of its line, unless it has a plus sign there.
type lexer struct {
	source    string
	line      int
	trim      bool
	lineBegin bool // the last match ended with a newline
	tokens    []token
}

// Tokens, and the tags of raw blocks.
var (
	rawBegin = regexp.MustCompile(`^\{%[-+]?\s*raw\s*-?%\}`)
	rawEnd   = regexp.MustCompile(`\{%[-+]?\s*endraw\s*[-+]?%\}`)
	quoted   = regexp.MustCompile(`^(?s:'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")`)
	decimal  = regexp.MustCompile(`^(?i:(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?e[-+]?(?:\d+_)*\d+|\.(?:\d+_)*\d+))`)
	integer  = regexp.MustCompile(`^(?i:0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[\da-f])+|[1-9](?:_?\d)*|0(?:_?0)*)`)
	operator = regexp.MustCompile(`^(?://|\*\*|==|!=|>=|<=|[-+/*%~\[\](){}<>=.:|,;])`)
)

// lex splits a template into tokens, with a bound on those of a tag, which bounds what the parser will recurse into.
func lex(source string, trim, keepNewline bool) []token {
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source)
	if !keepNewline {
		source = strings.TrimSuffix(source, "\n")
	}
	l := &lexer{source: source, line: 1, trim: trim, lineBegin: true}
	for l.source != "" {
		l.next()
	}
	return append(l.tokens, token{kind: endToken, line: l.line})
}

// take removes the first n bytes of what is left and returns them.
func (l *lexer) take(n int) string {
	s := l.source[:n]
	l.source = l.source[n:]
	l.line += strings.Count(s, "\n")
	if s != "" {
		l.lineBegin = strings.HasSuffix(s, "\n")
	}
	return s
}

// fail ends the reading.
func (l *lexer) fail(format string, args ...any) {
	fail("line %d: %s", l.line, fmt.Sprintf(format, args...))
}

// data adds text that ends before a tag with this sign. strips says whether lstrip_blocks applies to the tag.
func (l *lexer) data(n int, sign byte, strips bool) {
	begin, line := l.lineBegin, l.line
	text := l.take(n)
	switch {
	case sign == '-':
		text = strings.TrimRightFunc(text, isSpace)
	case sign != '+' && strips && l.trim:
		at := strings.LastIndexByte(text, '\n') + 1
		if (at > 0 || begin) && strings.TrimRightFunc(text[at:], isSpace) == "" {
			text = text[:at]
		}
	}
	if text != "" {
		l.tokens = append(l.tokens, token{kind: dataToken, text: text, line: line})
	}
}

// signAt is the byte of the source at i, or 0.
func (l *lexer) signAt(i int) byte {
	if i < len(l.source) {
		return l.source[i]
	}
	return 0
}

// next reads text and the tag after it.
func (l *lexer) next() {
	at := 0
	for {
		i := strings.IndexByte(l.source[at:], '{')
		if i < 0 || at+i+1 == len(l.source) {
			l.data(len(l.source), '+', false)
			return
		}
		if at += i; strings.IndexByte("%{#", l.source[at+1]) >= 0 {
			break
		}
		at++
	}
	what := l.source[at+1]
	l.data(at, l.signAt(at+2), what != '{')
	switch raw := rawBegin.FindString(l.source); {
	case raw != "":
		l.raw(raw)
	case what == '#':
		l.comment()
	default:
		n := 2
		if s := l.signAt(2); s == '-' || s == '+' {
			n = 3
		}
		begin, end, closing := printBegin, printEnd, "}}"
		if what == '%' {
			begin, end, closing = blockBegin, blockEnd, "%}"
		}
		l.tokens = append(l.tokens, token{kind: begin, text: l.source[:2], line: l.line})
		l.take(n)
		l.inside(end, closing)
	}
}

// raw reads a raw block.
func (l *lexer) raw(begin string) {
	l.take(len(begin))
	l.after(begin[len(begin)-3], false)
	end := rawEnd.FindStringIndex(l.source)
	if l.source == "" { // jinja2 wants no end of a block without text
		return
	}
	if end == nil {
		l.fail("a raw block has no {%% endraw %%}")
	}
	l.data(end[0], l.source[end[0]+2], true)
	tag := l.take(end[1] - end[0])
	l.after(tag[len(tag)-3], true)
}

// comment skips a comment.
func (l *lexer) comment() {
	begin := 2
	if s := l.signAt(2); s == '-' || s == '+' {
		begin = 3
	}
	n := strings.Index(l.source[begin:], "#}")
	if len(l.source) == begin { // nor of a comment
		l.take(begin)
		return
	}
	if n < 0 {
		l.fail("a comment has no #}")
	}
	sign := byte(0)
	if n > 0 {
		sign = l.source[begin+n-1]
	}
	l.take(begin + n + 2)
	l.after(sign, true)
}

// after removes white space after a tag with this sign.
func (l *lexer) after(sign byte, statement bool) {
	switch {
	case sign == '-':
		l.take(len(l.source) - len(strings.TrimLeftFunc(l.source, isSpace)))
	case sign != '+' && statement && l.trim && strings.HasPrefix(l.source, "\n"):
		l.take(1)
	}
}

// inside reads the tokens of a tag and its end, which is not looked for within brackets.
func (l *lexer) inside(end kind, closing string) {
	var open []byte // the brackets that must follow
	for n := 0; ; n++ {
		if l.take(len(l.source) - len(strings.TrimLeftFunc(l.source, isSpace))); l.source == "" {
			l.fail("a tag has no %s", closing)
		}
		if n > maxTagTokens {
			l.fail("a tag of more than %d tokens", maxTagTokens)
		}
		if sign := l.source[0]; len(open) == 0 {
			rest := l.source
			if sign == '-' || sign == '+' && end == blockEnd {
				rest = rest[1:]
			} else {
				sign = 0
			}
			if strings.HasPrefix(rest, closing) {
				l.tokens = append(l.tokens, token{kind: end, text: closing, line: l.line})
				l.take(len(l.source) - len(rest) + len(closing))
				l.after(sign, end == blockEnd)
				return
			}
		}
		t := l.token()
		if l.tokens = append(l.tokens, t); t.kind != opToken {
			continue
		}
		switch t.text {
		case "(", "[", "{":
			open = append(open, map[string]byte{"(": ')', "[": ']', "{": '}'}[t.text])
		case ")", "]", "}":
			if len(open) == 0 || open[len(open)-1] != t.text[0] {
				l.fail("unexpected %s", t)
			}
			open = open[:len(open)-1]
		}
	}
}

// token reads one token of a tag.
func (l *lexer) token() token {
	t := token{line: l.line}
	last := ""
	if k := len(l.tokens); k > 0 {
		last = l.tokens[k-1].text
	}
	var err error
	s := l.source
	digit := s[0] >= '0' && s[0] <= '9'
	switch {
	case digit && last != "." && decimal.MatchString(s):
		t.kind, t.text = numberToken, decimal.FindString(s)
		t.value, err = strconv.ParseFloat(strings.ReplaceAll(t.text, "_", ""), 64)
		if t.value != 0.0 { // too large is infinite, as in Python
			err = nil
		}
	case digit && integer.MatchString(s):
		t.kind, t.text = numberToken, integer.FindString(s)
		var n int64
		n, err = strconv.ParseInt(strings.ReplaceAll(t.text, "_", ""), 0, 64)
		t.value = int(n)
	case wordLen(s) > 0:
		t.kind, t.text = nameToken, s[:wordLen(s)]
		if r, _ := utf8.DecodeRuneInString(s); unicode.IsNumber(r) || unicode.IsMark(r) {
			l.fail("%.40q is not a name", t.text)
		}
	case quoted.MatchString(s):
		t.kind, t.text = textToken, quoted.FindString(s)
		t.value, err = unescape(t.text[1 : len(t.text)-1])
	case operator.MatchString(s):
		t.kind, t.text = opToken, operator.FindString(s)
	default:
		r, _ := utf8.DecodeRuneInString(s)
		l.fail("unexpected char %q", r)
	}
	if err != nil {
		l.fail("%.80v", err)
	}
	l.take(len(t.text))
	return t
}

// wordLen is the length of the word that a text begins with.
func wordLen(s string) int {
	for i, r := range s {
		if r != '_' && (r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)) {
			return i
		}
	}
	return len(s)
}
