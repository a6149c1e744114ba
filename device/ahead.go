package device

import "antiphase/tensor"

// Ahead is a Device whose work runs behind the host: the host may start a step that goes on from results it has not seen, and wait for these
// while that step runs.
type Ahead interface {
	// Advance makes the rows of a decoding step those of the next: ids[0,n] = max(best[0,n], 0), pos[0,n] += 1, all of them I32 [1,N].
	// A row without a best token (−1, see ArgMax) goes on from id 0, which is no fault: whoever sees the −1 throws it away.
	Advance(ids, pos, best tensor.Tensor)
	// NewFetch makes a way to the host for at most so many bytes at a time.
	NewFetch(bytes int) Fetch
}

// Fetch brings results to the host, one at a time, beside later work.
type Fetch interface {
	// Start begins the copy of src, one row of 4-byte elements, behind the work before it.
	Start(src tensor.Tensor)
	// Wait blocks until the copy is there, whatever was started behind it, and gives it as dense bytes. The error is the first fault that was known
	// at Start, or is known by now, and that neither Sync nor another Wait has told.
	Wait(dst []byte) error
	// Free gives its memory back.
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
