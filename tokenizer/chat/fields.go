package chat

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxPercent is the most that is read of a percent sign, a key, flags and widths.
const maxPercent = 1000

// formatFilter is the filter format, which uses percent signs.
func formatFilter(r *run, v any, p params) any {
	if len(p.args) > 0 && len(p.names) > 0 {
		fail("format takes arguments by position or by name, not both")
	}
	if len(p.names) > 0 {
		return percent(r, str(v), dictOf("format", p))
	}
	return percent(r, str(v), tuple(p.args))
}

// percent is Python's format % value.
func percent(r *run, format string, v any) any {
	args, isTuple := v.(tuple)
	if !isTuple {
		args = tuple{v}
	}
	next := func() any {
		if len(args) == 0 {
			fail("not enough arguments for the format")
		}
		x := args[0]
		args = args[1:]
		return x
	}
	out := &boundedText{left: maxValue}
	keyed := false
	for {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			break
		}
		out.print(format[:i])
		m := percentForm.FindStringSubmatch(format[i:min(i+maxPercent, len(format))])
		if m == nil {
			fail("the format ends in %%")
		}
		format = format[i+len(m[0]):]
		if m[5] == "%" {
			out.print("%")
			continue
		}
		take := next
		if strings.HasPrefix(m[0], "%(") {
			d, ok := v.(*dict)
			if !ok {
				fail("the format needs a dict")
			}
			x, ok := d.get(m[1])
			if !ok {
				fail("the format needs %.40q", m[1])
			}
			keyed, take = true, func() any { return x }
		}
		out.print(r.onePercent(m, next, take))
	}
	if len(args) > 0 && !keyed && (isTuple || !hasItems(v)) {
		fail("not all arguments are used by the format")
	}
	out.print(format)
	return out.String()
}

// hasItems reports whether Python takes a value for one with keys, all of which a format need not use.
func hasItems(v any) bool { return is[*dict](v) || is[list](v) || is[*undefined](v) || is[*numbers](v) }

// onePercent writes one value; m is a match of percentForm.
func (r *run) onePercent(m []string, next, take func() any) string {
	r.take(0)
	f := formatSpec{fill: ' ', align: '>', precision: -1}
	if f.width = atoi(strings.Trim(m[3], "*"), 0); m[3] == "*" {
		f.width = widthOf(intOf("a width", next(), 0))
	}
	if strings.Contains(m[0][len(m[0])-len(m[5])-len(m[4])-1:], ".") { // a point alone is .0
		if f.precision = atoi(strings.Trim(m[4], "*"), 0); m[4] == "*" {
			f.precision = widthOf(intOf("a precision", next(), 0))
		}
	}
	f.percentFlags(m[2])
	v := take()
	switch f.verb = m[5][0]; f.verb {
	case 's':
		return f.text(str(v))
	case 'r':
		return f.text(repr(v))
	case 'a':
		return f.text(ascii(v))
	case 'c':
		if s, ok := isText(v); ok && utf8.RuneCountInString(s) == 1 {
			return f.text(s)
		}
	case 'i', 'u':
		f.verb = 'd'
	}
	x, ok := isNumber(v)
	if !ok {
		fail("%%%s needs a number, not %s", m[5], kindOf(v))
	}
	if n, isInteger := isInt(v); strings.IndexByte("dxXoc", f.verb) >= 0 {
		if !isInteger && f.verb != 'd' {
			fail("%%%s needs an integer, not %s", m[5], kindOf(v))
		} else if !isInteger {
			n = toInt(r, x, params{}).(int) // of a float
		}
		return f.integer(n)
	}
	if strings.IndexByte("feEgGF", f.verb) < 0 {
		fail("%%%s is not a format", m[5])
	}
	return f.float(x)
}

// percentFlags sets what the flags after a percent sign say.
func (f *formatSpec) percentFlags(flags string) {
	for _, c := range []byte(flags) {
		switch c {
		case '#':
			f.alternate = true
		case '0':
			if f.align != '<' {
				f.fill, f.align = '0', '='
			}
		case '-':
			f.fill, f.align = ' ', '<'
		case '+':
			f.sign = '+'
		case ' ':
			if f.sign == 0 {
				f.sign = ' '
			}
		}
	}
}

// formatText is str.format.
func formatText(r *run, s string, p params) any {
	out := &boundedText{left: maxValue}
	r.fields(out, s, p, new(numbering), 0)
	return out.String()
}

// numbering counts the fields without a number. A format may not have both these and fields with one.
type numbering struct {
	next  int
	given bool // a field had a number
}

// number is the place of an argument that a field's name gives; ok is false if it is another name.
func (c *numbering) number(name string) (n int, ok bool) {
	n, err := strconv.Atoi(name)
	switch {
	case name == "":
		n = c.next
		c.next++
	case err != nil:
		return 0, false
	default:
		c.given = true
	}
	if c.given && c.next > 0 {
		fail("format: fields with and without a number")
	}
	return n, true
}

// fields writes a format with its fields replaced. Those of a field's own format are at depth 1.
func (r *run) fields(out *boundedText, s string, p params, auto *numbering, depth int) {
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			break
		}
		out.print(s[:i])
		c := s[i]
		if s = s[i+1:]; s != "" && s[0] == c {
			out.print(string(rune(c)))
			s = s[1:]
			continue
		}
		end := fieldEnd(s)
		if c == '}' || end < 0 || depth > 1 {
			fail("format: a single %c", c)
		}
		r.field(out, s[:end], p, auto, depth)
		s = s[end+1:]
	}
	out.print(s)
}

// fieldEnd is where a field ends; it may contain fields.
func fieldEnd(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}

// field writes one field.
func (r *run) field(out *boundedText, s string, p params, auto *numbering, depth int) {
	r.take(0)
	name, spec, _ := strings.Cut(s, ":")
	name, conversion, converted := strings.Cut(name, "!")
	v := r.fieldValue(name, p, auto)
	if converted {
		switch conversion {
		case "r":
			v = repr(v)
		case "a":
			v = ascii(v)
		case "s":
			v = str(v)
		default:
			fail("format: conversion %.20q is not known", conversion)
		}
	}
	inner := &boundedText{left: maxValue}
	r.fields(inner, spec, p, auto, depth+1)
	if spec = inner.String(); spec == "" {
		out.print(str(v))
		return
	}
	out.print(parseSpec(spec).value(v))
}

// fieldValue is the value of a field: an argument, or a part of it such as 0.name or key[1].
func (r *run) fieldValue(name string, p params, auto *numbering) any {
	at := strings.IndexAny(name, ".[")
	rest := ""
	if at >= 0 {
		name, rest = name[:at], name[at:]
	}
	var v any
	if n, ok := auto.number(name); ok {
		if n < 0 || n >= len(p.args) {
			fail("format: there is no argument %d", n)
		}
		v = p.args[n]
	} else {
		named, ok := p.named[name]
		if !ok {
			fail("format: there is no argument %.40q", name)
		}
		v = named
	}
	for rest != "" {
		end := strings.IndexAny(rest[1:], ".[") + 1
		if end == 0 {
			end = len(rest)
		}
		part := rest[1:end]
		if rest[0] == '.' {
			v = r.attribute(v, part)
		} else if part = strings.TrimSuffix(part, "]"); true {
			if n, err := strconv.Atoi(part); err == nil {
				v = r.item(v, n)
			} else {
				v = r.item(v, part)
			}
		}
		rest = rest[end:]
	}
	return v
}
