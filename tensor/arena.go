package tensor

import "fmt"

// Allocator gives and takes back a device's memory.
type Allocator interface {
	Alloc(bytes int) *Buffer
	Free(*Buffer)
}

// align keeps every tensor on its own cache lines and fit for the widest vector or bulk copy.
const align = 256

// Arena is a stack of tensors in a few large blocks. Forward pushes with New, backward pops with Release.
// Blocks are kept, so a second identical pass lands on the same addresses and allocates nothing.
type Arena struct {
	alloc  Allocator
	blocks []*Buffer
	cur    int // block being filled
	off    int // bytes used of it
	high   int
}

// Mark is a height of the stack.
type Mark struct{ block, off int }

// NewArena makes an empty arena; its first New fetches memory.
func NewArena(a Allocator) *Arena { return &Arena{alloc: a} }

// New pushes a dense rows × cols tensor. Its content is whatever was there before.
func (a *Arena) New(d DType, rows, cols int) Tensor {
	if rows < 0 || cols < 0 {
		panic(fmt.Sprintf("tensor: new %s[%d,%d]", d, rows, cols))
	}
	need := (Bytes(d, rows, cols) + align - 1) / align * align
	for a.cur < len(a.blocks) && a.off+need > a.blocks[a.cur].Size {
		a.cur, a.off = a.cur+1, 0
	}
	if a.cur == len(a.blocks) {
		a.grow(need)
	}
	t := Tensor{Buf: a.blocks[a.cur], Off: a.off, Type: d, Rows: rows, Cols: cols, Ld: cols}
	a.off += need
	a.high = max(a.high, a.Used())
	return t
}

// grow adds a block: at least twice the last one, so that their number stays small.
func (a *Arena) grow(need int) {
	size := max(need, 1<<20)
	if n := len(a.blocks); n > 0 {
		size = max(size, 2*a.blocks[n-1].Size)
	}
	a.blocks = append(a.blocks, a.alloc.Alloc(size))
}

// Mark is the present height.
func (a *Arena) Mark() Mark { return Mark{a.cur, a.off} }

// Release pops everything pushed since m.
func (a *Arena) Release(m Mark) {
	if m.block > a.cur || m.block == a.cur && m.off > a.off {
		panic("tensor: arena released to a mark above its top")
	}
	a.cur, a.off = m.block, m.off
}

// Used is the number of bytes up to the top, High the most there ever was.
func (a *Arena) Used() int {
	n := a.off
	for _, b := range a.blocks[:a.cur] {
		n += b.Size
	}
	return n
}

// High is the largest Used so far.
func (a *Arena) High() int { return a.high }

// Free gives all blocks back.
func (a *Arena) Free() {
	for _, b := range a.blocks {
		a.alloc.Free(b)
	}
	*a = Arena{alloc: a.alloc, high: a.high}
}
