package cpu

import (
	"unsafe"

	"antiphase/tensor"
)

// memory is the device's allocated memory, and the packed operands that it keeps.
type memory struct {
	mapped  mappings // outside the Go heap
	weights weights  // packed right-hand operands that are kept
}

// weights keeps right-hand operands packed between products: a weight is packed once for each direction it is used in
// and again only after it was written. Every op that writes calls touch; memory that is freed or allocated is
// forgotten. At bf16 or int8 the packed copy is the only one that decoding reads.
type weights struct {
	byKey map[weightKey]*weight
	// lo and hi are the address range of all weights: most tensors that ops write are outside.
	lo, hi uintptr
}

// weightKey is a view of memory and how it was packed.
type weightKey struct {
	at             uintptr
	rows, cols, ld int
	trans, bytes   bool
}

// weight is a packed operand. stale means that its source was written since.
type weight struct {
	end   uintptr // of its source
	buf   *tensor.Buffer
	stale bool
}

func spanOf(m mat) (from, to uintptr) {
	if m.h != nil {
		from = uintptr(unsafe.Pointer(unsafe.SliceData(m.h)))
		return from, from + 2*uintptr(len(m.h))
	}
	from = uintptr(unsafe.Pointer(unsafe.SliceData(m.x)))
	return from, from + 4*uintptr(len(m.x))
}

// weight finds b's packed form, of the given number of bytes. fresh means that it holds b's current values; otherwise
// the caller fills it.
func (m *memory) weight(b mat, trans, bytes bool, size int) (buf *tensor.Buffer, fresh bool) {
	from, to := spanOf(b)
	key := weightKey{from, b.rows, b.cols, b.ld, trans, bytes}
	w := m.weights.byKey[key]
	if w == nil {
		if m.weights.byKey == nil {
			m.weights = weights{byKey: map[weightKey]*weight{}, lo: from, hi: to}
		}
		w = &weight{end: to, buf: m.allocate(size), stale: true}
		m.weights.byKey[key] = w
		m.weights.lo, m.weights.hi = min(m.weights.lo, from), max(m.weights.hi, to)
	}
	fresh = !w.stale
	w.stale = false
	return w.buf, fresh
}

// touch marks packed copies of these tensors as stale: they are about to be written.
func (m *memory) touch(ts ...tensor.Tensor) {
	if len(m.weights.byKey) == 0 {
		return
	}
	for _, t := range ts {
		if !t.Ok() || t.Rows == 0 || t.Cols == 0 {
			continue
		}
		from := t.Buf.Addr + uintptr(t.Off)
		to := from + uintptr(((t.Rows-1)*t.Ld+t.Cols)*t.Type.Size())
		if to <= m.weights.lo || from >= m.weights.hi {
			continue
		}
		for k, w := range m.weights.byKey {
			if k.at < to && from < w.end {
				w.stale = true
			}
		}
	}
}

// forget drops packed copies of a buffer.
func (m *memory) forget(b *tensor.Buffer) {
	if len(m.weights.byKey) == 0 {
		return
	}
	for k, w := range m.weights.byKey {
		if k.at < b.Addr+uintptr(b.Size) && b.Addr < w.end {
			delete(m.weights.byKey, k)
			m.release(w.buf)
		}
	}
}

// freeWeights frees all packed operands.
func (m *memory) freeWeights() {
	for _, w := range m.weights.byKey {
		m.release(w.buf)
	}
	m.weights = weights{}
}

// words views a buffer as bfloat16 values.
func words(b *tensor.Buffer) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(&b.Host[0])), b.Size/2)
}
