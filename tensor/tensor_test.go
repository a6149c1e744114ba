package tensor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func buffer(bytes int) *Buffer { return &Buffer{Host: make([]byte, bytes), Size: bytes} }

// counted is a dense F32 tensor holding 0, 1, 2, …
func counted(rows, cols int) Tensor {
	t := Tensor{Buf: buffer(Bytes(F32, rows, cols)), Type: F32, Rows: rows, Cols: cols, Ld: cols}
	for i := range Host[float32](t) {
		Host[float32](t)[i] = float32(i)
	}
	return t
}

// panics wants f to panic with this text in it.
func panics(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
			t.Errorf("panicked with %q, want %q in it", got, want)
		}
	}()
	f()
}

func TestDType(t *testing.T) {
	for d, want := range map[DType]struct {
		size int
		name string
	}{F32: {4, "F32"}, F64: {8, "F64"}, BF16: {2, "BF16"}, I32: {4, "I32"}} {
		if d.Size() != want.size || d.String() != want.name {
			t.Errorf("%d is %s of %d bytes, want %s of %d", d, d, d.Size(), want.name, want.size)
		}
	}
	if Invalid.String() != "invalid" {
		t.Errorf("Invalid is %q", Invalid)
	}
	panics(t, "size of dtype 0", func() { Invalid.Size() })
}

func TestViews(t *testing.T) {
	x := counted(4, 6)
	for name, c := range map[string]struct {
		view Tensor
		want []float32 // first to last element, gaps included
		text string
	}{
		"columns": {x.Columns(2, 4),
			[]float32{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21}, "F32[4,2 ld 6]"},
		"rows":            {x.RowRange(1, 3), []float32{6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}, "F32[2,6]"},
		"both":            {x.RowRange(1, 3).Columns(1, 3), []float32{7, 8, 9, 10, 11, 12, 13, 14}, "F32[2,2 ld 6]"},
		"the other order": {x.Columns(1, 3).RowRange(1, 3), []float32{7, 8, 9, 10, 11, 12, 13, 14}, "F32[2,2 ld 6]"},
		"one row":         {x.Columns(2, 5).RowRange(3, 4), []float32{20, 21, 22}, "F32[1,3]"},
		"slice":           {x.Slice(5, 2, 3), []float32{5, 6, 7, 8, 9, 10}, "F32[2,3]"},
		"no rows":         {x.RowRange(2, 2), nil, "F32[0,6]"},
		"reshape":         {x.RowRange(0, 1).Reshape(3, 2), []float32{0, 1, 2, 3, 4, 5}, "F32[3,2]"},
	} {
		if got := Host[float32](c.view); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if c.view.String() != c.text {
			t.Errorf("%s: shown as %s, want %s", name, c.view, c.text)
		}
	}
	if x.Columns(0, 2).Dense() || !x.RowRange(1, 3).Dense() || !x.Columns(0, 2).RowRange(0, 1).Dense() {
		t.Error("a block of columns is dense only in one row, a block of rows always")
	}
}

func TestAbsent(t *testing.T) {
	var none Tensor
	if none.Ok() || none.Is(0, 0) || none.Len() != 0 || none.String() != "absent" {
		t.Errorf("the zero tensor is %v, ok %v", none, none.Ok())
	}
	if none.Overlaps(none) || none.Overlaps(counted(1, 1)) || counted(1, 1).Overlaps(none) {
		t.Error("an absent tensor overlaps")
	}
	shape := Tensor{Type: F32, Rows: 2, Cols: 3, Ld: 3} // without memory
	if shape.Ok() || shape.Is(2, 3) || shape.Overlaps(shape) || shape.String() != "absent" {
		t.Errorf("a shape without memory is %v", shape)
	}
	if x := counted(2, 3); !x.Is(2, 3) || x.Is(3, 2) || x.Len() != 6 {
		t.Errorf("%v: Is or Len is wrong", x)
	}
}

func TestOverlaps(t *testing.T) {
	x, y := counted(4, 6), counted(4, 6)
	for name, c := range map[string]struct {
		a, b Tensor
		want bool
	}{
		"itself":                {x, x, true},
		"another buffer":        {x, y, false},
		"neighbouring rows":     {x.RowRange(0, 2), x.RowRange(2, 4), false},
		"shared row":            {x.RowRange(0, 3), x.RowRange(2, 4), true},
		"columns of one row":    {x.RowRange(0, 1).Columns(0, 3), x.RowRange(0, 1).Columns(3, 6), false},
		"interleaved columns":   {x.Columns(0, 3), x.Columns(3, 6), true}, // their spans meet
		"a tail and what it is": {x.RowRange(3, 4), x, true},
	} {
		if c.a.Overlaps(c.b) != c.want || c.b.Overlaps(c.a) != c.want {
			t.Errorf("%s: %v and %v: %v and %v, want %v", name, c.a, c.b, c.a.Overlaps(c.b), c.b.Overlaps(c.a), c.want)
		}
	}
}

func TestPanicsShowShapes(t *testing.T) {
	x := counted(4, 6)
	panics(t, "columns [2,7) of F32[4,6]", func() { x.Columns(2, 7) })
	panics(t, "columns [3,2) of F32[4,6]", func() { x.Columns(3, 2) })
	panics(t, "rows [-1,2) of F32[4,6]", func() { x.RowRange(-1, 2) })
	panics(t, "rows [0,5) of F32[4,6]", func() { x.RowRange(0, 5) })
	panics(t, "reshape F32[4,6] to 5×5", func() { x.Reshape(5, 5) })
	panics(t, "reshape F32[4,2 ld 6] to 2×4", func() { x.Columns(0, 2).Reshape(2, 4) })
	panics(t, "slice 2×3 at 20 of F32[4,6]", func() { x.Slice(20, 2, 3) })
	panics(t, "F32[4,6] seen as float64", func() { Host[float64](x) })
	x.Buf = &Buffer{Addr: 1, Size: 96}
	panics(t, "F32[4,6] is not in host memory", func() { Host[float32](x) })
}

func TestViewsAllocateNothing(t *testing.T) {
	x := counted(4, 6)
	n := 0
	if a := testing.AllocsPerRun(10, func() {
		v := x.Columns(1, 5).RowRange(1, 3)
		n += len(Host[float32](v)) + v.Len()
	}); a != 0 {
		t.Errorf("views allocate %v times", a)
	}
}
