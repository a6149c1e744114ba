package safetensors

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/internal/vfs"
)

// stored writes a file with these tensors and slices into dir.
func stored(t *testing.T, dir, name string, meta map[string]string, entries ...Entry) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, entries, meta); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A file may hold slices of some tensors and all of others, of any number of dimensions; each is read as a whole one.
func TestSlicedAndWholeTensors(t *testing.T) {
	dir := t.TempDir()
	halves := map[string]Slice{
		"w@0": {Of: "w", Shape: []int{2, 2}, Rows: [][2]int{{0, 2}}, Cols: [][2]int{{0, 2}}, From: 0, To: 1},
		"w@1": {Of: "w", Shape: []int{2, 2}, Rows: [][2]int{{0, 2}}, Cols: [][2]int{{0, 2}}, From: 1, To: 4},
	}
	meta, err := SliceMeta(halves)
	if err != nil {
		t.Fatal(err)
	}
	cube := []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	a := stored(t, dir, "a", meta, FromFloat32s("w@1", F32, []int{3}, []float32{21, 22, 23}),
		FromFloat32s("cube", BF16, []int{2, 3, 2}, cube))
	b := stored(t, dir, "b", meta, FromFloat32s("w@0", F32, []int{1}, []float32{20}),
		FromFloat32s("one", F64, nil, []float32{7}), FromFloat32s("none", F32, []int{0, 4}, nil))
	f, err := OpenSliced(vfs.OS{}, []string{a, b})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, want := range map[string]struct {
		values []float32
		d      DType
		shape  []int
		bytes  int64
	}{"w": {[]float32{20, 21, 22, 23}, F32, []int{2, 2}, 16}, "cube": {cube, BF16, []int{2, 3, 2}, 24},
		"one": {[]float32{7}, F64, []int{}, 8}, "none": {nil, F32, []int{0, 4}, 0}} {
		got, err := f.Float32s(name)
		i, ok := f.Info(name)
		if err != nil || !ok || !slices.Equal(got, want.values) || i.Name != name || i.DType != want.d ||
			!slices.Equal(i.Shape, want.shape) || i.End-i.Begin != want.bytes {
			t.Errorf("%s: %v, %+v, %v", name, got, i, err)
		}
	}
	var order []string
	for _, i := range f.Infos() {
		order = append(order, i.Name)
	}
	if want := []string{"w", "cube", "one", "none"}; !slices.Equal(order, want) {
		t.Errorf("tensors %v, want %v in the order of the files", order, want)
	}
	if m, err := SliceMeta(nil); m != nil || err != nil {
		t.Errorf("no slices: %v, %v", m, err)
	}
}

// elementsOf is the slice [from, to) of a tensor w of 2 × 3.
func elementsOf(from, to int) Slice {
	return Slice{Of: "w", Shape: []int{2, 3}, Rows: [][2]int{{0, 2}}, Cols: [][2]int{{0, 3}}, From: from, To: to}
}

// What is said of a slice that does not fit its tensor: the file, the tensor, and the numbers.
func TestSlicedTexts(t *testing.T) {
	for name, c := range map[string]struct {
		slices map[string]Slice
		values int
		want   string
	}{
		"a gap": {map[string]Slice{"x": elementsOf(1, 4)}, 3,
			`safetensors DIR/*: tensor "w" has 3 elements in 1 slices, want 6`},
		"a length": {map[string]Slice{"x": elementsOf(1, 4)}, 2,
			`safetensors DIR/f: tensor "x": elements [1, 4) of [2 3] are not its [2]`},
		"an end": {map[string]Slice{"x": elementsOf(4, 7)}, 3,
			`safetensors DIR/f: tensor "x": rows [[0 2]], columns [[0 3]] and end 7 are not within [2 3]`},
		"no direction": {map[string]Slice{"x": elementsOf(4, 3)}, 0,
			`safetensors DIR/f: tensor "x": elements [4, 3) of [2 3] are not its [0]`},
	} {
		dir := t.TempDir()
		meta, err := SliceMeta(c.slices)
		if err != nil {
			t.Fatal(err)
		}
		_, err = OpenSliced(vfs.OS{}, []string{stored(t, dir, "f", meta,
			FromFloat32s("x", F32, []int{c.values}, make([]float32, c.values)))})
		if err == nil || strings.ReplaceAll(filepath.ToSlash(err.Error()), filepath.ToSlash(dir), "DIR") != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// What is said of files whose slices cannot be joined.
func TestTextsOfSlicedFiles(t *testing.T) {
	dir := t.TempDir()
	again := stored(t, dir, "again", nil, FromFloat32s("w", F32, []int{2, 3}, make([]float32, 6)))
	other := stored(t, dir, "other", nil, FromFloat32s("w", F32, []int{3, 2}, make([]float32, 6)))
	bf16 := stored(t, dir, "bf16", nil, FromFloat32s("w", BF16, []int{2, 3}, make([]float32, 6)))
	bad := stored(t, dir, "bad", map[string]string{slicesKey: "["},
		FromFloat32s("w", F32, []int{1}, make([]float32, 1)))
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{[]string{again, again}, "safetensors " + dir + `/*: tensor "w" has 12 elements in 2 slices, want 6`},
		{[]string{again, other}, "safetensors " + other + `: tensor "w": a slice of F32[3 2], another is of F32[2 3]`},
		{[]string{again, bf16}, "safetensors " + bf16 + `: tensor "w": a slice of BF16[2 3], another is of F32[2 3]`},
		{[]string{bad}, "safetensors " + bad + ": antiphase.slices: unexpected end of JSON input"},
	} {
		_, err := OpenSliced(vfs.OS{}, c.paths)
		if err == nil || filepath.ToSlash(err.Error()) != filepath.ToSlash(c.want) {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}

// An element that two slices hold is named when the tensor is read.
func TestTextOfSharedElement(t *testing.T) {
	meta, err := SliceMeta(map[string]Slice{"x": elementsOf(0, 3), "y": elementsOf(2, 5)})
	if err != nil {
		t.Fatal(err)
	}
	path := stored(t, t.TempDir(), "twice", meta, FromFloat32s("x", F32, []int{3}, make([]float32, 3)),
		FromFloat32s("y", F32, []int{3}, make([]float32, 3)))
	f, err := OpenSliced(vfs.OS{}, []string{path})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Bytes("w"); err == nil ||
		err.Error() != "safetensors "+path+`: tensor "w": element 2 is in two slices` {
		t.Error(err)
	}
}

// Runs of rows or columns, over every pair of runs from outside one end to outside the other: their length if they are
// ordered, within n, and none is empty, but in a tensor that is.
func TestRunsOfEveryKind(t *testing.T) {
	for n := range 4 {
		for code := range 6 * 6 * 6 * 6 {
			a, b, c, d := code%6-1, code/6%6-1, code/36%6-1, code/216-1
			good := func(from, to, after int) bool {
				return from >= after && to <= n &&
					(from < to || n == 0 && from == to)
			}
			want := -1
			if good(a, b, 0) && good(c, d, b) {
				want = b - a + d - c
			}
			if got := total([][2]int{{a, b}, {c, d}}, n); got != want {
				t.Fatalf("[%d,%d) and [%d,%d) within %d: %d, want %d", a, b, c, d, n, got, want)
			}
		}
	}
}

// Sizes up to the largest that fits, alone and together with what comes before.
func TestSizesUpToTheLargest(t *testing.T) {
	const most = math.MaxInt64
	for _, c := range []struct {
		d     DType
		shape []int
		want  int64
		good  bool
	}{
		{U8, []int{most}, most, true}, {U8, []int{most/2 + 1, 2}, 0, false}, {U8, []int{2, most / 2}, most - 1, true},
		{I16, []int{most / 2}, most - 1, true},
		{I16, []int{most/2 + 1}, 0, false}, {U8, nil, 1, true}, {F64, nil, 8, true}, {F32, []int{0, 5}, 0, true},
		{F32, []int{-1}, 0, false}, {F32, []int{0, -1}, 0, false}, {F32, []int{-1, 0}, 0, false},
		{"F7", []int{1}, 0, false}, {F32, []int{0, most, most}, 0, false},
	} {
		if n, ok := byteSize(c.d, c.shape); n != c.want || ok != c.good {
			t.Errorf("%s%v: %d, %v", c.d, c.shape, n, ok)
		}
	}
	room := most - MaxHeader - 8
	for _, c := range []struct {
		sizes []int
		good  bool
	}{{[]int{room}, true}, {[]int{room + 1}, false}, {[]int{1, room - 1}, true}, {[]int{room - 1, 1}, true},
		{[]int{1, room}, false}, {[]int{room, 1}, false}, {[]int{room, 0}, true}} {
		var list []Entry
		sum := 0
		for i, n := range c.sizes {
			list = append(list, FromBytes(string(rune('a'+i)), U8, []int{n}, nil))
			sum += n
		}
		head, _ := Size(nil, nil)
		if n, err := Size(list, nil); (err == nil) != c.good || c.good && (n <= int64(sum) || n > int64(sum)+head+500) {
			t.Errorf("%v: %d bytes, %v", c.sizes, n, err)
		}
	}
}

// Tensors without bytes may lie anywhere between others, in any order of names.
func TestEmptyTensorsAnywhere(t *testing.T) {
	text :=
		`{"z":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},` +
			`"y":{"dtype":"U8","shape":[0],"data_offsets":[2,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"x":{"dtype":"U8","shape":[0],"data_offsets":[3,3]}}`
	f, err := Parse(raw(text, 3))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"z", "a", "y", "b", "x"} {
		if got := f.Infos()[i].Name; got != want {
			t.Errorf("tensor %d is %q, want %q", i, got, want)
		}
	}
	if _, err := f.Float32s("a"); err == nil ||
		err.Error() != `safetensors in memory: tensor "a" is U8, not a float type (F64, F32, F16, BF16)` {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.Bytes("a"); err == nil || err.Error() != `safetensors in memory: tensor "a": the file is closed` {
		t.Error(err)
	}
}

// The numbers of a layout that does not fit, and of metadata that is not text.
func TestLayoutTexts(t *testing.T) {
	for want, b := range map[string][]byte{
		"header of 2 bytes reaches beyond the file, which has 1 after the length":    raw("{}", 0)[:9],
		`tensor "b": begins at byte 3, inside the tensor before it, which ends at 4`: raw(twice("[0,4]", "[3,7]"), 7),
		`tensor "b": begins at byte 6, leaving a hole after byte 4`:                  raw(twice("[0,4]", "[6,10]"), 10),
		`tensor "b": ends at byte 8, beyond the 7 bytes of data in the file`:         raw(twice("[0,4]", "[4,8]"), 7),
		"3 bytes of data belong to no tensor: the last one ends at byte 8 of 11":     raw(twice("[0,4]", "[4,8]"), 11),
		"file of 7 bytes is too small: the header length alone takes 8":              raw("{}", 0)[:7],
		"header of 9223372036854775807 bytes is too large: at most " +
			"100000000": {255, 255, 255, 255, 255, 255, 255, 127},
	} {
		if _, err := Parse(b); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for want, meta := range map[string]map[string]string{
		`safetensors: metadata "\xff": "v" is not UTF-8`: {"\xff": "v"},
		`safetensors: metadata "k": "\xff" is not UTF-8`: {"k": "\xff"}} {
		if err := Write(&bytes.Buffer{}, nil, meta); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	short := Entry{"s", U8, []int{5}, FromBytes("s", U8, []int{3}, make([]byte, 3)).WriteTo}
	for _, list := range [][]Entry{{short}, {FromFloat32s("a", F32, []int{2}, make([]float32, 2)), short}} {
		if err := Write(&bytes.Buffer{}, list, nil); err == nil ||
			err.Error() != `safetensors: tensor "s": 2 of its 5 bytes were not written` {
			t.Error(err)
		}
	}
}

// Files hold wider elements first, then types in the order below, whatever their names are.
func TestTypesInOrder(t *testing.T) {
	order := []DType{U64, I64, F64, C64, F32, U32, I32, BF16, F16, U16, I16, F8E8M0, F8E4M3, F8E5M2, I8, U8, Bool}
	for i := range order[1:] {
		pair := []Entry{FromBytes("b", order[i], []int{1}, nil), FromBytes("a", order[i+1], []int{1}, nil)}
		infos, _, err := layout(pair, nil)
		if err != nil || infos[0].DType != order[i] || infos[0].Begin != 0 || infos[1].Begin != int64(order[i].Size()) {
			t.Errorf("%s before %s: %v, %v", order[i], order[i+1], infos, err)
		}
	}
	if len(order) != len(dtypes) {
		t.Errorf("%d types, the list has %d", len(dtypes), len(order))
	}
}

// limited is a writer that fails after some bytes.
type limited struct{ left int }

var errLimit = errors.New("no more")

func (w *limited) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	if w.left -= n; n < len(p) {
		return n, errLimit
	}
	return n, nil
}

// Wherever writing fails, in the header or in a tensor of any kind, that error is returned.
func TestWriteFailsAnywhere(t *testing.T) {
	list := []Entry{FromInt64s("i", []int{2}, []int64{1, 2}), FromFloat32s("f", F32, []int{2}, []float32{1, 2}),
		FromBytes("b", U8, []int{3}, []byte{1, 2, 3})}
	size, err := Size(list, nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range size {
		if err := Write(&limited{int(n)}, list, nil); !errors.Is(err, errLimit) {
			t.Errorf("after %d of %d bytes: %v", n, size, err)
		}
	}
	if err := Write(&limited{int(size)}, list, nil); err != nil {
		t.Error(err)
	}
}

// Wrong rows and wrong columns together are wrong too, and a tensor that is missing is missing as any type.
func TestWrongInTwoWays(t *testing.T) {
	for _, runs := range [][2][][2]int{{{{0, 5}}, {{0, 7}}}, {{{0, 5}}, {{0, 6}}}, {{{0, 4}}, {{0, 7}}}} {
		if err := part(runs[0], runs[1], 0, 1).check(Info{Name: "w@0", DType: F32, Shape: []int{1}}); err == nil {
			t.Errorf("rows %v and columns %v of 4 × 6 are taken", runs[0], runs[1])
		}
	}
	f, err := Parse(raw("{}", 0))
	if err != nil {
		t.Fatal(err)
	}
	_, floats := f.Float32s("w")
	_, ints := f.Int64s("w")
	for _, err := range []error{floats, ints} {
		if err == nil || err.Error() != `safetensors in memory: no tensor "w"` {
			t.Error(err)
		}
	}
}
