package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"
)

// ordered converts a Go value, by way of its JSON, to the form templates see; keys of objects keep their order.
func ordered(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(b) > maxValue {
		return nil, fmt.Errorf("are %d bytes, at most %d fit", len(b), maxValue)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	x, err := orderedNext(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("text after the end of the JSON")
	}
	return x, nil
}

func orderedNext(d *json.Decoder, depth int) (any, error) {
	if depth > maxNesting {
		return nil, errDeep
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		if i, err := t.Int64(); err == nil {
			return int(i), nil
		}
		return t.Float64()
	case json.Delim:
		if t == '[' {
			return orderedList(d, depth)
		}
		return orderedDict(d, depth)
	}
	return t, nil
}

func orderedList(d *json.Decoder, depth int) (any, error) {
	out := list{}
	for d.More() {
		x, err := orderedNext(d, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	_, err := d.Token()
	return out, err
}

func orderedDict(d *json.Decoder, depth int) (any, error) {
	out := newDict()
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, err
		}
		x, err := orderedNext(d, depth+1)
		if err != nil {
			return nil, err
		}
		out.set(k, x)
	}
	_, err := d.Token()
	return out, err
}

// jsonStyle is the formatting of tojson: that of Python's json.dumps with ensure_ascii off.
type jsonStyle struct {
	lines      bool // each item has a line of its own
	indent     string
	item, pair string // separators
	sortKeys   bool
	ascii      bool // other characters are escaped
}

// toJSON is transformers' tojson, not Jinja's: it escapes nothing for HTML.
func toJSON(_ *run, v any, p params) any {
	a := p.bind("tojson", 0, "ensure_ascii", "indent", "separators", "sort_keys")
	style := jsonStyle{item: ", ", pair: ": ", sortKeys: truth(a[3]), ascii: truth(a[0])}
	n, isNumber := isInt(a[1])
	margin, isString := isText(a[1])
	switch {
	case isNumber && (n < 0 || n > 64):
		fail("tojson: an indent of %d", n)
	case isNumber:
		style.lines, style.indent, style.item = true, strings.Repeat(" ", n), ","
	case isString:
		style.lines, style.indent, style.item = true, margin, ","
	}
	if a[2] != nil {
		s := each(a[2])
		if len(s) != 2 {
			fail("tojson: %d separators", len(s))
		}
		style.item, style.pair = str(s[0]), str(s[1])
	}
	out := &boundedText{left: maxValue}
	style.write(out, v, 0)
	return out.String()
}

// notFinite are the names that Python's json gives to what pythonFloat calls so.
var notFinite = map[string]string{"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}

func (s *jsonStyle) write(w *boundedText, v any, depth int) {
	switch v := v.(type) {
	case *dict:
		s.dict(w, v, depth)
	case list:
		s.group(w, "[", "]", len(v), depth, func(i int) { s.write(w, v[i], depth+1) })
	case tuple:
		s.group(w, "[", "]", len(v), depth, func(i int) { s.write(w, v[i], depth+1) })
	case float64: // 1.0 stays a float, and numbers that JSON does not have are written, as in Python
		text := pythonFloat(v)
		if name, ok := notFinite[text]; ok {
			text = name
		}
		w.print(text)
	case string:
		w.print(s.quote(v))
	case markup:
		w.print(s.quote(string(v)))
	case nil:
		w.print("null")
	case bool, int:
		w.print(strings.ToLower(repr(v)))
	default:
		fail("tojson: %s cannot be written", kindOf(v))
	}
}

// lineSeparators are two characters that Go escapes and Python does not.
var lineSeparators = strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029")

// quote is a JSON string without escapes for HTML.
func (s *jsonStyle) quote(v string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // a string always encodes
	text := strings.TrimSuffix(b.String(), "\n")
	text = lineSeparators.Replace(text)
	if !s.ascii {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case r < 0x7f:
			out.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		}
	}
	return out.String()
}

// key is the text of a dict's key: that of its JSON if it is not a text.
func (s *jsonStyle) key(v any) string {
	if text, ok := isText(v); ok {
		return s.quote(text)
	}
	if _, ok := v.(tuple); ok {
		fail("tojson: a tuple cannot be a key")
	}
	out := &boundedText{left: maxValue}
	s.write(out, v, 0)
	return s.quote(out.String())
}

func (s *jsonStyle) line(w *boundedText, depth int) {
	if len(s.indent)*depth > maxValue {
		fail("%w", errLarge)
	}
	if s.lines {
		w.print("\n" + strings.Repeat(s.indent, depth))
	}
}

func (s *jsonStyle) dict(w *boundedText, d *dict, depth int) {
	order := make([]int, len(d.keys))
	for i := range order {
		order[i] = i
	}
	if s.sortKeys {
		slices.SortStableFunc(order, func(a, b int) int { return compare(d.keys[a], d.keys[b]) })
	}
	s.group(w, "{", "}", len(order), depth, func(i int) {
		w.print(s.key(d.keys[order[i]]) + s.pair)
		s.write(w, d.values[order[i]], depth+1)
	})
}

// group writes what is between brackets.
func (s *jsonStyle) group(w *boundedText, left, right string, n, depth int, item func(int)) {
	w.print(left)
	for i := range n {
		if i > 0 {
			w.print(s.item)
		}
		s.line(w, depth+1)
		item(i)
	}
	if n > 0 {
		s.line(w, depth)
	}
	w.print(right)
}
