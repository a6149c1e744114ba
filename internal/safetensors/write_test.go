package safetensors

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func write(t testing.TB, entries []Entry, meta map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, entries, meta); err != nil {
		t.Fatal(err)
	}
	n, err := Size(entries, meta)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("Size says %d (%v), Write wrote %d", n, err, b.Len())
	}
	return b.Bytes()
}

// TestExactBytes checks the writer against a file spelled out by hand from the format's description.
func TestExactBytes(t *testing.T) {
	got := write(t, []Entry{
		FromBytes("z", U8, []int{3}, []byte{7, 8, 9}),
		FromFloat32s("b", BF16, []int{2}, []float32{1, -2}),
		FromFloat32s("a", F32, []int{1, 1}, []float32{1}),
		FromInt64s("<é>", nil, []int64{-2}),
	}, map[string]string{"format": "pt"})
	head := `{"__metadata__":{"format":"pt"},"<é>":{"dtype":"I64","shape":[],"data_offsets":[0,8]},` +
		`"a":{"dtype":"F32","shape":[1,1],"data_offsets":[8,12]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[12,16]},` +
		`"z":{"dtype":"U8","shape":[3],"data_offsets":[16,19]}}`
	for len(head)%8 != 0 {
		head += " "
	}
	want := raw(head, 0)
	want = append(want, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x80, 0x3f, 0x80, 0x3f, 0, 0xc0, 7, 8, 9)
	if !bytes.Equal(got, want) {
		t.Fatalf("wrote\n%q\nwant\n%q", got, want)
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	values := []float32{0, 1, -1.5, 65504, float32(math.Inf(-1)), 0.333251953125}
	var entries []Entry
	for _, d := range []DType{F64, F32, F16} {
		entries = append(entries, FromFloat32s("float/"+string(d), d, []int{2, 3}, values))
	}
	entries = append(entries,
		FromFloat32s("float/BF16", BF16, []int{3}, []float32{0, 1, -1.5}),
		FromInt64s("int/I64", []int{2}, []int64{math.MinInt64, math.MaxInt64}),
		FromBytes("int/I32", I32, []int{1}, []byte{0xfe, 0xff, 0xff, 0xff}),
		FromBytes("int/U32", U32, []int{1}, []byte{0xfe, 0xff, 0xff, 0xff}),
		FromBytes("int/I16", I16, []int{1}, []byte{0xfe, 0xff}),
		FromBytes("int/U16", U16, []int{1}, []byte{0xfe, 0xff}),
		FromBytes("int/I8", I8, []int{1}, []byte{0xfe}),
		FromBytes("int/U8", U8, []int{1}, []byte{0xfe}),
		FromBytes("int/BOOL", Bool, []int{2}, []byte{1, 0}),
	)
	if err := os.WriteFile(path, write(t, entries, map[string]string{"k": "v"}), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(f.Names()) || len(f.Names()) != len(entries) || f.Metadata()["k"] != "v" {
		t.Fatalf("names %q, metadata %v", f.Names(), f.Metadata())
	}
	for _, d := range []DType{F64, F32, F16} {
		got, err := f.Float32s("float/" + string(d))
		if err != nil || !slices.Equal(got, values) {
			t.Errorf("%s: %v (%v), want %v", d, got, err, values)
		}
	}
	if got, err := f.Float64s("float/BF16"); err != nil || !slices.Equal(got, []float64{0, 1, -1.5}) {
		t.Errorf("BF16: %v (%v)", got, err)
	}
	for name, want := range map[string][]int64{
		"I64": {math.MinInt64, math.MaxInt64}, "I32": {-2}, "U32": {0xfffffffe}, "I16": {-2}, "U16": {0xfffe},
		"I8": {-2}, "U8": {0xfe}, "BOOL": {1, 0},
	} {
		if got, err := f.Int64s("int/" + name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v (%v), want %v", name, got, err, want)
		}
	}
	if info, ok := f.Info("float/F16"); !ok || !slices.Equal(info.Shape, []int{2, 3}) || info.End-info.Begin != 12 {
		t.Errorf("info %+v, %v", info, ok)
	}
	testRefusals(t, f, path)
}

func testRefusals(t *testing.T, f *File, path string) {
	refused := func(what string, err error, want ...string) {
		t.Helper()
		for _, w := range append(want, path) {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %v, want one with %q", what, err, w)
			}
		}
	}
	_, err := f.Bytes("none")
	refused("missing", err, `"none"`)
	_, err = f.Float32s("int/I32")
	refused("integers as floats", err, `"int/I32"`, "I32")
	_, err = f.Int64s("float/F16")
	refused("floats as integers", err, `"float/F16"`, "F16")
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	_, err = f.Bytes("int/I32")
	refused("closed", err, "closed")
	if err := os.WriteFile(path, raw(one("U8", "[1]", "[0,1]"), 2), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Open(path)
	refused("bad file", err, "belong to no tensor")
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	_, err = Open(path)
	refused("empty file", err, "too small")
	path = filepath.Dir(path)
	_, err = Open(path)
	refused("folder", err)
	path = filepath.Join(path, "none")
	_, err = Open(path)
	refused("no file", err)
}

func TestWriteRefuses(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		e    Entry
		want string
	}{
		"negative":  {Entry{Name: "a", DType: F32, Shape: []int{-1}}, "negative"},
		"overflow":  {Entry{Name: "a", DType: F32, Shape: []int{1 << 31, 1 << 31}}, "overflowing"},
		"dtype":     {Entry{Name: "a", DType: "F31", Shape: []int{1}}, `"F31"`},
		"reserved":  {Entry{Name: "__metadata__", DType: F32}, "reserved"},
		"not UTF-8": {Entry{Name: "\xff", DType: F32}, "not UTF-8"},
		"short":     {FromFloat32s("a", F32, []int{3}, []float32{1, 2}), `"a": 4 of its 12 bytes`},
		"long":      {FromFloat32s("a", F32, []int{1}, []float32{1, 2}), "more bytes"},
		"as int":    {FromFloat32s("a", I32, []int{1}, []float32{1}), "cannot be stored as I32"},
		"error":     {Entry{"a", U8, []int{1}, func(io.Writer) error { return broken }}, "broken"},
	} {
		if err := Write(io.Discard, []Entry{c.e}, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
	e := FromBytes("a", U8, []int{1}, []byte{1})
	if err := Write(io.Discard, []Entry{e, e}, nil); err == nil {
		t.Error("the same name twice was written")
	}
	if err := Write(io.Discard, nil, map[string]string{"k": "\xff"}); err == nil {
		t.Error("metadata that is not UTF-8 was written")
	}
}

// TestRoundTrip writes random tensors in two orders: the bytes are the same and come back.
func TestRoundTrip(t *testing.T) {
	kinds := []DType{Bool, U8, F8E4M3, I16, BF16, F32, C64, U64}
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.String().Filter(func(s string) bool { return s != metadataKey }), 0, 8,
			rapid.ID).Draw(t, "names")
		want := map[string][]byte{}
		var entries []Entry
		for _, name := range names {
			d := rapid.SampledFrom(kinds).Draw(t, "dtype")
			shape := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 3).Draw(t, "shape")
			n, _ := byteSize(d, shape)
			want[name] = rapid.SliceOfN(rapid.Byte(), int(n), int(n)).Draw(t, "bytes")
			entries = append(entries, FromBytes(name, d, shape, want[name]))
		}
		meta := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "meta")
		var a, b bytes.Buffer
		if err := Write(&a, entries, meta); err != nil {
			t.Fatal(err)
		}
		slices.Reverse(entries)
		if err := Write(&b, entries, meta); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Fatal("the order of entries changed the bytes")
		}
		f, err := Parse(a.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]byte{}
		for _, name := range f.Names() {
			got[name], _ = f.Bytes(name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		if len(meta) > 0 && !cmp.Equal(meta, f.Metadata()) || f.head.start%8 != 0 {
			t.Fatalf("metadata %v, data at %d", f.Metadata(), f.head.start)
		}
	})
}
