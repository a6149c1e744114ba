//go:build !purego

package simd

import "golang.org/x/sys/cpu"

func peaks() []PeakLoop {
	out := []PeakLoop{{"neon fp32", 24 * 4 * 2, peakFMANEON}, {"neon int8", 24 * 4 * 2, peakSMLALNEON}}
	if hasBF16() {
		out = append(out, PeakLoop{"neon bf16", 24 * 16 * 2, peakBFMMLANEON})
	}
	if cpu.ARM64.HasASIMDDP {
		out = append(out, PeakLoop{"sdot int8", 24 * 16 / 2 * 2, peakSDOTNEON})
	}
	if hasI8MM() {
		out = append(out, PeakLoop{"smmla int8", 24 * 32 / 2 * 2, peakSMMLANEON})
	}
	return out
}

func read(x []float32) { readMemoryNEON(&x[0], 4*len(x)) }

func fetch(at uintptr) { fetchNEON(at) }

func peakFMANEON(n int)

func peakSMLALNEON(n int)

func peakSDOTNEON(n int)

func peakSMMLANEON(n int)

func peakBFMMLANEON(n int)

//go:noescape
func readMemoryNEON(p *float32, n int)

func fetchNEON(at uintptr)
