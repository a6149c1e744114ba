package layer

import (
	"runtime"
	"sync"

	"antiphase/device"
	"antiphase/internal/fault"
	"antiphase/tensor"
)

// tileEntries bounds the entries of a map held at once, for any T: no map is ever held whole.
const tileEntries = 1 << 20

// tileEntriesEach is the number of entries of a tile that are worth a goroutine.
const tileEntriesEach = 1 << 12

// TileReader reads whole maps to the host in tiles of R rows, [R,T] with R·T about tileEntries.
type TileReader struct {
	v    View
	rows int
	out  tensor.Tensor
	host [2][]float64 // a tile of each map
	raw  []float32    // as read from a device that computes in float32
	lam  *RowReader

	workers int
}

// tileRows is the number of the T rows of cols entries that are held at once: at least one and at most most.
func tileRows(T, cols, most int) int { return min(T, max(1, min(most, tileEntries/cols))) }

// TileReader returns a reader of whole maps.
func (v View) TileReader() *TileReader {
	T := v.Shape.T
	r := &TileReader{v: v, rows: tileRows(T, T, 64)}
	r.workers = max(1, min(runtime.GOMAXPROCS(0), r.rows*T/tileEntriesEach))
	r.out = device.Empty(v.dev, v.dev.Types().Stat, r.rows, T)
	r.lam = v.RowReader(1)
	if r.out.Type == tensor.F32 {
		r.raw = make([]float32, r.rows*T)
	}
	for m := range min(v.Maps, len(r.host)) {
		r.host[m] = make([]float64, r.rows*T)
	}
	return r
}

// Free releases the reader's device memory.
func (r *TileReader) Free() {
	r.lam.Free()
	r.v.dev.Free(r.out.Buf)
}

// Lambda returns λ of a row and head; 0 without λ.
func (r *TileReader) Lambda(row, head int) float64 { return r.lam.Lambda(row, head) }

// Map calls f with every row t of map m of a head; its t+1 entries are probabilities or scaled logits. A row is valid
// during the call.
func (r *TileReader) Map(head, m, seq int, logits bool, f func(t int, row []float64)) {
	T := r.v.Shape.T
	for t := 0; t < T; t += r.rows {
		n := r.fetch(head, m, seq, t, logits)
		for i := range n {
			f(t+i, r.row(head, m, t, i, logits))
		}
	}
}

// Each is Map with rows in any order and f called by several goroutines at once, each with its own number below
// Workers. A map of a long sequence has millions of entries: with a GPU the host is what takes the time.
func (r *TileReader) Each(head, m, seq int, logits bool, f func(worker, t int, row []float64)) {
	for t := 0; t < r.v.Shape.T; t += r.rows {
		n := r.fetch(head, m, seq, t, logits)
		var wg sync.WaitGroup
		for w := range r.Workers() {
			wg.Go(func() {
				defer fault.Guard()()
				for i := w; i < n; i += r.Workers() {
					f(w, t+i, r.row(head, m, t, i, logits))
				}
			})
		}
		wg.Wait()
	}
}

// Workers is the number of goroutines of Each.
func (r *TileReader) Workers() int { return r.workers }

// Scores calls f with every row of the weights the head applies to its values, A or A1 − λA2, and the row's λ (0
// without one).
func (r *TileReader) Scores(head, seq int, f func(t int, row []float64, lam float64)) {
	T := r.v.Shape.T
	for t := 0; t < T; t += r.rows {
		n := r.read(head, 0, seq, t, false)
		if r.v.Maps == 2 {
			r.read(head, 1, seq, t, false)
		}
		if r.v.silent(head) {
			clear(r.host[0])
			clear(r.host[1])
		}
		for i := range n {
			row := r.host[0][i*T : i*T+t+i+1]
			lam := r.lam.Lambda(seq*T+t+i, head)
			if r.v.Maps == 2 {
				for s, x := range r.host[1][i*T : i*T+t+i+1] {
					row[s] -= lam * x
				}
			}
			f(t+i, row, lam)
		}
	}
}

// read fetches the tile that begins at row t, completes its rows and returns their number.
func (r *TileReader) read(head, m, seq, t int, logits bool) int {
	n := r.fetch(head, m, seq, t, logits)
	for i := range n {
		r.row(head, m, t, i, logits)
	}
	return n
}

// fetch reads the tile that begins at row t as the device has it and returns its number of rows.
func (r *TileReader) fetch(head, m, seq, t int, logits bool) int {
	n := min(r.rows, r.v.Shape.T-t)
	out := r.out.RowRange(0, n)
	r.v.Rows(out, head, m, seq, t, logits)
	if r.raw == nil {
		device.ReadFloats(r.v.dev, r.host[m][:out.Len()], out)
	} else {
		device.ReadFloats(r.v.dev, r.raw[:out.Len()], out)
	}
	return n
}

// row completes row i of the tile that begins at row t.
func (r *TileReader) row(head, m, t, i int, logits bool) []float64 {
	first := i * r.v.Shape.T
	row := r.host[m][first : first+t+i+1]
	if r.raw != nil {
		for s, x := range r.raw[first : first+t+i+1] {
			row[s] = float64(x)
		}
	}
	r.v.remap(row, head, m, t+i, logits)
	return row
}
