package cpu

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"antiphase/internal/fault"
	"antiphase/internal/simd"
)

// Peaks lists the names that Peak accepts here, such as "avx512 fp32", "amx bf16", "neon fp32" and "sdot int8"; the
// last is that of plain Go.
func Peaks() []string {
	var names []string
	for _, p := range simd.Peaks() {
		names = append(names, p.Name)
	}
	return names
}

// loopsOf are the loops that bound products of float32 and of bfloat16 with each implementation; simd knows that of
// int8, which differs between processors with one implementation.
var loopsOf = map[string][2]string{
	"amx":        {"avx512 fp32", "amx bf16"},
	"avx512bf16": {"avx512 fp32", "avx512 fp32"},
	"avx512":     {"avx512 fp32", "avx512 fp32"},
	"avxvnni":    {"avx2 fp32", "avx2 fp32"},
	"avx2":       {"avx2 fp32", "avx2 fp32"},
	"neonbf16":   {"neon fp32", "neon bf16"},
	"neon":       {"neon fp32", "neon fp32"},
	"generic":    {"go fp32", "go fp32"},
}

// PeakOf names the loop that bounds products at a precision with the implementation in use.
func PeakOf(p Precision) string {
	switch p {
	case FP32:
		return loopsOf[simd.Name()][0]
	case BF16:
		return loopsOf[simd.Name()][1]
	}
	return simd.PeakInt8()
}

// Peak measures, for about d, the rate of a loop of multiply-adds on registers alone: FLOP/s (int8: operations of
// products, see simd.PeakLoop) of the given number of threads together. A kernel's share of it is meaningful only
// within one run, measured alternately: clock rates and other load change from moment to moment.
func Peak(name string, threads int, d time.Duration) (float64, error) {
	all := simd.Peaks()
	i := slices.IndexFunc(all, func(p simd.PeakLoop) bool { return p.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("cpu: no peak loop %q here (have %q)", name, Peaks())
	}
	const turns = 500 // about ten microseconds
	n := together(threads, d, func(int) float64 { all[i].Run(turns); return turns })
	return n * all[i].Ops, nil
}

// ReadBandwidth measures, for about d, how many bytes per second the threads together read from an array of the given
// size, each its own part sequentially. The array is created and written first, outside the measured time.
func ReadBandwidth(bytes, threads int, d time.Duration) float64 {
	dev := New(Options{Threads: 1})
	defer dev.Close()
	b := dev.Alloc(max(bytes, 1024*threads))
	defer dev.Free(b)
	return together(threads, d, newReader(floatsOf(b), threads).next)
}

// reader reads an array in pieces, each thread its own part of it over and over.
type reader struct {
	x    []float32
	part int   // floats of a thread
	at   []int // at[16w] is thread w's place in its part: a cache line each
}

// newReader writes the array, so that each of its pages has memory, and divides it.
func newReader(x []float32, threads int) *reader {
	for i := range x {
		x[i] = 1
	}
	return &reader{x: x, part: len(x) / threads, at: make([]int, 16*threads)}
}

// next reads a thread's next piece and returns its bytes.
func (r *reader) next(w int) float64 {
	const piece = 64 << 10 // floats: tens of microseconds
	at := &r.at[16*w]
	n := min(piece, r.part-*at)
	simd.ReadLoop(r.x[w*r.part+*at:][:n])
	if *at += n; *at == r.part {
		*at = 0
	}
	return float64(4 * n)
}

// together runs f on each thread until d is over and returns the sum of its results per second. All threads share one
// clock: if they are more than the processors, each waits for the others in part of that time.
func together(threads int, d time.Duration, f func(worker int) float64) float64 {
	var wg sync.WaitGroup
	var ready atomic.Int64
	var begun, over atomic.Bool
	var begin time.Time
	var took time.Duration
	sums := make([]float64, threads)
	for w := range threads {
		wg.Go(func() {
			defer fault.Guard()()
			f(w) // let the clock rate and the caches settle
			if ready.Add(1) == int64(threads) {
				begin = time.Now()
				begun.Store(true)
			}
			for !begun.Load() {
				runtime.Gosched()
			}
			var n float64
			for !over.Load() {
				n += f(w)
				if t := time.Since(begin); t > d && over.CompareAndSwap(false, true) {
					took = t
				}
			}
			sums[w] = n
		})
	}
	wg.Wait()
	var total float64
	for _, s := range sums {
		total += s
	}
	return total / took.Seconds()
}
