//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"bytes"
	"math"
	"unsafe"
)

// tuneFrom is the work, in floating-point operations, above which a product is worth timing: about ten microseconds.
const tuneFrom = 1 << 33

// tuneRows is the number of rows of a product that are compared, spread over all rows.
const tuneRows = 8

// tune times the library's algorithms for a product, on its own operands and into separate memory, and keeps the
// fastest of those that give the bits of the first. The choice, which depends on timing, therefore never affects a
// result: algorithms that split or order the sum over k differently are excluded.
func (t *cublasLt) tune(pl *plan, p *Product, ways []ltResult) {
	size := 2 * ((p.M-1)*p.LdC + p.N)
	if p.Float {
		size *= 2
	}
	room, err := t.mem.fresh(size)
	if err != nil {
		return // no memory to try alternatives: keep the first
	}
	defer func() {
		_ = fast(t.mem.api.streamSync, t.mem.stream)
		_ = call(t.mem.api.memFree, room)
	}()
	trial := *p
	trial.C = room
	var first []byte
	best, chosen := math.Inf(1), pl.algo
	defer func() { pl.algo = chosen }()
	for i, w := range ways {
		pl.algo = w
		if w.state != 0 || w.workspace > workspaceSize {
			continue // never the first: the plan would be empty
		}
		if fast(t.mem.api.memset, room, 0, uintptr(size), t.mem.stream) != 0 {
			return
		}
		got, ok := t.sample(pl, &trial)
		if i == 0 {
			first = got
			if !ok || len(bytes.Trim(got, "\x00")) == 0 {
				return // zeros would hide a difference
			}
		}
		if !ok || !bytes.Equal(got, first) {
			continue
		}
		if ms := t.time(pl, &trial); ms < 0.98*best { // an earlier algorithm wins a tie
			best, chosen = ms, w
		}
	}
}

// sample computes the product and reads some of its rows.
func (t *cublasLt) sample(pl *plan, p *Product) ([]byte, bool) {
	if t.run(pl, p) != 0 {
		return nil, false
	}
	element := 2
	if p.Float {
		element = 4
	}
	width := p.N * element
	got := make([]byte, tuneRows*width)
	for i := range tuneRows {
		row := i * (p.M - 1) / (tuneRows - 1)
		from := Block{Addr: p.C + uintptr(row*p.LdC*element), Rows: 1, Width: width, Pitch: width}
		if t.mem.Download(got[i*width:(i+1)*width], from) != nil {
			return nil, false
		}
	}
	return got, true
}

// time is the milliseconds of one product, or +Inf if it fails.
func (t *cublasLt) time(pl *plan, p *Product) float64 {
	const turns = 5
	api, e := &t.mem.api, &t.events
	code := fast(api.eventRecord, e[0], t.mem.stream)
	for range turns {
		code |= t.run(pl, p)
	}
	code |= fast(api.eventRecord, e[1], t.mem.stream)
	code |= fast(api.eventSync, e[1])
	code |= call(api.eventElapsed, t.mem.result(0), e[0], e[1])
	if code != 0 {
		return math.Inf(1)
	}
	return float64(math.Float32frombits(uint32(t.mem.out[0]))) / turns
}

// run starts one product with the plan's algorithm.
func (t *cublasLt) run(pl *plan, p *Product) int32 {
	beta := uintptr(unsafe.Pointer(&t.alpha[1]))
	if p.Accumulate {
		beta = uintptr(unsafe.Pointer(&t.alpha[0]))
	}
	return fast(t.api.matmul, t.handle, pl.desc, uintptr(unsafe.Pointer(&t.alpha[0])), p.B, pl.a, p.A, pl.b, beta,
		p.C, pl.c, p.C, pl.c, uintptr(unsafe.Pointer(&pl.algo)), t.workspace, workspaceSize, t.mem.stream)
}
