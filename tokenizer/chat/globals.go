package chat

import (
	"math"
	"strings"
	"time"
)

// globals are the functions that a template can call.
var globals = &scope{vars: map[string]any{
	"range": &function{name: "range", call: rangeOf},
	"namespace": &function{name: "namespace",
		call: func(_ *run, p params) any { return &namespace{dictOf("namespace", p)} }},
	"dict":            &function{name: "dict", call: func(_ *run, p params) any { return dictOf("dict", p) }},
	"raise_exception": &function{name: "raise_exception", call: raise},
	"strftime_now":    &function{name: "strftime_now", call: strftimeNow},
}}

// rangeOf is range(stop), range(start, stop) and range(start, stop, step).
func rangeOf(_ *run, p params) any {
	a := p.bind("range", 1, "", "", "")
	start, stop, step := 0, intOf("range", a[0], 0), 1
	if len(p.args) > 1 {
		start, stop = stop, intOf("range", a[1], 0)
	}
	if len(p.args) > 2 {
		step = intOf("range", a[2], 0)
	}
	switch far := math.Abs(float64(start)) + math.Abs(float64(stop)); {
	case step == 0:
		fail("range: the step is zero")
	case (stop-start)/step > maxItems || far > 1<<62:
		fail("range: more than %d numbers", maxItems)
	}
	n := (stop - start) / step
	if (stop-start)%step != 0 && n >= 0 && (stop > start) == (step > 0) {
		n++
	}
	if n > maxItems {
		fail("range: more than %d numbers", maxItems)
	}
	return &numbers{start, stop, step, max(n, 0)}
}

// dictOf is a dict of another one's items, or of pairs, and of named arguments.
func dictOf(name string, p params) *dict {
	if len(p.args) > 1 {
		fail("%s takes at most one argument, got %d", name, len(p.args))
	}
	d := newDict()
	for _, v := range p.args {
		var pairs []any
		if of, ok := v.(*dict); ok {
			pairs = of.pairs()
		} else {
			pairs = each(v)
		}
		for _, pair := range pairs {
			kv := each(pair)
			if len(kv) != 2 {
				fail("%s: a pair of %d", name, len(kv))
			}
			d.set(kv[0], kv[1])
		}
	}
	for _, name := range p.names {
		d.set(name, p.named[name])
	}
	return d
}

// raise ends the rendering with the template's own message.
func raise(_ *run, p params) any {
	fail("%s", str(p.bind("raise_exception", 1, "message")[0]))
	return nil
}

// directives are the strftime directives that templates use, in Go's layout notation.
var directives = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'd': "02", 'e': "_2", 'H': "15", 'I': "03", 'j': "002",
	'm': "01", 'M': "04",
	'p': "PM", 'S': "05", 'y': "06", 'Y': "2006", 'Z': "MST", 'z': "-0700", 'F': "2006-01-02", 'T': "15:04:05",
	'D': "01/02/06",
}

// strftimeNow formats the date with a C format string.
func strftimeNow(r *run, p params) any {
	return strftime(r.now, textOf("strftime_now", p.bind("strftime_now", 1, "format")[0]))
}

func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch layout, ok := directives[format[i]]; {
		case ok:
			b.WriteString(t.Format(layout))
		case format[i] == '%':
			b.WriteByte('%')
		default:
			b.WriteString(format[i-1 : i+1])
		}
	}
	return b.String()
}
