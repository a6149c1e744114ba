package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/nikolalohinski/gonja/v2/exec"
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
	list := []any{}
	for d.More() {
		x, err := orderedNext(d, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	_, err := d.Token()
	return list, err
}

func orderedDict(d *json.Decoder, depth int) (any, error) {
	dict := exec.NewDict()
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, err
		}
		x, err := orderedNext(d, depth+1)
		if err != nil {
			return nil, err
		}
		dict.Pairs = append(dict.Pairs, &exec.Pair{Key: exec.AsValue(k), Value: exec.AsValue(x)})
	}
	_, err := d.Token()
	return dict, err
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
func toJSON(e *exec.Evaluator, in *exec.Value, p *exec.VarArgs) *exec.Value {
	b := budgetOf(e)
	if in.IsError() {
		return in
	}
	style := jsonStyle{item: ", ", pair: ": ", sortKeys: argument(p, 3, "sort_keys").IsTrue(), ascii: argument(p, 0, "ensure_ascii").IsTrue()}
	switch w := argument(p, 1, "indent"); {
	case w.IsInteger():
		n := w.Integer()
		if n < 0 || n > 64 {
			return b.fail("tojson: an indent of %d", n)
		}
		style.lines, style.indent, style.item = true, strings.Repeat(" ", n), ","
	case w.IsString():
		style.lines, style.indent, style.item = true, w.String(), ","
	}
	if s := argument(p, 2, "separators"); s.IsList() && s.Len() == 2 {
		style.item, style.pair = s.Index(0).String(), s.Index(1).String()
	}
	out := &boundedText{left: maxValue}
	if err := style.write(out, in.Interface(), 0); err != nil {
		return b.fail("tojson: %w", err)
	}
	return b.made(exec.AsSafeValue(out.String()))
}

// notFinite are the names that Python's json gives to what pythonFloat calls so.
var notFinite = map[string]string{"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}

func (s *jsonStyle) write(w *boundedText, v any, depth int) error {
	switch v := v.(type) {
	case *exec.Value:
		return s.write(w, v.Interface(), depth)
	case *exec.Dict:
		return s.dict(w, v, depth)
	case exec.ValuesList:
		return list(s, w, v, depth)
	case []*exec.Value:
		return list(s, w, v, depth)
	case []any:
		return list(s, w, v, depth)
	case []string:
		return list(s, w, v, depth)
	case float64: // 1.0 stays a float, and numbers that JSON does not have are written, as in Python
		text := pythonFloat(v)
		if name, ok := notFinite[text]; ok {
			text = name
		}
		_, err := w.WriteString(text)
		return err
	case string:
		_, err := w.WriteString(s.quote(v))
		return err
	case nil, bool, int:
		b, err := json.Marshal(v)
		if err == nil {
			_, err = w.WriteString(string(b))
		}
		return err
	}
	return fmt.Errorf("%T cannot be written", v)
}

// quote is a JSON string without escapes for HTML.
func (s *jsonStyle) quote(v string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // a string always encodes
	text := strings.TrimSuffix(b.String(), "\n")
	text = strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029").Replace(text) // Python does not escape these two
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
func (s *jsonStyle) key(v *exec.Value) (string, error) {
	if v.IsString() {
		return s.quote(v.String()), nil
	}
	out := &boundedText{left: maxValue}
	err := s.write(out, v.Interface(), maxNesting)
	return s.quote(out.String()), err
}

func (s *jsonStyle) line(w *boundedText, depth int) error {
	if !s.lines {
		return nil
	}
	_, err := w.WriteString("\n" + strings.Repeat(s.indent, depth))
	return err
}

func list[T any](s *jsonStyle, w *boundedText, v []T, depth int) error {
	return s.group(w, "[", "]", len(v), depth, func(i int) error { return s.write(w, v[i], depth+1) })
}

func (s *jsonStyle) dict(w *boundedText, d *exec.Dict, depth int) error {
	pairs := d.Pairs
	if s.sortKeys {
		pairs = slices.SortedFunc(slices.Values(pairs), func(a, b *exec.Pair) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	}
	return s.group(w, "{", "}", len(pairs), depth, func(i int) error {
		key, err := s.key(pairs[i].Key)
		if err != nil {
			return err
		}
		if _, err := w.WriteString(key + s.pair); err != nil {
			return err
		}
		return s.write(w, pairs[i].Value, depth+1)
	})
}

// group writes what is between brackets.
func (s *jsonStyle) group(w *boundedText, left, right string, n, depth int, item func(int) error) error {
	if depth > maxNesting {
		return errDeep
	}
	if _, err := w.WriteString(left); err != nil {
		return err
	}
	for i := range n {
		if i > 0 {
			if _, err := w.WriteString(s.item); err != nil {
				return err
			}
		}
		if err := s.line(w, depth+1); err != nil {
			return err
		}
		if err := item(i); err != nil {
			return err
		}
	}
	if n > 0 {
		if err := s.line(w, depth); err != nil {
			return err
		}
	}
	_, err := w.WriteString(right)
	return err
}
