package hf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// object reads a JSON object key by key. It keeps the first error and records which keys were read, so that rest can
// reject the others. A null is an absent key, as in transformers.
type object struct {
	path string // prefix of keys in errors
	m    map[string]json.RawMessage
	used map[string]bool
	err  *error
}

func parseObject(path string, b []byte) (*object, error) {
	o := &object{path: path, used: map[string]bool{}, err: new(error)}
	if err := json.Unmarshal(b, &o.m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if o.m == nil {
		return nil, fmt.Errorf("%s: is null, must be an object", path)
	}
	return o, nil
}

// refuse records why key's value is rejected.
func (o *object) refuse(key, why string) {
	if *o.err != nil {
		return
	}
	v := "absent"
	if raw, ok := o.m[key]; ok {
		v = string(compact(raw))
		if len(v) > 80 {
			v = v[:80] + "…"
		}
	}
	*o.err = fmt.Errorf("%s: %s = %s: %s", o.path, key, v, why)
}

func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// get returns the text of a key that is present and not null.
func (o *object) get(key string) (json.RawMessage, bool) {
	o.used[key] = true
	raw, ok := o.m[key]
	return raw, ok && string(compact(raw)) != "null"
}

// value decodes a key into a T, def if absent.
func value[T any](o *object, key string, def T, what string) T {
	raw, ok := o.get(key)
	if !ok {
		return def
	}
	var v T
	if json.Unmarshal(raw, &v) != nil {
		o.refuse(key, "must be "+what)
		return def
	}
	return v
}

func (o *object) text(key, def string) string      { return value(o, key, def, "a string") }
func (o *object) flag(key string, def bool) bool   { return value(o, key, def, "true or false") }
func (o *object) texts(key string) (list []string) { return value(o, key, list, "a list of strings") }

// count is an integer from 1 to most; def 0 makes the key required.
func (o *object) count(key string, def, most int) int {
	raw, ok := o.get(key)
	if !ok && def > 0 {
		return def
	}
	n, err := strconv.Atoi(string(compact(raw)))
	if !ok || err != nil || n < 1 || n > most {
		o.refuse(key, fmt.Sprintf("must be a whole number from 1 to %d", most))
		return 1 // keeps later arithmetic harmless
	}
	return n
}

// number is a finite, non-negative number.
func (o *object) number(key string, def float64) float64 {
	x := value(o, key, def, "a number")
	if x < 0 { // no JSON number is infinite
		o.refuse(key, "must not be negative")
	}
	return x
}

// ids is one token id or a list of them; ids outside the vocabulary are dropped because they can neither be read nor
// written.
func (o *object) ids(key string, vocab int) []int {
	raw, ok := o.get(key)
	if !ok {
		return nil
	}
	var list []int
	if raw = compact(raw); raw[0] == '[' {
		list = value(o, key, list, "a token id or a list of them")
	} else {
		list = []int{value(o, key, -1, "a token id or a list of them")}
	}
	return slices.DeleteFunc(list, func(id int) bool { return id < 0 || id >= vocab })
}

// object is a nested object, nil if absent or empty.
func (o *object) object(key string) *object {
	m := value(o, key, map[string]json.RawMessage(nil), "an object")
	if len(m) == 0 {
		return nil
	}
	return &object{path: o.path + ": " + key, m: m, used: map[string]bool{}, err: o.err}
}

// neutral rejects a key unless it is absent or has one of these values, which have no effect.
func (o *object) neutral(key string, values ...string) {
	if raw, ok := o.get(key); ok && !slices.Contains(values, string(compact(raw))) {
		o.refuse(key, "is not supported")
	}
}

// rest rejects every key that was not read, unless it is known to be idle or its value is empty.
func (o *object) rest(idle map[string]bool) {
	for _, key := range slices.Sorted(maps.Keys(o.m)) {
		if o.used[key] || idle[key] || key[:min(1, len(key))] == "_" {
			continue
		}
		switch string(compact(o.m[key])) {
		case "null", "[]", "{}":
		default:
			o.refuse(key, "is unknown and might change results")
		}
	}
}
