package recipe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"antiphase/internal/near"
)

// Field is one settable value of a recipe.
type Field struct {
	Path  string // dotted, as JSON spells it
	Doc   string
	Value string
	v     reflect.Value
}

// key locates a settable value within a Recipe.
type key struct {
	path, doc string
	index     []int
}

// keys lists every settable value in order, and byPath finds one; both are independent of the recipe.
var (
	keys   = keysOf(reflect.TypeFor[Recipe](), "", nil)
	byPath = index(keys)
)

func keysOf(t reflect.Type, prefix string, at []int) (out []key) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		path, index := prefix+name, append(slices.Clone(at), i)
		if f.Type.Kind() == reflect.Struct {
			out = append(out, keysOf(f.Type, path+".", index)...)
			continue
		}
		out = append(out, key{path, f.Tag.Get("doc"), index})
	}
	return out
}

func index(list []key) map[string]key {
	m := map[string]key{}
	for _, k := range list {
		m[k.path] = k
	}
	return m
}

// known reports whether path is a key or the prefix of one.
func known(path string) bool {
	_, ok := byPath[path]
	return ok || slices.ContainsFunc(keys, func(k key) bool { return strings.HasPrefix(k.path, path+".") })
}

// Fields lists every settable value in order.
func (r *Recipe) Fields() []Field {
	out := make([]Field, len(keys))
	for i, k := range keys {
		out[i] = k.of(r)
		out[i].Value = show(out[i].v)
	}
	return out
}

func (k key) of(r *Recipe) Field {
	return Field{Path: k.path, Doc: k.doc, v: reflect.ValueOf(r).Elem().FieldByIndex(k.index)}
}

func show(x reflect.Value) string {
	b, _ := json.Marshal(x.Interface())
	if x.Kind() == reflect.String {
		return x.String()
	}
	return string(b)
}

// Set gives the field at path a new value: Set("train.steps", "100"). A list is JSON, or a single entry as plain text.
func (r *Recipe) Set(path, value string) error {
	k, ok := byPath[path]
	if !ok {
		return fmt.Errorf("%s: there is no such key; nearest is %s", path[:min(len(path), 80)], nearest(path))
	}
	return k.of(r).set(value)
}

// SetPair is Set from "path=value".
func (r *Recipe) SetPair(s string) error {
	path, value, ok := strings.Cut(s, "=")
	if !ok {
		return fmt.Errorf("%q: want key=value, as in train.steps=100", s)
	}
	return r.Set(strings.TrimSpace(path), strings.TrimSpace(value))
}

func (f Field) set(s string) error {
	var err error
	switch f.v.Kind() {
	case reflect.String:
		f.v.SetString(s)
	case reflect.Int, reflect.Int64:
		var n int64
		if n, err = strconv.ParseInt(s, 0, 64); err == nil {
			f.v.SetInt(n)
		}
	case reflect.Uint64:
		var n uint64
		if n, err = strconv.ParseUint(s, 0, 64); err == nil {
			f.v.SetUint(n)
		}
	case reflect.Float64:
		var x float64
		if x, err = strconv.ParseFloat(s, 64); err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
			err = errors.New("it must be finite")
		}
		if err == nil {
			f.v.SetFloat(x)
		}
	case reflect.Bool:
		var b bool
		if b, err = strconv.ParseBool(s); err == nil {
			f.v.SetBool(b)
		}
	case reflect.Slice:
		err = f.setList(s)
	default:
		into := reflect.New(f.v.Type()) // a new value, so that fields of the old one do not persist
		if err = decode([]byte(s), into.Interface()); err == nil {
			f.v.Set(into.Elem())
		}
	}
	if err != nil {
		if n := (*strconv.NumError)(nil); errors.As(err, &n) {
			err = n.Err
		}
		return fmt.Errorf("%s: %q is not a %s: %w", f.Path, s, kindName(f.v), err)
	}
	return nil
}

func (f Field) setList(s string) error {
	list := []byte(s)
	if !strings.HasPrefix(s, "[") {
		list, _ = json.Marshal([]string{s}) // a list of one string
	}
	into := reflect.New(f.v.Type()) // a new value, so that fields of old entries do not persist
	if err := json.Unmarshal(list, into.Interface()); err != nil {
		return err
	}
	f.v.Set(into.Elem())
	return nil
}

// decode reads one JSON value. Unknown fields and text after the value are errors.
func decode(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is text after it")
	}
	return nil
}

func kindName(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "list"
	}
	return "value of its kind"
}

// nearest is the known key with the smallest edit distance. The last part of a key is also compared alone, so that
// "steps" finds train.steps.
func nearest(path string) string {
	type candidate struct {
		path string
		d    int
	}
	var list []candidate
	for _, k := range keys {
		last := k.path[strings.LastIndex(k.path, ".")+1:]
		list = append(list, candidate{k.path, min(near.Distance(path, k.path), near.Distance(path, last)+1)})
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].d < list[j].d })
	return list[0].path
}
