package safetensors

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"antiphase/internal/quota"
	"antiphase/internal/vfs"
)

// Every element type has its size, and files hold the types in the reference library's order, the last of its list
// first: BOOL, U8, I8, F8_E5M2, F8_E4M3, F8_E8M0, I16, U16, F16, BF16, I32, U32, F32, C64, F64, I64, U64.
func TestTypesBySizeAndOrder(t *testing.T) {
	order := []DType{"U64", "I64", "F64", "C64", "F32", "U32", "I32", "BF16", "F16", "U16", "I16", "F8_E8M0", "F8_E4M3",
		"F8_E5M2", "I8", "U8", "BOOL"}
	sizes := []int{8, 8, 8, 8, 4, 4, 4, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1}
	if len(order) != len(dtypes) {
		t.Errorf("%d types, want %d", len(dtypes), len(order))
	}
	var entries []Entry
	for i, d := range order {
		if d.Size() != sizes[i] {
			t.Errorf("%s has %d bytes, want %d", d, d.Size(), sizes[i])
		}
		entries = append(entries, FromBytes(fmt.Sprintf("%02d", (7*i)%len(order)), d, []int{3},
			make([]byte, 3*sizes[i])))
	}
	slices.Reverse(entries)
	f, err := Parse(write(t, entries, nil))
	if err != nil {
		t.Fatal(err)
	}
	var got []DType
	for _, info := range f.Infos() {
		if got = append(got, info.DType); info.Begin%int64(info.DType.Size()) != 0 {
			t.Errorf("%s begins at byte %d", info.DType, info.Begin)
		}
	}
	if !slices.Equal(got, order) {
		t.Errorf("order %v, want %v", got, order)
	}
}

// largest is a writer that keeps the length of the longest piece.
type largest int

func (w *largest) Write(p []byte) (int, error) {
	*w = max(*w, largest(len(p)))
	return len(p), nil
}

// Tensors longer than the buffer that they are streamed through come back whole.
func TestLongTensors(t *testing.T) {
	for _, n := range []int{8191, 8192, 8193, 20000} {
		floats, ints := make([]float32, n), make([]int64, n)
		for i := range floats {
			floats[i], ints[i] = float32(i%251)-125, int64(i)-7
		}
		for _, d := range []DType{F64, F32, F16, BF16} {
			f, err := Parse(write(t, []Entry{FromFloat32s("x", d, []int{n}, floats), FromInt64s("n", []int{n}, ints)},
				nil))
			if err != nil {
				t.Fatal(err)
			}
			x, err := f.Float32s("x")
			k, failed := f.Int64s("n")
			if err != nil || failed != nil || !slices.Equal(x, floats) || !slices.Equal(k, ints) {
				t.Errorf("%d elements of %s differ; %v, %v", n, d, err, failed)
			}
		}
	}
	var most largest
	if err := Write(&most, []Entry{FromFloat32s("x", F64, []int{20000}, make([]float32, 20000))}, nil); err != nil ||
		most > 1<<16 {
		t.Errorf("%d bytes at once, want one buffer of 64 KiB; %v", most, err)
	}
	f, err := Parse(write(t, []Entry{FromBytes("x", F64, []int{1},
		le.AppendUint64(nil, math.Float64bits(1+math.Exp2(-40))))}, nil))
	if err != nil {
		t.Fatal(err)
	}
	wide, _ := f.Float64s("x")
	near, _ := f.Float32s("x")
	if len(wide) != 1 || wide[0] != 1+math.Exp2(-40) || near[0] != 1 {
		t.Errorf("%v and %v", wide, near)
	}
}

// Files of slices are closed together, and at once if one of them cannot be used.
func TestSlicedFilesAreClosed(t *testing.T) {
	dir := t.TempDir()
	all := [][2]int{{0, 4}}
	left, right := sliced(t, dir, "left", part(all, [][2]int{{0, 3}}, 0, 12)),
		sliced(t, dir, "right", part(all, [][2]int{{3, 6}}, 0, 12))
	var b bytes.Buffer
	if err := Write(&b, []Entry{FromFloat32s("x", F32, []int{1}, []float32{1})},
		map[string]string{slicesKey: "{"}); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		paths []string
		good  bool
	}{"both": {[]string{left, right}, true}, "one": {[]string{left}, false},
		"none": {[]string{left, right, filepath.Join(dir, "none")}, false},
		"bad":  {[]string{left, right, bad}, false}} {
		quota.Files(t, name, func() {
			f, err := OpenSliced(vfs.OS{}, x.paths)
			if (err == nil) != x.good || name == "none" && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %v", name, err)
			}
			if err == nil {
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
