package simd

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func cpuTime() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

//go:noinline
func spin(n int) (x int) {
	for i := 0; i < n; i++ {
		x = (x ^ i) + 1
	}
	return x
}

func spinRate() float64 {
	t := time.Now()
	spin(20000)
	return 20000 / time.Since(t).Seconds()
}

// scan interleaves variants and prints medians relative to the peak around them.
func BenchmarkScan(b *testing.B) {
	peak := peakNamed(b, "amx bf16")
	runtime.LockOSThread()
	type variant struct {
		name                        string
		run, single, call, down     int
		block                       int
		rows                        bool
		knob int
	}
	for _, s := range scanShapes {
		m, n, k := s[0], s[1], s[2]
		if o := os.Getenv("ONLY"); o != "" && o != fmt.Sprintf("%dx%dx%d", m, n, k) {
			continue
		}
		r := rand.New(rand.NewPCG(1, 1))
		w := huge(b, n*k)
		copy(w, random(r, n*k, 1))
		px, pw := asBF16(huge(b, SizeBF16(m, k)/2)), asBF16(huge(b, SizeBF16(n, k)/2))
		a := View{H: asBF16(huge(b, m*(k+scanPad)/2)), Ld: k+scanPad}
		NarrowBF16(a.H, random(r, m*(k+scanPad), 1))
		PackBBF16(pw, k, n, View{X: w, Ld: k}, true, k)
		PackABF16(px, m, k, a, false)
		c := View{H: asBF16(huge(b, m*n/2)), Ld: n}
		var vs []variant
		for _, rs := range scanRuns {
			for _, rows := range scanRows {
				for _, blk := range scanBlocks {
					for _, dn := range scanDown {
						vs = append(vs, variant{fmt.Sprintf("run %d/%d rows %v block %d down %d", rs[0], rs[1], rows, blk, dn), rs[0], rs[1], 1500, dn, blk, rows, 0})
					}
				}
			}
		}
		type sample struct{ rate, spin float64 }
		res := make([][]sample, len(vs))
		var sc [64]Scratch
		var spins []float64
		end := time.Now().Add(scanTime)
		for time.Now().Before(end) {
			for i, v := range vs {
				maxRun, maxSingle, maxCall, maxDown = v.run, v.single, v.call, v.down
				scanKnob = v.knob
				for j := 0; j < m; j += v.block {
					rows := min(v.block, m-j)
					s0 := spinRate()
					t1 := cpuTime()
					if v.rows {
						GemmRowsBF16(rows, n, k, a.From(j, 0), pw, k, c.From(j, 0), false, scanFar, true, true, &sc[i])
					} else {
						GemmBF16(rows, n, k, px[SizeBF16(j, k):], pw, k, c.From(j, 0), false, scanFar, &sc[i])
					}
					d := (cpuTime() - t1).Seconds()
					s1 := min(s0, spinRate())
					spins = append(spins, s1)
					res[i] = append(res[i], sample{2 * float64(rows) * float64(n) * float64(k) / d, s1})
				}
			}
		}
		slices.Sort(spins)
		best := 2.1e9
		for i, v := range vs {
			var q, busy []float64
			for _, x := range res[i] {
				if x.spin > 0.93*best {
					q = append(q, x.rate/1e9)
				} else {
					busy = append(busy, x.rate/1e9)
				}
			}
			slices.Sort(q)
			slices.Sort(busy)
			q, busy = append(q, 0), append(busy, 0)
			fmt.Printf("%dx%dx%d %-44s idle %.0f (q75 %.0f, %d) busy %.0f (%d)\n", m, n, k, v.name, q[len(q)/2], q[len(q)*3/4], len(q), busy[len(busy)/2], len(busy))
		}
		var pk []float64
		for range 300 {
			s0 := spinRate()
			t := cpuTime()
			peak.Run(10000)
			d := (cpuTime() - t).Seconds()
			if min(s0, spinRate()) > 0.93*best {
				pk = append(pk, peak.Ops*10000/d/1e9)
			}
		}
		slices.Sort(pk)
		pk = append(pk, 0)
		fmt.Printf("%dx%dx%d run peak %.0f (%d) spin %.2g %.2g %.2g\n", m, n, k, pk[len(pk)/2], len(pk), spins[len(spins)/10], spins[len(spins)/2], best)
	}
}

var scanKnob int

var (
	scanShapes = [][3]int{ {256, 256, 512}, {256, 256, 384}, {256, 512, 768}}
	scanPad = 32
	scanRuns   = [][2]int{{16, 24}}
	scanRows   = []bool{false, true}
	scanBlocks = []int{1024}
	scanDown   = []int{8}
	scanFar    = false
	scanTime   = 1 * time.Second
)
