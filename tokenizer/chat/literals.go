package chat

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// quoted is a text in quotation marks, as jinja2 reads it.
var quoted = regexp.MustCompile(`^(?s:'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")`)

// rawEnd is the tag that ends a raw block.
var rawEnd = regexp.MustCompile(`\{%[-+]?\s*endraw\s*[-+]?%\}`)

// rawBegin is the inside of the tag that begins one.
var rawBegin = regexp.MustCompile(`^[-+]?\s*raw\s*[-+]?$`)

// escapeLiterals rewrites the escapes in the quoted texts of a template's tags from Python's notation to Go's. gonja reads
// Go's, and takes the end of '\\' for an escaped quotation mark.
func escapeLiterals(source string) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(source, '{')
		if i < 0 || i+1 == len(source) {
			return out.String() + source
		}
		kind := source[i+1]
		out.WriteString(source[:i])
		switch source = source[i:]; kind {
		case '#':
			end := strings.Index(source, "#}")
			if end < 0 {
				return out.String() + source
			}
			out.WriteString(source[:end])
			source = source[end:]
		case '{', '%':
			n, text := escapeTag(source, kind)
			inner := strings.TrimSuffix(strings.TrimPrefix(source[:n], "{%"), "%}")
			out.WriteString(text)
			if source = source[n:]; kind == '%' && rawBegin.MatchString(inner) {
				end := rawEnd.FindStringIndex(source)
				if end == nil { // an error, which the lexer reports
					return out.String() + source
				}
				out.WriteString(source[:end[1]])
				source = source[end[1]:]
			}
		default:
			out.WriteByte('{')
			source = source[1:]
		}
	}
}

// escapeTag rewrites the tag that a text begins with; n is its length. }} within braces does not end it. A quoted text
// without an end is an error, which the lexer reports: the tag is the rest of the text.
func escapeTag(s string, kind byte) (n int, text string) {
	var out strings.Builder
	closing := map[byte]string{'{': "}}", '%': "%}"}[kind]
	depth := 0
	for n = 2; n < len(s); {
		if depth <= 0 && strings.HasPrefix(s[n:], closing) {
			n += 2
			return n, s[:2] + out.String() + closing
		}
		part := s[n : n+1]
		switch part {
		case "{":
			depth++
		case "}":
			depth--
		case "'", `"`:
			if part = quoted.FindString(s[n:]); part == "" {
				return len(s), s[:2] + out.String() + s[n:]
			}
		}
		out.WriteString(goEscapes(part))
		n += len(part)
	}
	return n, s[:2] + out.String()
}

// escape is one escape of Python's that is not written alike in Go.
var escape = regexp.MustCompile(`(?s)\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)`)

// goEscapes writes the escapes of a quoted text as Go does.
func goEscapes(s string) string {
	if len(s) == 1 {
		return s
	}
	return escape.ReplaceAllStringFunc(s, func(m string) string {
		code := func(digits string, base int) string {
			n, _ := strconv.ParseUint(digits, base, 32) // the expression allows nothing else
			return fmt.Sprintf(`\u%04x`, n)
		}
		switch c := m[1]; {
		case c == 'x' && len(m) > 2:
			return code(m[2:], 16)
		case c >= '0' && c <= '7':
			return code(m[1:], 8)
		case strings.ContainsRune("abfnrtvxuUN", rune(c)): // alike, or an error in both, or a name, which is refused
			return m
		case c == '\\' || c == '\'' || c == '"':
			return fmt.Sprintf(`\x%02x`, c)
		case c == '\n': // the text goes on in the next line
			return ""
		}
		return `\x5c` + m[1:]
	})
}
