package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
)

// header is a checked header: tensors by name, in file order.
type header struct {
	infos map[string]Info
	order []Info
	meta  map[string]string
	start int64 // where the tensors' bytes begin
}

// splitHeader finds the header's JSON in a file's bytes.
func splitHeader(b []byte) ([]byte, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("file of %d bytes is too small: the header length alone takes 8", len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	if n > MaxHeader {
		return nil, fmt.Errorf("header of %d bytes is too large: at most %d", n, MaxHeader)
	}
	if rest := uint64(len(b) - 8); n > rest {
		return nil, fmt.Errorf("header of %d bytes reaches beyond the file, which has %d after the length", n, rest)
	}
	text := b[8 : 8+n]
	if len(text) == 0 || text[0] != '{' {
		return nil, errors.New("header must start with '{'")
	}
	if !utf8.Valid(text) {
		return nil, errors.New("header is not UTF-8")
	}
	return text, nil
}

// parseHeader reads and checks everything up to the tensors' bytes.
func parseHeader(b []byte) (*header, error) {
	text, err := splitHeader(b)
	if err != nil {
		return nil, err
	}
	h := &header{infos: map[string]Info{}, start: 8 + int64(len(text))}
	d := &decoder{json.NewDecoder(bytes.NewReader(text))}
	d.UseNumber()
	err = d.object(func(key string) error {
		if key == metadataKey {
			return h.readMetadata(d)
		}
		info, err := d.info(key)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", key, err)
		}
		h.infos[key] = info
		h.order = append(h.order, info)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("header has text after its closing brace")
	}
	return h, h.checkLayout(int64(len(b)) - h.start)
}

func (h *header) readMetadata(d *decoder) error {
	h.meta = map[string]string{}
	err := d.object(func(key string) error {
		s, err := d.text()
		h.meta[key] = s
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", metadataKey, err)
	}
	return nil
}

// checkLayout checks that the tensors cover the size bytes of data exactly: each begins where the previous one ends.
func (h *header) checkLayout(size int64) error {
	slices.SortFunc(h.order, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End), cmp.Compare(a.Name, b.Name))
	})
	var at int64
	for _, t := range h.order {
		switch {
		case t.Begin < at:
			return fmt.Errorf("tensor %q: begins at byte %d, inside the tensor before it, which ends at %d",
				t.Name, t.Begin, at)
		case t.Begin > at:
			return fmt.Errorf("tensor %q: begins at byte %d, leaving a hole after byte %d", t.Name, t.Begin, at)
		case t.End > size:
			return fmt.Errorf("tensor %q: ends at byte %d, beyond the %d bytes of data in the file",
				t.Name, t.End, size)
		}
		at = t.End
	}
	if at != size {
		return fmt.Errorf("%d bytes of data belong to no tensor: the last one ends at byte %d of %d", size-at, at, size)
	}
	return nil
}

// decoder reads the header token by token: nesting is limited to that of the format, and repeated keys are detected.
type decoder struct{ *json.Decoder }

// object reads {"key": …}, calling value at each value, and rejects a repeated key.
func (d *decoder) object(value func(key string) error) error {
	if err := d.delim('{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.text()
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("key %q appears twice", key)
		}
		seen[key] = true
		if err := value(key); err != nil {
			return err
		}
	}
	return d.delim('}')
}

func (d *decoder) next() (json.Token, error) {
	t, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("header is not JSON: %w", err)
	}
	return t, nil
}

func (d *decoder) delim(want json.Delim) error {
	t, err := d.next()
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("header has %v where %v belongs", t, want)
	}
	return nil
}

func (d *decoder) text() (string, error) {
	t, err := d.next()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("header has %v where a string belongs", t)
	}
	return s, nil
}

// maxRank bounds a shape: real tensors stay in single figures, and a header of commas must not become a list of
// millions.
const maxRank = 255

// integers reads [n, …]: decimal digits only, of at most bits bits.
func (d *decoder) integers(bits int) ([]int64, error) {
	if err := d.delim('['); err != nil {
		return nil, err
	}
	list := []int64{}
	for d.More() {
		t, err := d.next()
		if err != nil {
			return nil, err
		}
		if len(list) == maxRank {
			return nil, fmt.Errorf("list of more than %d numbers", maxRank)
		}
		n, ok := t.(json.Number)
		if !ok {
			return nil, fmt.Errorf("header has %v where a number belongs", t)
		}
		v, err := strconv.ParseUint(string(n), 10, bits)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number from 0 to 2^%d-1", string(n), bits)
		}
		list = append(list, int64(v))
	}
	return list, d.delim(']')
}

// info reads one tensor's description and checks its consistency.
func (d *decoder) info(name string) (Info, error) {
	t := Info{Name: name, Shape: []int{}}
	var shape, offsets []int64
	err := d.object(func(key string) (err error) {
		switch key {
		case "dtype":
			var s string
			s, err = d.text()
			t.DType = DType(s)
		case "shape":
			shape, err = d.integers(strconv.IntSize - 1)
		case "data_offsets":
			offsets, err = d.integers(63)
		default:
			err = fmt.Errorf("unknown key %q: dtype, shape and data_offsets are the known ones", key)
		}
		return err
	})
	if err != nil {
		return t, err
	}
	for _, dim := range shape {
		t.Shape = append(t.Shape, int(dim))
	}
	err = t.setOffsets(shape == nil, offsets)
	return t, err
}

func (t *Info) setOffsets(noShape bool, offsets []int64) error {
	switch {
	case t.DType == "":
		return errors.New("dtype is missing")
	case t.DType.Size() == 0:
		return fmt.Errorf("unknown dtype %q", t.DType)
	case noShape:
		return errors.New("shape is missing")
	case len(offsets) != 2:
		return fmt.Errorf("data_offsets must be [begin, end], it has %d numbers", len(offsets))
	case offsets[0] > offsets[1]:
		return fmt.Errorf("data_offsets %v end before they begin", offsets)
	}
	n, ok := byteSize(t.DType, t.Shape)
	if !ok {
		return fmt.Errorf("shape %v of %s overflows", t.Shape, t.DType)
	}
	t.Begin, t.End = offsets[0], offsets[1]
	if t.End-t.Begin != n {
		return fmt.Errorf("shape %v of %s takes %d bytes, data_offsets %v give %d", t.Shape, t.DType, n, offsets,
			t.End-t.Begin)
	}
	return nil
}
