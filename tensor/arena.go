package tensor

import "fmt"

// NoMemory is the value an allocator panics with when it has no memory left. It is an error, so that a caller that
// recovers can distinguish it from an internal fault.
type NoMemory struct {
	Where string // "host", "device"
	Bytes int    // requested
	Free  int64  // available; negative if unknown
	Err   error  // of the system, if any
}

// Error states how much was requested and how much is available.
func (e *NoMemory) Error() string {
	s := fmt.Sprintf("out of memory: %s more of %s memory are needed", gibibytes(int64(e.Bytes)), e.Where)
	if e.Free >= 0 {
		s += fmt.Sprintf(", there are %s", gibibytes(e.Free))
	}
	if e.Err != nil {
		s += fmt.Sprintf(" (%v)", e.Err)
	}
	return s
}

// Unwrap is the system's error.
func (e *NoMemory) Unwrap() error { return e.Err }

func gibibytes(n int64) string { return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30)) }

// Allocator allocates and frees a device's memory. Alloc panics with a [*NoMemory] if there is none.
type Allocator interface {
	Alloc(bytes int) *Buffer
	Free(*Buffer)
}

// align puts every tensor on its own cache lines and satisfies the widest vector or bulk copy.
const align = 256

// Arena is a stack of tensors. Forward pushes with New, backward pops with Release. A first pass allocates memory block
// by block; Settle then compacts it into one block of exactly the required size, and every later pass of that size uses
// the same addresses and allocates nothing.
type Arena struct {
	alloc  Allocator
	blocks []*Buffer
	cur    int // block being filled
	off    int // bytes used of it
	used   int // bytes of all tensors
	high   int
}

// Mark is a height of the stack.
type Mark struct{ block, off, used int }

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
	a.used += need
	a.high = max(a.high, a.used)
	return t
}

// grow adds a block of the required size; small tensors share one. A device may have little memory to spare, and Settle
// follows soon.
func (a *Arena) grow(need int) { a.blocks = append(a.blocks, a.alloc.Alloc(max(need, 1<<20))) }

// Settle merges several blocks into one, and reports whether it did: then everything has moved. Nothing may be in use.
func (a *Arena) Settle() bool {
	if len(a.blocks) < 2 {
		return false
	}
	a.Free()
	a.blocks = append(a.blocks, a.alloc.Alloc(a.high))
	return true
}

// Mark is the current height.
func (a *Arena) Mark() Mark { return Mark{a.cur, a.off, a.used} }

// Release pops everything pushed since m.
func (a *Arena) Release(m Mark) {
	if m.block > a.cur || m.block == a.cur && m.off > a.off {
		panic("tensor: arena released to a mark above its top")
	}
	a.cur, a.off, a.used = m.block, m.off, m.used
}

// Used is the number of bytes of all tensors on the stack.
func (a *Arena) Used() int { return a.used }

// High is the largest Used so far.
func (a *Arena) High() int { return a.high }

// Free releases all blocks.
func (a *Arena) Free() {
	for _, b := range a.blocks {
		a.alloc.Free(b)
	}
	*a = Arena{alloc: a.alloc, high: a.high}
}
