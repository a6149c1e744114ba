package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Entry is a tensor to write. WriteTo streams exactly its bytes: little-endian, row-major.
type Entry struct {
	Name    string
	DType   DType
	Shape   []int
	WriteTo func(w io.Writer) error
}

// Write writes a complete file. Tensors are laid out by element type, widest first, then by name, independent of the
// order of entries, so that the same tensors give the same bytes and every tensor is aligned to its element.
func Write(w io.Writer, entries []Entry, meta map[string]string) error {
	infos, head, err := layout(entries, meta)
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	if _, err := w.Write(head); err != nil {
		return fmt.Errorf("safetensors: header: %w", err)
	}
	byName := make(map[string]Entry, len(entries))
	for _, e := range entries {
		byName[e.Name] = e
	}
	for _, t := range infos {
		c := &exactWriter{w: w, left: t.End - t.Begin}
		if err := byName[t.Name].WriteTo(c); err != nil {
			return fmt.Errorf("safetensors: tensor %q: %w", t.Name, err)
		}
		if c.left != 0 {
			return fmt.Errorf("safetensors: tensor %q: %d of its %d bytes were not written", t.Name, c.left,
				t.End-t.Begin)
		}
	}
	return nil
}

// Size returns the bytes Write would write.
func Size(entries []Entry, meta map[string]string) (int64, error) {
	infos, head, err := layout(entries, meta)
	if err != nil {
		return 0, fmt.Errorf("safetensors: %w", err)
	}
	n := int64(len(head))
	if len(infos) > 0 {
		n += infos[len(infos)-1].End
	}
	return n, nil
}

// layout assigns each entry its offset and renders the length and the padded header.
func layout(entries []Entry, meta map[string]string) ([]Info, []byte, error) {
	infos := make([]Info, len(entries))
	for i, e := range entries {
		infos[i] = Info{Name: e.Name, DType: e.DType, Shape: e.Shape}
	}
	slices.SortFunc(infos, func(a, b Info) int {
		return cmp.Or(cmp.Compare(dtypes[b.DType].rank, dtypes[a.DType].rank), strings.Compare(a.Name, b.Name))
	})
	seen := map[string]bool{metadataKey: true}
	var at int64
	for i := range infos {
		t := &infos[i]
		n, ok := byteSize(t.DType, t.Shape)
		switch {
		case seen[t.Name]:
			return nil, nil, fmt.Errorf("tensor name %q is reserved or given twice", t.Name)
		case !utf8.ValidString(t.Name):
			return nil, nil, fmt.Errorf("tensor name %q is not UTF-8", t.Name)
		case !ok || n > math.MaxInt64-MaxHeader-8-at:
			return nil, nil, fmt.Errorf("tensor %q: unknown dtype %q, or shape %v negative or overflowing", t.Name,
				t.DType, t.Shape)
		}
		seen[t.Name] = true
		t.Begin, t.End = at, at+n
		at += n
	}
	head, err := render(infos, meta)
	return infos, head, err
}

// render writes the header compactly, padded with spaces so that the tensors begin at a multiple of 8.
func render(infos []Info, meta map[string]string) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 8))
	sep := byte('{')
	field := func(key string, value any) error {
		b.WriteByte(sep)
		sep = ','
		if err := writeJSON(b, key); err != nil {
			return err
		}
		b.WriteByte(':')
		return writeJSON(b, value)
	}
	if len(meta) > 0 {
		for k, v := range meta {
			if !utf8.ValidString(k) || !utf8.ValidString(v) {
				return nil, fmt.Errorf("metadata %q: %q is not UTF-8", k, v)
			}
		}
		if err := field(metadataKey, meta); err != nil {
			return nil, err
		}
	}
	for _, t := range infos {
		if err := field(t.Name, jsonInfo{t.DType, append([]int{}, t.Shape...), [2]int64{t.Begin, t.End}}); err != nil {
			return nil, err
		}
	}
	if sep == '{' {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	n := b.Len() - 8
	if n > MaxHeader {
		return nil, fmt.Errorf("header of %d bytes is too large: at most %d", n, MaxHeader)
	}
	binary.LittleEndian.PutUint64(b.Bytes(), uint64(n))
	return b.Bytes(), nil
}

type jsonInfo struct {
	DType   DType    `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// writeJSON appends v as compact JSON without HTML escapes; map keys come out sorted.
func writeJSON(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the newline Encode ends with
	return nil
}

// exactWriter forwards bytes and rejects more than announced.
type exactWriter struct {
	w    io.Writer
	left int64
}

func (c *exactWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > c.left {
		return 0, errors.New("writes more bytes than its shape has")
	}
	n, err := c.w.Write(p)
	c.left -= int64(n)
	return n, err
}
