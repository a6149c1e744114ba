package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/internal/quiet"
)

// wholes are the whole numbers that stand for a row, from −top to top, and their scale.
func wholes(row []float32, top float32) (q []int64, scale float32) {
	var most float32
	for _, x := range row {
		most = max(most, x, -x)
	}
	for _, x := range row {
		q = append(q, int64(math.RoundToEven(float64(x*(top/most)))))
	}
	return q, most / top
}

// exactInt8 is y of x [m,k] and w [n,k] by their definition, rows ldc apart in c.
func exactInt8(m, n, k int, x, w, c []float32, ldc int) {
	q, scales := make([][]int64, n), make([]float32, n)
	for j := range n {
		q[j], scales[j] = wholes(w[j*k:][:k], 127)
	}
	for i := range m {
		v, s := wholes(x[i*k:][:k], 32767)
		for j := range n {
			var t int64
			for p, v := range v {
				t += q[j][p] * v
			}
			c[i*ldc+j] = float32((float32(t>>8)*256+float32(t&255))*scales[j]) * s
		}
	}
}

// packInt8 packs both operands.
func packInt8(m, n, k int, x, w []float32, s *Scratch) (*RowsInt8, *ColumnsInt8) {
	rows, columns := MakeRowsInt8(m, k, make([]float32, SizeRowsInt8(m, k)+1)[1:]),
		MakeColumnsInt8(n, k, make([]float32, SizeInt8(n, k)+1)[1:])
	rows.Pack(0, m, x, k, s)
	columns.Pack(0, n, w, k)
	return &rows, &columns
}

// A product is exact up to the rounding of its result, bit for bit, in every implementation, for few rows and many, odd
// sizes, any alignment, near and around the caches; and it is near the product that was meant.
func TestGemmInt8(t *testing.T) {
	truth := map[[3]int][]float32{} // every implementation gets the same operands
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 8))
		var s Scratch
		for _, sh := range [][3]int{{1, 1, 1}, {2, 5, 0}, {1, 64, 96}, {3, 70, 300}, {1, 600, 160}, {1, 256, 64},
			{2, 200, 130}, {3, 128, 64}, {4, 31, 40},
			{5, 33, 65}, {16, 32, 64}, {17, 100, 600}, {40, 64, 128}, {33, 96, 2000}, {70, 33, 1900}, {300, 65, 70},
			{256, 420, 700}} {
			m, n, k := sh[0], sh[1], sh[2]
			x, w := random(r, m*k+1, 1)[1:], random(r, n*k+1, 0.3)[1:]
			rows, pw := packInt8(m, n, k, x, w, &s)
			exact := truth[sh]
			if exact == nil {
				exact = make([]float32, m*n)
				exactInt8(m, n, k, x, w, exact, n)
				truth[sh] = exact
			}
			for i := range min(m, 20) {
				for j := range n {
					var sum float64
					for p := range k {
						sum += float64(x[i*k+p]) * float64(w[j*k+p])
					}
					if d := math.Abs(sum - float64(exact[i*n+j])); d > 0.014*math.Sqrt(float64(k)) {
						t.Fatalf("%v: y[%d,%d] is %v from %v", sh, i, j, d, sum)
					}
				}
			}
			for _, ldc := range []int{n + 3, (n + 15) &^ 15} {
				start := random(r, m*ldc+1, 1)
				want := slices.Clone(start[1:])
				for i := range m {
					copy(want[i*ldc:][:n], exact[i*n:])
				}
				c := append(Aligned(m*ldc + 1)[:0], start...)
				GemmInt8(rows, pw, 0, n, c[1:], ldc, false, &s)
				near(t, fmt.Sprint("near ", sh), c[1:], want, 0)
				copy(c, start[1:])
				GemmInt8(rows, pw, 0, n, c, ldc, true, &s)
				near(t, fmt.Sprint("far ", sh), c[:m*ldc], want, 0)
			}
		}
	})
}

// A row has the bits that it has alone, wherever it is and whichever columns are asked for.
func TestInt8Alone(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 8))
		const m, n, k = 50, 200, 700
		var s Scratch
		x, w := random(r, m*k, 1), random(r, n*k, 1)
		rows, pw := packInt8(m, n, k, x, w, &s)
		whole, one, part := make([]float32, m*n), make([]float32, n), make([]float32, m*n)
		GemmInt8(rows, pw, 0, n, whole, n, false, &s)
		for i := range m {
			alone, _ := packInt8(1, 0, k, x[i*k:], nil, &s)
			GemmInt8(alone, pw, 0, n, one, n, false, &s)
			near(t, "alone", one, whole[i*n:][:n], 0)
		}
		GemmInt8(rows, pw, 64, n-64, part[64:], n, false, &s)
		for i := range m {
			near(t, "part", part[i*n+64:][:n-64], whole[i*n+64:][:n-64], 0)
		}
	})
}

// Sums of the longest rows of the largest numbers do not overflow.
func TestInt8Extremes(t *testing.T) {
	each(t, func(t *testing.T) {
		const k = MaxKInt8
		var s Scratch
		for _, m := range []int{1, 5} {
			x, w, n := make([]float32, m*k), make([]float32, 2*k), 2
			for i := range x {
				x[i] = []float32{1, -1, -1.0 / 32767, 255.0 / 32767, -256.0 / 32767}[i/k]
			}
			x[2*k%len(x)] = 1
			for p := range k {
				w[p], w[k+p] = 1, -1
			}
			rows, pw := packInt8(m, n, k, x, w, &s)
			got, want := make([]float32, m*n), make([]float32, m*n)
			GemmInt8(rows, pw, 0, n, got, n, false, &s)
			exactInt8(m, n, k, x, w, want, n)
			near(t, "extremes", got, want, 0)
			if math.Abs(float64(got[0])-k) > 1 {
				t.Errorf("the sum of %d ones is %v", k, got[0])
			}
		}
	})
}

// Zeros stay zero, one huge element hides the others, numbers next to nothing are 0, and what is not finite makes its
// row or column NaN and no other.
func TestInt8Odd(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		const n, k = 40, 70
		for _, m := range []int{3, 20} {
			var s Scratch
			x, w := random(r, m*k, 1), random(r, n*k, 1)
			set := func(a []float32, row int, y ...float32) { clear(a[row*k : (row+1)*k]); copy(a[row*k:], y) }
			set(x, 0)
			x[k+69] = 1e30
			set(x, 2, 1e-33, -1e-33)
			set(w, 3)
			w[4*k+1], w[5*k+2] = inf, nan
			set(w, 6, 1e-40)
			if m > 3 {
				x[3*k+5], x[4*k+69], x[5*k], x[6*k+68] = nan, inf, -inf, math.Float32frombits(0xFFFFFFFF)
			}
			rows, pw := packInt8(m, n, k, x, w, &s)
			c := make([]float32, m*n)
			GemmInt8(rows, pw, 0, n, c, n, false, &s)
			for i := range m {
				for j := range n {
					y, bad := c[i*n+j], j == 4 || j == 5 || i >= 3 && i <= 6
					if bad != (y != y) || !bad && (i == 0 || i == 2 || j == 3 || j == 6) && y != 0 {
						t.Errorf("%d rows: y[%d,%d] = %v", m, i, j, y)
					}
					if want := w[j*k+69] * 1e30; i == 1 && !bad && j != 3 && j != 6 &&
						math.Abs(float64(y-want)) > 0.02e30 {
						t.Errorf("%d rows: y[1,%d] = %v, want about %v", m, j, y, want)
					}
				}
			}
		}
	})
}

// Bytes are as near to the weights as a scale for each row allows.
func TestPackInt8(t *testing.T) {
	const n, k = 40, 70
	r := rand.New(rand.NewPCG(2, 8))
	w := random(r, n*k, 1)
	_, pw := packInt8(0, n, k, nil, w, nil)
	for j := range n {
		panel, head := pw.panel(j/32), pw.head[j/32*headInt8:]
		scale, sum := float64(head[j%32]), int32(0)
		for p := range k {
			q := panel[p/64*2048+j%32/16*1024+p%64/4*64+j%16*4+p%4]
			sum += int32(q)
			if d := math.Abs(float64(q)*scale - float64(w[j*k+p])); d > 0.5001*scale {
				t.Fatalf("w[%d,%d] = %v became %v", j, p, w[j*k+p], float64(q)*scale)
			}
		}
		if got := int32(math.Float32bits(head[32+j%32])); got != -128*sum {
			t.Errorf("column %d has the sum %d, not %d", j, got, -128*sum)
		}
	}
}

// Products allocate nothing.
func TestInt8Allocs(t *testing.T) {
	each(t, func(t *testing.T) {
		const m, n, k = 20, 70, 100
		r := rand.New(rand.NewPCG(9, 8))
		var s Scratch
		s.ReserveInt8()
		x, c := random(r, m*k, 1), make([]float32, m*n)
		rows, pw := packInt8(m, n, k, x, random(r, n*k, 1), &s)
		alone, _ := packInt8(1, 0, k, x, nil, &s)
		if a := testing.AllocsPerRun(10, func() {
			rows.Pack(0, m, x, k, &s)
			GemmInt8(rows, pw, 0, n, c, n, false, &s)
			GemmInt8(alone, pw, 0, n, c, n, false, &s)
		}); a != 0 {
			t.Errorf("%v allocations", a)
		}
	})
}

// BenchmarkDecode times the product of one row, or of few with bytes, with 256 MiB of weights against reading as many
// bytes: GB/s, and the share of the read loop's.
func BenchmarkDecode(b *testing.B) {
	const n, k = 32768, 2048
	const fit = 4 * n / 33 * 32 // columns of bytes, so that heads have room too
	x, memory := huge(b, 16*k), huge(b, n*k)
	y := make([]float32, 16*fit)
	var s Scratch
	run := func(name string, bytes float64, f func()) {
		b.Run(name, func(b *testing.B) {
			read := quiet.Loop{Ops: 4 * n * k / 64, Run: func(turns int) { ReadLoop(memory[:turns*n*k/64]) }}
			quiet.Time(b, read, bytes, f)
		})
	}
	run("f32", 4*n*k, func() { GemmSkinny(1, n, k, x, k, memory, k, y, n, false, &s) })
	run("bf16", 4*n*k, func() { GemmFewBF16(1, 2*n, k, x, k, asBF16(memory), y, n, false, &s) })
	w := MakeColumnsInt8(fit, k, memory)
	for _, m := range []int{1, 2, 3, 4, 16} {
		rows, _ := packInt8(m, 0, k, x, nil, &s)
		run(fmt.Sprintf("int8/%d", m), fit*k, func() { GemmInt8(rows, &w, 0, fit, y, fit, false, &s) })
	}
}

// BenchmarkPrompt times products of many rows with packed weights against the tile unit's peak on bfloat16, which has
// the same number of products to make.
func BenchmarkPrompt(b *testing.B) {
	i := slices.IndexFunc(Peaks(), func(p PeakLoop) bool { return p.Name == "amx bf16" })
	if i < 0 {
		b.Skip("no AMX here")
	}
	peak := Peaks()[i]
	for _, sh := range [][3]int{{512, 768, 768}, {512, 3072, 768}, {512, 768, 2048}} {
		m, n, k := sh[0], sh[1], sh[2]
		var s Scratch
		x := huge(b, m*k)
		y := huge(b, m*n)
		rows, w := MakeRowsInt8(m, k, huge(b, SizeRowsInt8(m, k))), MakeColumnsInt8(n, k, huge(b, SizeInt8(n, k)))
		w.Pack(0, n, huge(b, n*k), k)
		rows.Pack(0, m, x, k, &s)
		ops := 2 * float64(m) * float64(n) * float64(k)
		for _, far := range []bool{false, true} {
			b.Run(fmt.Sprintf("%dx%dx%d/far=%v", m, n, k, far), func(b *testing.B) {
				quiet.Time(b, quiet.Loop{Ops: peak.Ops, Run: peak.Run}, ops,
					func() { GemmInt8(&rows, &w, 0, n, y, n, far, &s) })
			})
		}
		b.Run(fmt.Sprintf("%dx%dx%d/pack", m, n, k), func(b *testing.B) {
			quiet.Time(b, quiet.Loop{Ops: peak.Ops, Run: peak.Run}, ops, func() {
				rows.Pack(0, m, x, k, &s)
				GemmInt8(&rows, &w, 0, n, y, n, true, &s)
			})
		})
	}
}
