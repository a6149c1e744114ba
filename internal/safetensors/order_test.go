package safetensors

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Tensors lie by width of their elements, then by name, whatever order they are given in: equal tensors give equal
// bytes.
func TestOrderOfTensors(t *testing.T) {
	entries := []Entry{
		FromFloat32s("b", F32, []int{1}, []float32{1}), FromFloat32s("a", F32, []int{1}, []float32{2}),
		FromFloat32s("c", F32, []int{1}, []float32{3}),
		FromFloat32s("z", F64, []int{1}, []float32{4}), FromBytes("A", U8, []int{1}, []byte{5}),
		FromInt64s("y", []int{1}, []int64{6}),
	}
	const want = "y z a b c A"
	first := write(t, entries, nil)
	for range len(entries) {
		entries = append(entries[1:], entries[0])
		b := write(t, entries, nil)
		f, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, i := range f.Infos() {
			names = append(names, i.Name)
		}
		if got := strings.Join(names, " "); got != want || !slices.Equal(b, first) {
			t.Errorf("tensors lie as %s, want %s", got, want)
		}
	}
}

// full takes n bytes.
type full struct{ n int }

var errFull = errors.New("the disk is full")

func (w *full) Write(b []byte) (int, error) {
	if w.n -= len(b); w.n < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// A file that does not fit is an error wherever it breaks off: in its header, between tensors, without any.
func TestFullDisk(t *testing.T) {
	for _, entries := range [][]Entry{nil, {FromBytes("empty", U8, []int{0}, nil)},
		{FromFloat32s("a", F32, []int{2}, []float32{1, 2}), FromBytes("b", U8, []int{3}, []byte{1, 2, 3})}} {
		size := len(write(t, entries, map[string]string{"k": "v"}))
		for room := range size + 1 {
			if err := Write(&full{room}, entries, map[string]string{"k": "v"}); errors.Is(err,
				errFull) != (room < size) || err != nil && room == size {
				t.Errorf("%d tensors, %d of %d bytes: %v", len(entries), room, size, err)
			}
		}
	}
}

// A header may have MaxHeader bytes and no more, wherever the file ends.
func TestHeaderLimit(t *testing.T) {
	for _, c := range []struct {
		n    uint64
		want string
	}{{MaxHeader, "reaches beyond the file"}, {MaxHeader + 1, "is too large"}, {1 << 63, "is too large"}} {
		b := make([]byte, 16)
		for i := range 8 {
			b[i] = byte(c.n >> (8 * i))
		}
		if _, err := Parse(b); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("header of %d bytes %s", c.n, c.want)) {
			t.Errorf("a header of %d bytes: %v", c.n, err)
		}
	}
}
