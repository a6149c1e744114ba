// Package quiet times a kernel on a busy machine: alternating with a loop of known speed, in the thread's own CPU time,
// keeping the samples around which that loop ran undisturbed. It is for benchmarks only.
package quiet

import (
	"cmp"
	"runtime"
	"slices"
	"testing"
)

// Loop is a loop that runs at the machine's peak: Ops operations per iteration.
type Loop struct {
	Ops float64
	Run func(turns int)
}

// Time times f, which makes this many operations, alternating with a loop of about the same length on one thread. It
// keeps the samples around which the loop was near its best, because another process on the same core slows some
// kernels more than others, and reports their medians: rate, and share of the loop's.
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
