//go:build !purego

package simd

import "golang.org/x/sys/cpu"

func peaks() []PeakLoop {
	out := []PeakLoop{{"neon fp32", 24 * 4 * 2, peakFMANEON}}
	if hasBF16() {
		out = append(out, PeakLoop{"neon bf16", 24 * 16 * 2, peakBFMMLANEON})
	}
	if cpu.ARM64.HasASIMDDP {
		out = append(out, PeakLoop{"neon int8", 24 * 16 * 2, peakSDOTNEON})
	}
	return out
}

func read(x []float32) { readMemoryNEON(&x[0], 4*len(x)) }

func fetch(at uintptr) { fetchNEON(at) }

func peakFMANEON(n int)

func peakSDOTNEON(n int)

func peakBFMMLANEON(n int)

//go:noescape
func readMemoryNEON(p *float32, n int)

func fetchNEON(at uintptr)
