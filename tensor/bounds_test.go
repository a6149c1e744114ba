package tensor

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// refuses reports whether f panics.
func refuses(f func()) (refused bool) {
	defer func() { refused = recover() != nil }()
	f()
	return false
}

// Every view of a padded tensor, from outside one end to outside the other: those inside have the elements that their
// indices say, all others are refused.
func TestViewsOfEveryRange(t *testing.T) {
	whole := counted(4, 9)
	x := whole.Columns(1, 6).RowRange(1, 4) // 3×5, 9 apart, so that rows, columns and pitch all differ
	value := func(r, c int) float32 { return float32((1+r)*9 + 1 + c) }
	for from := -2; from <= 7; from++ {
		for to := -2; to <= 7; to++ {
			for name, c := range map[string]struct {
				view func() Tensor
				most int
			}{
				"columns": {func() Tensor { return x.Columns(from, to) }, 5},
				"rows":    {func() Tensor { return x.RowRange(from, to) }, 3},
			} {
				inside := 0 <= from && from <= to && to <= c.most
				if got := refuses(func() { c.view() }); got == inside {
					t.Errorf("%s [%d,%d) of %v: refused %v, want %v", name, from, to, x, got, !inside)
				}
				if !inside || from == to {
					continue
				}
				v, want, first := c.view(), fmt.Sprintf("F32[3,%d ld 9]", to-from), value(0, from)
				if name == "rows" {
					want, first = fmt.Sprintf("F32[%d,5 ld 9]", to-from), value(from, 0)
				}
				if to-from == 1 && name == "rows" {
					want = "F32[1,5]"
				}
				if v.String() != want || Host[float32](v)[0] != first {
					t.Errorf("%s [%d,%d): %v beginning with %v, want %s and %v", name, from, to, v,
						Host[float32](v)[0], want, first)
				}
			}
		}
	}
}

// A slice must lie inside, and only a dense tensor has slices and other shapes.
func TestSlicesOfEveryPlace(t *testing.T) {
	x := counted(3, 4)
	for at := -2; at <= 13; at++ {
		for rows := range 5 {
			for cols := range 5 {
				inside := at >= 0 && at+rows*cols <= 12
				if got := refuses(func() { x.Slice(at, rows, cols) }); got == inside {
					t.Errorf("%d×%d at %d: refused %v", rows, cols, at, got)
				}
				if inside && rows*cols > 0 {
					if v := x.Slice(at, rows, cols); !v.Is(rows, cols) || Host[float32](v)[0] != float32(at) ||
						len(Host[float32](v)) != rows*cols {
						t.Errorf("%d×%d at %d: %v", rows, cols, at, v)
					}
				}
			}
		}
	}
	for _, v := range []Tensor{x.Columns(0, 2), x.Columns(1, 4).RowRange(0, 2)} {
		if !refuses(func() { v.Slice(0, 1, 2) }) || !refuses(func() { v.Reshape(v.Len(), 1) }) || v.Dense() {
			t.Errorf("%v is taken for dense", v)
		}
	}
	for _, c := range []struct{ rows, cols int }{{3, 4}, {4, 3}, {3, 5}, {2, 4}, {3, 6}} {
		if got, want := x.Is(c.rows, c.cols), c.rows == 3 && c.cols == 4; got != want {
			t.Errorf("%v is %d×%d: %v", x, c.rows, c.cols, got)
		}
	}
	if v := counted(3, 6).Columns(0, 4); !v.Is(3, 4) || v.Is(3, 6) {
		t.Errorf("%v: its shape is not its pitch", v)
	}
}

// Views without elements have no memory, whatever their place and pitch; the padding of others does not count as
// theirs.
func TestElementsOfViews(t *testing.T) {
	x := counted(3, 4)
	for _, v := range []Tensor{x.RowRange(1, 1), x.Slice(5, 0, 3), x.Slice(5, 1, 0), x.Columns(1, 3).RowRange(2, 2),
		x.Columns(2, 2).RowRange(1, 2)} {
		if v.Len() != 0 || len(Host[float32](v)) != 0 {
			t.Errorf("%v has %d elements, %d in memory", v, v.Len(), len(Host[float32](v)))
		}
	}
	if v := x.Columns(1, 3); v.Len() != 6 {
		t.Errorf("%v has %d elements, want 6", v, v.Len())
	}
}

// A random history of pushes, marks and releases, against a model that adds rounded sizes up.
func TestArenaHistory(t *testing.T) {
	type height struct {
		mark Mark
		used int
		live []Tensor
	}
	r := rand.New(rand.NewPCG(1, 2))
	h := &heap{}
	a := NewArena(h)
	used, high := 0, 0
	var live []Tensor
	marks := []height{{mark: a.Mark()}}
	for range 2000 {
		switch n := r.IntN(8); {
		case n < 4:
			rows, cols := r.IntN(40), 16*r.IntN(300)
			x := a.New(F32, rows, cols)
			used += (rows*cols*4 + 255) / 256 * 256
			high = max(high, used)
			for _, y := range live {
				if x.Overlaps(y) {
					t.Fatalf("%v at %d overlaps %v at %d", x, x.Off, y, y.Off)
				}
			}
			if live = append(live, x); x.Off+Bytes(F32, rows, cols) > x.Buf.Size || !x.Is(rows, cols) || !x.Dense() {
				t.Fatalf("%v at byte %d of %d", x, x.Off, x.Buf.Size)
			}
		case n < 6:
			marks = append(marks, height{a.Mark(), used, live[:len(live):len(live)]})
		default:
			k := r.IntN(len(marks))
			above := marks[len(marks)-1]
			a.Release(marks[k].mark)
			used, live, marks = marks[k].used, marks[k].live, marks[:k+1]
			a.Release(marks[k].mark) // the top itself is not above it
			if grown := above.used > used; grown && !refuses(func() { a.Release(above.mark) }) {
				t.Fatalf("released from %d to a mark at %d", used, above.used)
			}
		}
		if a.Used() != used || a.High() != high {
			t.Fatalf("used %d and high %d, want %d and %d", a.Used(), a.High(), used, high)
		}
	}
	if a.Release(marks[0].mark); h.given < 2 || !a.Settle() || a.High() != high {
		t.Errorf("%d blocks, high %d, want several and %d", h.given, a.High(), high)
	}
	if x := a.New(F32, 1, high/4); x.Buf.Size != high || a.Settle() {
		t.Errorf("settled in %d bytes, want %d at once", x.Buf.Size, high)
	}
	for _, c := range []struct{ rows, cols int }{{-1, 2}, {2, -1}, {-1, -1}} {
		if !refuses(func() { a.New(F32, c.rows, c.cols) }) {
			t.Errorf("%d×%d is given", c.rows, c.cols)
		}
	}
}

// Two blocks are settled into one; one block is left alone.
func TestSettleOfTwoBlocks(t *testing.T) {
	h := &heap{}
	a := NewArena(h)
	bottom := a.Mark()
	a.New(F32, 1, 1<<18)
	if a.Settle() {
		t.Error("one block is settled")
	}
	a.New(F32, 1, 1<<18)
	a.Release(bottom)
	if !a.Settle() || h.given != 3 || h.back != 2 {
		t.Errorf("two blocks: %d given, %d back", h.given, h.back)
	}
}
