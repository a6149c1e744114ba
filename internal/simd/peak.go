package simd

import "runtime"

// PeakLoop is a loop of one kind of multiply-add on registers alone: its rate is the most that a kernel of that kind
// could reach on one thread. It has no other effect.
type PeakLoop struct {
	Name string  // instruction set and dtype: "avx512 fp32", "avx2 fp32", "amx bf16", "amx int8", "sdot int8"
	Ops  float64 // operations of one turn, a multiply-add being two; int8: of a 16-bit with an 8-bit value, as GemmInt8
	run  func(turns int)
}

// Run makes that many turns, at least one. A thousand take some ten microseconds.
func (p PeakLoop) Run(turns int) { p.run(max(turns, 1)) }

// Peaks are the loops that this machine can run, whichever implementation is in use. The last is that of plain Go.
func Peaks() []PeakLoop { return append(peaks(), PeakLoop{goPeak, 2 * 12, peakGo}) }

// PeakInt8 names the loop that bounds the int8 products in use.
func PeakInt8() string { return cur.bytes.peak }

// goPeak names the loop of plain Go.
const goPeak = "go fp32"

// peakFrom is where the chains of peakGo begin: the compiler would make one of equal ones.
var peakFrom [12]float32

// peakGo: turns of 12 multiply-adds, each two instructions, on as many chains as hide their latency. They approach 2.
func peakGo(turns int) {
	x := &peakFrom
	x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11 := x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8],
		x[9], x[10], x[11]
	a, b := float32(0.5), float32(1)
	for range turns {
		x0, x1, x2, x3 = float32(x0*a)+b, float32(x1*a)+b, float32(x2*a)+b, float32(x3*a)+b
		x4, x5, x6, x7 = float32(x4*a)+b, float32(x5*a)+b, float32(x6*a)+b, float32(x7*a)+b
		x8, x9, x10, x11 = float32(x8*a)+b, float32(x9*a)+b, float32(x10*a)+b, float32(x11*a)+b
	}
	runtime.KeepAlive([12]float32{x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11})
}

// ReadLoop reads all of x, whole kilobytes of it, and uses it for nothing: its rate on memory larger than the caches is
// the most that a kernel which is bound by reading weights could reach on one thread. Write to x before: fresh memory
// is one page.
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
