package simd

import "runtime"

// PeakLoop is a loop of one kind of multiply-add on registers alone: its rate is the most that a kernel of that kind
// could reach on one thread. It has no other effect.
type PeakLoop struct {
	Name string  // instruction set and dtype: "avx512 fp32", "avx2 fp32", "amx bf16", "amx int8"
	Ops  float64 // operations of one turn, a multiply-add being two
	run  func(turns int)
}

// Run makes that many turns, at least one. A thousand take some ten microseconds.
func (p PeakLoop) Run(turns int) { p.run(max(turns, 1)) }

// Peaks are the loops that this machine can run, whichever implementation is in use.
func Peaks() []PeakLoop { return peaks() }

// ReadLoop reads all of x, whole kilobytes of it, and uses it for nothing: its rate on memory larger than the caches is the
// most that a kernel which is bound by reading weights could reach on one thread. Write to x before: fresh memory is one page.
func ReadLoop(x []float32) {
	if n := len(x) * 4 &^ 1023; n > 0 {
		read(x[:n/4])
	}
}

func readGeneric(x []float32) {
	var s0, s1, s2, s3 float32
	for ; len(x) >= 4; x = x[4:] {
		s0, s1, s2, s3 = max(s0, x[0]), max(s1, x[1]), max(s2, x[2]), max(s3, x[3])
	}
	runtime.KeepAlive(s0 + s1 + s2 + s3)
}
