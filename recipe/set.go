package recipe

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sort"
	"strconv"
	"strings"
)

// Field is one settable value of a recipe.
type Field struct {
	Path  string // dotted, as JSON spells it
	Doc   string
	Value string
	v     reflect.Value
}

// Fields lists every settable value in order.
func (r *Recipe) Fields() []Field { return fields(reflect.ValueOf(r).Elem(), "") }

func fields(v reflect.Value, prefix string) []Field {
	var out []Field
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		path := prefix + name
		x := v.Field(i)
		if x.Kind() == reflect.Struct {
			out = append(out, fields(x, path+".")...)
			continue
		}
		out = append(out, Field{Path: path, Doc: f.Tag.Get("doc"), Value: show(x), v: x})
	}
	return out
}

func show(x reflect.Value) string {
	b, _ := json.Marshal(x.Interface())
	if x.Kind() == reflect.String {
		return x.String()
	}
	return string(b)
}

// Set gives the field at path a new value: Set("train.steps", "100"). A list is JSON, or a single entry as it stands.
func (r *Recipe) Set(path, value string) error {
	all := r.Fields()
	for _, f := range all {
		if f.Path == path {
			return f.set(value)
		}
	}
	return fmt.Errorf("%s: there is no such key; nearest is %s", path, nearest(path, all))
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
		d := json.NewDecoder(strings.NewReader(s))
		d.DisallowUnknownFields()
		err = d.Decode(f.v.Addr().Interface())
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
	into := reflect.New(f.v.Type()) // not over the old entries, whose fields would shine through
	if err := json.Unmarshal(list, into.Interface()); err != nil {
		return err
	}
	f.v.Set(into.Elem())
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

// nearest is the known key with the smallest edit distance; a key's last part counts alone too, so that "steps"
// finds train.steps.
func nearest(path string, all []Field) string {
	type near struct {
		path string
		d    int
	}
	var list []near
	for _, f := range all {
		last := f.Path[strings.LastIndex(f.Path, ".")+1:]
		list = append(list, near{f.Path, min(distance(path, f.Path), distance(path, last)+1)})
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].d < list[j].d })
	return list[0].path
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diag := row[0]
		row[0] = i + 1
		for j := range b {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
