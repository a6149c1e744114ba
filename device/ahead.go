package device

import "antiphase/tensor"

// Ahead is an asynchronous Device: the host may start a step that continues from results it has not seen, and wait for
// these while that step runs.
type Ahead interface {
	// Advance turns the rows of a decoding step into those of the next: ids[0,n] = max(best[0,n], 0), pos[0,n] += 1,
	// all I32 [1,N]. A row without a best token (−1, see ArgMax) continues from id 0, which is not a fault: the caller
	// that sees the −1 discards it.
	Advance(ids, pos, best tensor.Tensor)
	// NewFetch allocates an asynchronous copy of up to bytes bytes.
	NewFetch(bytes int) Fetch
}

// Fetch copies results to the host, one at a time, asynchronously.
type Fetch interface {
	// Start begins the copy of src, one row of 4-byte elements, after the work so far.
	Start(src tensor.Tensor)
	// Wait blocks until the copy is done, regardless of later work, and returns it as dense bytes. The error is the
	// first fault known at Start, or known by now, that neither Sync nor another Wait has reported.
	Wait(dst []byte) error
	// Free releases its memory.
	Free()
}

// WaitI32 waits for ids.
func WaitI32(f Fetch, dst []int32) error { return f.Wait(raw(dst)) }

// CheckAdvance checks Advance's tensors.
func CheckAdvance(ids, pos, best tensor.Tensor) {
	if n := ids.Cols; !(has(ids, tensor.I32, 1, n) && has(pos, tensor.I32, 1, n) && has(best, tensor.I32, 1, n)) {
		fail("Advance", "ids, pos and best [1,N] in I32", arg{"ids", ids}, arg{"pos", pos}, arg{"best", best})
	}
}
