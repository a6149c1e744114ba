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

func newDict() *dict { return &dict{at: map[any]int{}} }

// hash is a value that is the same for equal keys; ok is false for one that cannot be a key.
func hash(key any) (h any, ok bool) {
	switch key := key.(type) {
	case nil:
		return noneKey{}, true
	case float64:
		if key == math.Trunc(key) && math.Abs(key) < 1<<53 {
			return int(key), true
		}
		return key, true
	case tuple:
		var text strings.Builder
		for _, x := range key {
			h, ok := hash(x)
			if !ok {
				return nil, false
			}
			one := fmt.Sprint(h)
			fmt.Fprintf(&text, "%T %d %s,", h, len(one), one)
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
