// Package quiet times a kernel on a machine that is not quiet: in turns with a loop whose speed is known, on the thread's own
// processor time, keeping the samples around which that loop ran undisturbed. It is for benchmarks only.
package quiet

import (
	"cmp"
	"runtime"
	"slices"
	"testing"
)

// Loop is a loop that does nothing but what the machine does fastest: Ops operations a turn.
type Loop struct {
	Ops float64
	Run func(turns int)
}

// Time times f, which makes so many operations, in turns with a loop of about the same length on one thread. It keeps
// the samples around which the loop was near its best, because a neighbour on the same core takes more from some kernels
// than from others, and reports their medians: rate, and share of the loop's.
func Time(b *testing.B, peak Loop, ops float64, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	turns := int(ops/peak.Ops)/2 + 1
	timed := func(f func()) float64 {
		begin := threadTime()
		f()
		return (threadTime() - begin).Seconds()
	}
	type sample struct{ peak, rate float64 }
	var all []sample
	var best float64
	for b.Loop() {
		before := timed(func() { peak.Run(turns) })
		t := timed(f)
		after := timed(func() { peak.Run(turns) })
		s := sample{peak.Ops * float64(turns) / max(before, after), ops / t}
		all, best = append(all, s), max(best, s.peak)
	}
	all = slices.DeleteFunc(all, func(s sample) bool { return s.peak < 0.9*best })
	slices.SortFunc(all, func(s, t sample) int { return cmp.Compare(s.rate/s.peak, t.rate/t.peak) })
	mid := all[len(all)/2]
	b.ReportMetric(mid.rate/1e9, "GFLOP/s")
	b.ReportMetric(mid.rate/mid.peak, "ofpeak")
	b.ReportMetric(float64(len(all)), "samples")
}
