package chat

import (
	"fmt"
	"math"
	"strings"
)

// Hashes of keys that are neither texts nor numbers.
type (
	noneKey      struct{}
	undefinedKey struct{}
	tupleKey     string // its text
)

func newDict() *dict { return &dict{} }

// hash is a value that is the same for equal keys; ok is false for one that cannot be a key.
func hash(key any) (h any, ok bool) {
	switch key := key.(type) {
	case nil:
		return noneKey{}, true
	case float64:
		if key == math.Trunc(key) && math.Abs(key) < 1<<63 {
			return int(key), true
		}
		return key, true
	case tuple:
		var text strings.Builder
		if !writeHash(&text, key) {
			return nil, false
		}
		return tupleKey(text.String()), true
	case *undefined:
		key.use()
		return undefinedKey{}, true // all are equal
	case list, *dict, *view, *generator:
		return nil, false
	}
	if s, ok := isText(key); ok {
		return s, true
	}
	if n, ok := isInt(key); ok {
		return n, true
	}
	return key, true
}

// writeHash writes what is the same for equal tuples only.
func writeHash(w *strings.Builder, t tuple) bool {
	w.WriteByte('(')
	for _, x := range t {
		if inner, ok := x.(tuple); ok {
			if !writeHash(w, inner) {
				return false
			}
			continue
		}
		h, ok := hash(x)
		if !ok {
			return false
		}
		one := fmt.Sprint(h)
		fmt.Fprintf(w, "%T %d %s,", h, len(one), one)
	}
	w.WriteByte(')')
	return true
}

// get is the value of a key.
func (d *dict) get(key any) (any, bool) {
	h, ok := hash(key)
	if !ok {
		return nil, false
	}
	i, ok := d.at[h]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// set adds a key, or changes its value.
func (d *dict) set(key, value any) {
	h, ok := hash(key)
	if !ok {
		fail("%s cannot be a key", kindOf(key))
	}
	if i, ok := d.at[h]; ok {
		d.values[i] = value
		return
	}
	if d.at == nil { // empty ones may be many
		d.at = map[any]int{}
	}
	d.at[h] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, value)
}

// pairs are tuples of keys and values.
func (d *dict) pairs() []any {
	out := make([]any, len(d.keys))
	for i, k := range d.keys {
		out[i] = tuple{k, d.values[i]}
	}
	return out
}

func (d *dict) equal(e *dict) bool {
	if len(d.keys) != len(e.keys) {
		return false
	}
	for i, k := range d.keys {
		v, ok := e.get(k)
		if !ok || !equal(d.values[i], v) {
			return false
		}
	}
	return true
}
