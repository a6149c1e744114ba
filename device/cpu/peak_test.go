package cpu

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/internal/simd"
)

func TestPeak(t *testing.T) {
	for _, name := range Peaks() {
		// 12 scalars a cycle.
		if r, err := Peak(name, 2, time.Millisecond); err != nil || !(r > 0) || name == "go fp32" && r > 2*60e9 {
			t.Errorf("peak of %s: %v, %v", name, r, err)
		}
	}
	if _, err := Peak("mmx", 1, 0); err == nil {
		t.Error("mmx has a peak")
	}
	for _, bytes := range []int{0, 1 << 20} { // no first level of a cache gives two terabytes a second
		if r := ReadBandwidth(bytes, 2, time.Millisecond); !(r > 0 && r < 2*2e12) {
			t.Errorf("read bandwidth of %d bytes: %v", bytes, r)
		}
	}
}

// ceilings are the loops of the instructions that multiply float32 and bfloat16: sets that widen bfloat16 have those of
// float32.
var ceilings = map[string][2]string{
	"amx": {"avx512 fp32", "amx bf16"}, "avx512bf16": {"avx512 fp32", "avx512 fp32"},
	"avx512": {"avx512 fp32", "avx512 fp32"}, "avxvnni": {"avx2 fp32", "avx2 fp32"},
	"avx2": {"avx2 fp32", "avx2 fp32"}, "neonbf16": {"neon fp32", "neon bf16"}, "neon": {"neon fp32", "neon fp32"},
	"generic": {"go fp32", "go fp32"},
}

// Whatever implementation is in use, its ceiling is a loop of its own instructions.
func TestPeakOf(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, p := range []Precision{FP32, BF16, Int8} {
			name := PeakOf(p)
			if !slices.Contains(Peaks(), name) {
				t.Errorf("the ceiling of %s at %s is %q, which is none of %q", simd.Name(), p, name, Peaks())
			}
			if want := ceilings[simd.Name()]; p != Int8 && name != want[p] {
				t.Errorf("the ceiling of %s at %s is %q, want %q", simd.Name(), p, name, want[p])
			}
			if p == Int8 && simd.Name() != "generic" && !strings.HasSuffix(name, " int8") {
				t.Errorf("the ceiling of int8 with %s is %q", simd.Name(), name)
			}
			if p == FP32 && !strings.HasSuffix(name, " fp32") {
				t.Errorf("the ceiling of float32 with %s is %q", simd.Name(), name)
			}
			if set, _, _ := strings.Cut(name, " "); p == FP32 && simd.Name() != "amx" && simd.Name() != "avxvnni" &&
				simd.Name() != "generic" && !strings.HasPrefix(simd.Name(), set) {
				t.Errorf("the ceiling of %s is %q", simd.Name(), name)
			}
		}
	})
}

// More threads than processors are not faster than the processors, and do not spend minutes waiting for each other.
func TestPeakManyThreads(t *testing.T) {
	const each, long = 50 * time.Microsecond, 40 * time.Millisecond
	most, begin := runtime.GOMAXPROCS(0), time.Now()
	rate := together(16*most, long, func(int) float64 {
		for begin := time.Now(); time.Since(begin) < each; {
		}
		return each.Seconds()
	})
	if rate > 1.5*float64(most) {
		t.Errorf("%d threads on %d processors worked %.1f seconds a second", 16*most, most, rate)
	}
	if !(rate > 1e-6) || time.Since(begin) < long {
		t.Errorf("measured %g for %v", rate, time.Since(begin))
	}
	t.Logf("%.2f of %d processors, measured in %v", rate, most, time.Since(begin))
}

// BenchmarkPeak prints the machine's limits.
func BenchmarkPeak(b *testing.B) {
	const long = 100 * time.Millisecond
	for _, threads := range []int{1, 2} {
		for _, name := range Peaks() {
			b.Run(fmt.Sprintf("%s/%d", name, threads), func(b *testing.B) {
				for range b.N {
					r, _ := Peak(name, threads, long)
					b.ReportMetric(r/1e9, "GFLOP/s")
				}
			})
		}
		for _, mib := range []int{1, 32, 1024} {
			b.Run(fmt.Sprintf("read %d MiB/%d", mib, threads), func(b *testing.B) {
				for range b.N {
					b.ReportMetric(ReadBandwidth(mib<<20, threads, long)/1e9, "GB/s")
				}
			})
		}
	}
}
