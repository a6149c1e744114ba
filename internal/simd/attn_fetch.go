package simd

import "unsafe"

// fetchLine is the number of bytes of a row that kernels prefetch at once, two lines.
const fetchLine = 128

// fetches is the list of prefetches, one after the other. The last one has no end.
type fetches struct {
	all []fetchRows
	now *fetchRows
}

// FetchNone clears the list.
func (t *AttnTile) FetchNone() {
	t.fetch.all = append(t.fetch.all[:0], fetchRows{left: 1 << 62})
	t.fetch.now = &t.fetch.all[0]
}

// FetchRows makes kernels prefetch rows × cols elements starting at x into L2 while they do other work.
func (t *AttnTile) FetchRows(x View, rows, cols int) {
	at, size := uintptr(unsafe.Pointer(unsafe.SliceData(x.X))), 4
	if x.H != nil {
		at, size = uintptr(unsafe.Pointer(unsafe.SliceData(x.H))), 2
	}
	last := len(t.fetch.all) - 1
	t.fetch.all = t.fetch.all[:last]
	for c := 0; c < cols*size; c += fetchLine {
		t.fetch.all = append(t.fetch.all, fetchRows{at + uintptr(c), x.Ld * size, rows})
	}
	t.fetch.all = append(t.fetch.all, fetchRows{left: 1 << 62})
	t.fetch.now = &t.fetch.all[0]
}
