package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

// Rows yields the rows of a file as JSON objects, counted from 1, until yield returns an error. The file is JSON lines
// (.jsonl, also .gz and .zst), one JSON list (.json), or Parquet. Numbers are json.Number, so that 1 and 1.0 remain
// distinct.
func Rows(path string, yield func(n int, row map[string]any) error) error {
	switch {
	case strings.HasSuffix(path, ".parquet"):
		return parquetRows(path, yield)
	case strings.HasSuffix(path, ".json"):
		if done, err := listRows(path, yield); done || err != nil {
			return err
		}
	}
	return Lines(path, func(n int, line []byte) error {
		row, err := jsonRow(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		return yield(n, row)
	})
}

// jsonRow reads one object and nothing after it. As in ReadJSON, text that the decoder would silently change is an
// error.
func jsonRow(b []byte) (row map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&row); err != nil && utf8.Valid(b) {
		return nil, JSONError(err)
	}
	if err := kept(b); err != nil {
		return nil, err
	}
	if row == nil {
		return nil, errors.New("want an object, found null")
	}
	return row, ended(d, "object")
}

// listRows reads a file that is one JSON list; done reports whether it is one.
func listRows(path string, yield func(n int, row map[string]any) error) (done bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	d := json.NewDecoder(f)
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return false, nil // JSON lines, or an error that Lines reports better
	}
	n := 0
	for d.More() {
		n++
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return true, fmt.Errorf("%s: element %d: %w", path, n, err)
		}
		row, err := jsonRow(raw)
		if err != nil {
			return true, fmt.Errorf("%s: element %d: %w", path, n, err)
		}
		if err := yield(n, row); err != nil {
			return true, fmt.Errorf("%s: %w", path, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return true, fmt.Errorf("%s: after element %d: %w", path, n, err)
	}
	if err := ended(d, "list"); err != nil {
		return true, fmt.Errorf("%s: %w", path, err)
	}
	return true, nil
}

// ended rejects text after a value, which would otherwise be dropped silently.
func ended(d *json.Decoder, what string) error {
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("there is more after the %s", what)
	}
	return nil
}

// parquetRows reads all columns, including nested ones.
func parquetRows(path string, yield func(n int, row map[string]any) error) (err error) {
	defer func() {
		if p := recover(); p != nil { // the library panics on some malformed files
			err = fmt.Errorf("%s: malformed parquet: %v", path, p)
		}
	}()
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	file, err := parquet.OpenFile(f, st.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	r := parquet.NewGenericReader[any](file)
	defer r.Close()
	batch := make([]any, 64)
	for n := 0; ; {
		k, err := r.Read(batch)
		for _, v := range batch[:k] {
			n++
			row, err := plainRow(v)
			if err != nil {
				return fmt.Errorf("%s: row %d: %w", path, n, err)
			}
			if err := yield(n, row); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: after row %d: %w", path, n, err)
		}
	}
}

// plainRow converts a row of the library to what it would be in JSON.
func plainRow(v any) (map[string]any, error) {
	b, err := json.Marshal(unwrapped(v))
	if err != nil {
		return nil, err
	}
	return jsonRow(b)
}

// unwrapped converts bytes to text, and removes the two levels that Parquet wraps lists in.
func unwrapped(v any) any {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case float64:
		if s := strconv.FormatFloat(v, 'g', -1, 64); !strings.ContainsAny(s, ".eIN") {
			return json.Number(s + ".0") // remains distinct from an integer
		}
	case map[string]any:
		if list, ok := v["list"].([]any); ok && len(v) == 1 {
			return EachOf(list, func(e any) any { return unwrapped(element(e)) })
		}
		out := map[string]any{}
		for k, x := range v {
			out[k] = unwrapped(x)
		}
		return out
	case []any:
		return EachOf(v, unwrapped)
	}
	return v
}

// EachOf applies f to every element of a list.
func EachOf(list []any, f func(any) any) []any {
	out := make([]any, len(list))
	for i := range list {
		out[i] = f(list[i])
	}
	return out
}

// element is the only member of a wrapped list entry.
func element(e any) any {
	if m, ok := e.(map[string]any); ok && len(m) == 1 {
		for _, name := range []string{"element", "item"} {
			if x, ok := m[name]; ok {
				return x
			}
		}
	}
	return e
}
