package simd

import (
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// stressEnv is a duration: how long TestStress runs, instead of a moment.
const stressEnv = "ANTIPHASE_STRESS"

// TestStress multiplies on many more goroutines than there are processors, while garbage is collected all the time,
// goroutines are preempted by signals and move between threads: tiles are a thread's own and must survive all of it.
// Every product must have the bits that it has in peace.
func TestStress(t *testing.T) {
	long := 300 * time.Millisecond
	if s := os.Getenv(stressEnv); s != "" {
		var err error
		if long, err = time.ParseDuration(s); err != nil {
			t.Fatalf("%s: %v", stressEnv, err)
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.NumCPU())))
	var products, wrong, stop atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 * runtime.GOMAXPROCS(0) {
		work := stressProducts
		switch i % 4 {
		case 0:
			work = stressAttention
		case 1:
			work = stressInt8
		case 2:
			work = stressFew
		}
		wg.Go(func() { work(uint64(i), &products, &wrong, &stop) })
	}
	for range 4 {
		wg.Go(func() { // garbage, and loops that only a signal can preempt
			for x := uint32(1); stop.Load() == 0; {
				keep := make([][]byte, 64)
				for j := range keep {
					keep[j] = make([]byte, 4096)
				}
				for range 100000 {
					x = x*1664525 + 1013904223
				}
				runtime.KeepAlive(keep)
			}
		})
	}
	begin := time.Now()
	// Beside other work and in emulation a first product may take longer than that.
	for time.Since(begin) < long || products.Load() == 0 && time.Since(begin) < time.Minute {
		signalAll()
		time.Sleep(200 * time.Microsecond)
	}
	stop.Store(1)
	wg.Wait()
	if wrong.Load() > 0 || products.Load() == 0 {
		t.Errorf("%d of %d products of %s are wrong", wrong.Load(), products.Load(), Name())
	}
	t.Logf("%d products of %s", products.Load(), Name())
}

// stressAttention repeats one meeting of queries with keys and values, which holds tiles through its softmax, and
// compares with the first, whose numbers TestAttnForward checks.
func stressAttention(seed uint64, products, wrong, stop *atomic.Int64) {
	const rows, cols, d, dv, maps = 64, 128, 64, 128, 2
	r := rand.New(rand.NewPCG(seed, 8))
	var s Scratch
	var tile AttnTile
	x := AttnRows{Maps: maps, Rows: rows, Used: rows, Cols: cols, D: d, DV: dv, StrideV: SizeBF16(32, cols),
		Scale: 0.3, First: true, Top: make([]float32, maps*rows), Sum: make([]float32, maps*rows),
		Acc: make([]float32, maps*rows*dv),
		Lo:  make([]int32, rows), Hi: make([]int32, rows), Live: slices.Repeat([]int32{cols / 32}, rows/32)}
	x.Q, _ = packedA(r, maps*rows, d)
	x.K[0], _ = packedB(r, cols, d)
	x.K[1], _ = packedB(r, cols, d)
	x.V, _ = packedB(r, dv, cols)
	var want []float32
	for stop.Load() == 0 {
		for i := range x.Top {
			x.Top[i], x.Sum[i] = float32(math.Inf(-1)), 0
		}
		tile.Forward(&x, &s)
		products.Add(1)
		if want == nil {
			want = slices.Concat(x.Acc, x.Top, x.Sum)
		}
		if !slices.Equal(slices.Concat(x.Acc, x.Top, x.Sum), want) {
			wrong.Add(1)
		}
		clear(x.Acc)
	}
}

// stressInt8 repeats a product of bytes, whose sums may be put aside between runs of k, and compares with the same
// without tiles.
func stressInt8(seed uint64, products, wrong, stop *atomic.Int64) {
	r := rand.New(rand.NewPCG(seed, 9))
	m, n, k := 20+r.IntN(100), 20+r.IntN(100), 1+r.IntN(2400)
	var s Scratch
	x, w := packInt8(m, n, k, random(r, m*k, 1), random(r, n*k, 1), &s)
	want, got := make([]float32, m*n), make([]float32, m*n)
	g := gemmInt8{&cur.bytes, x, w, m, 0, n, upInt8(k), want, n, false, &s}
	g.panels()
	stressAgain(products, wrong, stop, got, want, func() { GemmInt8(x, w, 0, n, got, n, false, &s) })
}

// stressAgain repeats a product until stop and counts those that are not as wanted.
func stressAgain(products, wrong, stop *atomic.Int64, got, want []float32, product func()) {
	for stop.Load() == 0 {
		product()
		products.Add(1)
		if !slices.Equal(got, want) {
			wrong.Add(1)
		}
		clear(got)
	}
}

// stressProducts repeats one product of its own and compares.
func stressProducts(seed uint64, products, wrong, stop *atomic.Int64) {
	r := rand.New(rand.NewPCG(seed, 7))
	m, n, k := 20+r.IntN(100), 20+r.IntN(100), 1+r.IntN(1200)
	var s Scratch
	pa, pb := make([]uint16, SizeBF16(m, k)), make([]uint16, SizeBF16(n, k))
	PackABF16(pa, m, k, View{X: random(r, m*k, 1), Ld: k}, false)
	PackBBF16(pb, k, n, View{X: random(r, n*k, 1), Ld: k}, true, k)
	want, got := make([]float32, m*n), make([]float32, m*n)
	if FewBF16() > 0 { // the same sums without tiles
		g := gemmBF16{&cur.bf16Kernels, m, n, up32(k) / 32, pa, pb, SizeBF16(32, k), SizeBF16(32, k), want, n, false,
			&s, false, true, true, 0, nil}
		productFew(&g)
	} else {
		GemmBF16(m, n, k, pa, pb, k, View{X: want, Ld: n}, false, false, &s)
	}
	stressAgain(products, wrong, stop, got, want, func() {
		GemmBF16(m, n, k, pa, pb, k, View{X: got, Ld: n}, false, false, &s)
	})
}
