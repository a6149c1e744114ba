package simd

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// each runs f under every implementation that the machine has.
func each(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	before := Name()
	defer func() { cur = pick(before) }()
	for _, name := range Names() {
		if err := Use(name); err != nil {
			t.Fatal(err)
		}
		t.Run(name, f)
	}
}

func random(r *rand.Rand, n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * scale)
	}
	return x
}

// near fails unless got is within tol of want, relative to max(1,|want|).
func near(t *testing.T, what string, got, want []float32, tol float64) {
	t.Helper()
	for i := range want {
		g, w := float64(got[i]), float64(want[i])
		if math.IsNaN(w) != math.IsNaN(g) || !(math.IsNaN(w) || g == w || math.Abs(g-w) <= tol*max(1, math.Abs(w))) {
			t.Fatalf("%s: element %d of %d is %v, want %v", what, i, len(want), g, w)
		}
	}
}

func TestUse(t *testing.T) {
	if err := Use("mmx"); err == nil {
		t.Error("mmx was accepted")
	}
	if n := Names(); n[len(n)-1] != "generic" {
		t.Errorf("implementations %v do not end with generic", n)
	}
	if want := os.Getenv(Env); want != "" && Name() != want {
		t.Errorf("%s=%s picked %s", Env, want, Name())
	}
}

// lengths cover every tail and several turns of the unrolled loops.
func lengths() []int {
	n := []int{100, 127, 128, 200, 257, 1000}
	for i := range 70 {
		n = append(n, i)
	}
	return n
}

// elementwise lists the ops with one output: f runs the exported function, want the plain formula in float64.
var elementwise = []struct {
	name string
	f    func(dst, a, b, c []float32)
	want func(dst, a, b, c float64) float64
}{
	{"add", func(d, a, b, _ []float32) { Add(d, a, b) }, func(_, a, b, _ float64) float64 { return a + b }},
	{"scale", func(d, _, _, _ []float32) { Scale(d, 3) }, func(d, _, _, _ float64) float64 { return 3 * d }},
	{"axpy", func(d, a, _, _ []float32) { Axpy(d, 3, a) }, func(d, a, _, _ float64) float64 { return d + 3*a }},
	{"scaleMul", func(d, a, b, _ []float32) { ScaleMul(d, 3, a, b) },
		func(_, a, b, _ float64) float64 { return 3 * a * b }},
	{"mulAxpy", func(d, a, b, _ []float32) { MulAxpy(d, 3, a, b) },
		func(d, a, b, _ float64) float64 { return d + 3*a*b }},
	{"normGrad", func(d, a, b, c []float32) { NormGrad(d, a, b, c, 3, -2) },
		func(d, a, b, c float64) float64 { return d + 3*a*b - 2*c }},
	{"exp", func(d, a, _, _ []float32) { ExpSum(d, a, 2, 1) },
		func(_, a, _, _ float64) float64 { return math.Exp(2*a - 1) }},
	{"sigmoid", func(d, a, _, _ []float32) { Sigmoid(d, a) }, func(_, a, _, _ float64) float64 { return sigma(a) }},
	{"sigmoidGrad", func(d, a, b, _ []float32) { SigmoidGrad(d, a, b) },
		func(_, a, b, _ float64) float64 { return a * b * (1 - b) }},
	{"siluMul", func(d, a, b, _ []float32) { SiluMul(d, a, b) },
		func(_, a, b, _ float64) float64 { return a * sigma(a) * b }},
}

func sigma(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func TestElementwise(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, op := range elementwise {
			for _, n := range lengths() {
				d, a, b, c := random(r, n+1, 1), random(r, n, 1), random(r, n, 1), random(r, n, 1)
				want := make([]float32, n+1)
				for i := range n {
					want[i] = float32(op.want(float64(d[i]), float64(a[i]), float64(b[i]), float64(c[i])))
				}
				want[n] = d[n] // the element past the end stays
				op.f(d[:n], a, b, c)
				near(t, op.name, d, want, 2e-6)
			}
		}
	})
}

// Aliasing the output with the first input changes nothing.
func TestInPlace(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, op := range elementwise {
			const n = 83
			a, b, c := random(r, n, 1), random(r, n, 1), random(r, n, 1)
			dst, same := append([]float32(nil), a...), append([]float32(nil), a...)
			op.f(dst, a, b, c)
			op.f(same, same, b, c)
			near(t, op.name, same, dst, 0)
		}
	})
}

func TestSiluMulGrad(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for _, n := range lengths() {
			a, b := random(r, n, 1), random(r, n, 1)
			wa, wb := make([]float32, n), make([]float32, n)
			dy, wy, again := random(r, n, 1), make([]float32, n), make([]float32, n)
			siluMulGradGeneric(wa, wb, wy, dy, a, b)
			SiluMul(again, a, b)
			SiluMulGrad(a, b, dy, dy, a, b) // in place, as the MLP uses it
			near(t, "silu grad g", a, wa, 2e-6)
			near(t, "silu grad u", b, wb, 2e-6)
			near(t, "silu again", dy, wy, 2e-6)
			if !slices.Equal(dy, again) {
				t.Error("silu again has other bits than SiluMul")
			}
		}
	})
}

// The fused row of the backward pass is its formulas one by one.
func TestSoftmaxBackward(t *testing.T) {
	s := &SoftmaxBack{Scale: 0.5, LSE: [2]float32{1, 2}, Delta: [2]float32{0.3, -0.2},
		Alpha: [2]float32{0.7, -0.4}, Lam: -0.6}
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 9))
		for _, n := range lengths() {
			p1, p2, dp, mix := random(r, n, 1), random(r, n, 1), random(r, n, 1), make([]float32, n)
			var want [5][]float32 // P, its gradient, mix, both gradients
			for i := range n {
				e1, e2 := math.Exp(float64(p1[i])/2-1), math.Exp(float64(p2[i])/2-2)
				d1, d2 := e1*(float64(dp[i])-float64(s.Delta[0])), e2*(float64(dp[i])-float64(s.Delta[1]))
				for j, x := range []float64{e1, float64(s.Alpha[0]) * d1, e1 + float64(s.Lam)*e2,
					float64(s.Alpha[0]) * d1, float64(s.Alpha[1]) * d2} {
					want[j] = append(want[j], float32(x))
				}
			}
			one, grad := append([]float32(nil), p1...), append([]float32(nil), dp...)
			SoftmaxBackward(one, grad, s)
			SoftmaxBackward2(p1, p2, mix, dp, s)
			for j, got := range [][]float32{one, grad, mix, p1, p2} {
				near(t, "softmax backward", got, want[j], 3e-6)
			}
		}
	})
}

func TestAdamW(t *testing.T) {
	s := &AdamW{Clip: 0.5, Beta1: 0.9, Beta1c: 0.1, Beta2: 0.95, Beta2c: 0.05, Keep: 0.99, Step: 0.3, C2: 2, Eps: 1e-8}
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, n := range lengths() {
			p, m, v, g := random(r, n, 1), random(r, n, 1), random(r, n, 1), random(r, n, 1)
			square(v)
			var want [3][]float32
			for i, x := range [][]float32{p, m, v} {
				want[i] = append(want[i], x...)
			}
			adamwGeneric(want[0], want[1], want[2], g, s)
			AdamWStep(p, m, v, g, s)
			near(t, "p", p, want[0], 2e-6)
			near(t, "m", m, want[1], 1e-6)
			near(t, "v", v, want[2], 1e-6)
		}
	})
}

// Moments in the subnormal range become zero, and the processor's mode is as before.
func TestAdamWSubnormal(t *testing.T) {
	const tiny = 1e-41
	each(t, func(t *testing.T) {
		if Name() == "generic" {
			t.Skip("plain Go keeps subnormal numbers")
		}
		p, m, v, g := []float32{1}, []float32{tiny}, []float32{tiny}, []float32{0}
		AdamWStep(p, m, v, g, &AdamW{Clip: 1, Beta1: 0.9, Beta1c: 0.1, Beta2: 0.95, Beta2c: 0.05, Keep: 1, Step: 1,
			C2: 1, Eps: 1e-8})
		if p[0] != 1 || m[0] != 0 || v[0] != 0 {
			t.Errorf("p, m, v = %v, %v, %v; want 1, 0, 0", p[0], m[0], v[0])
		}
		x := []float32{tiny}
		if Scale(x, 0.5); x[0] == 0 {
			t.Error("subnormal numbers are still zero behind the step")
		}
	})
}

func TestReductions(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 10))
		for _, n := range lengths() {
			a, b, c := random(r, n, 1), random(r, n, 1), random(r, n, 1)
			var dot, dot3, sq, exp float64
			top := math.Inf(-1)
			for i := range a {
				x, y, z := float64(a[i]), float64(b[i]), float64(c[i])
				dot, dot3, sq, exp, top = dot+x*y, dot3+x*y*z, sq+x*x, exp+math.Exp(x-4), max(top, x-4)
			}
			near(t, "dot", []float32{Dot(a, b), Dot3(a, b, c)}, []float32{float32(dot), float32(dot3)}, 1e-5)
			if got := SumSquares(a); !(math.Abs(got-sq) <= 1e-12*sq) {
				t.Fatalf("sum of squares of %d: %v, want %v", n, got, sq)
			}
			sum := ExpSum(b, a, 1, 4)
			near(t, "exp sum", []float32{sum}, []float32{float32(exp)}, 1e-6)
			for i := range a {
				a[i] -= 4 // all negative: zeros of the masked lanes must not win
			}
			near(t, "max", []float32{Max(a)}, []float32{float32(top)}, 1e-6)
		}
	})
}

func TestExp(t *testing.T) {
	inf := float32(math.Inf(1))
	each(t, func(t *testing.T) {
		var worst float64
		x := make([]float32, 37)
		y := make([]float32, len(x))
		for lo := -88.0; lo < 88.8; lo += 0.01 {
			for i := range x {
				x[i] = float32(lo + 0.0002*float64(i))
			}
			ExpSum(y, x, 1, 0)
			for i, e := range y {
				want := math.Exp(float64(x[i]))
				if want < 1.18e-38 || want > math.MaxFloat32 {
					continue
				}
				ulp := float64(math.Nextafter32(float32(want), inf)) - float64(float32(want))
				worst = max(worst, math.Abs(float64(e)-want)/ulp)
			}
		}
		if worst > 2 {
			t.Errorf("exp is off by %.2f ulp", worst)
		}
		t.Logf("exp is within %.2f ulp", worst)
		odd := []float32{-inf, inf, float32(math.NaN()), -1e30, 1e30, -104, 0, 89}
		ExpSum(y[:len(odd)], odd, 1, 0)
		near(t, "odd", y, []float32{0, inf, float32(math.NaN()), 0, inf, 0, 1, inf}, 0)
	})
}

func TestSigmoid(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	each(t, func(t *testing.T) {
		var worst float64
		x, y := make([]float32, 37), make([]float32, 37)
		for lo := -87.0; lo < 88; lo += 0.01 {
			for i := range x {
				x[i] = float32(lo + 0.0002*float64(i))
			}
			Sigmoid(y, x)
			for i, s := range y {
				want := sigma(float64(x[i]))
				ulp := float64(math.Nextafter32(float32(want), inf)) - float64(float32(want))
				worst = max(worst, math.Abs(float64(s)-want)/ulp)
			}
		}
		if worst > 3 {
			t.Errorf("the sigmoid is off by %.2f ulp", worst)
		}
		t.Logf("the sigmoid is within %.2f ulp", worst)
		odd := []float32{-inf, -1e30, -100, -89, 0, 89, 100, 1e30, inf, nan}
		ones := slices.Repeat([]float32{1}, len(odd))
		dg, du, z := make([]float32, len(odd)), make([]float32, len(odd)), make([]float32, len(odd))
		Sigmoid(y[:len(odd)], odd)
		near(t, "odd", y, []float32{0, 0, 0, 0, 0.5, 1, 1, 1, 1, nan}, 0)
		SiluMul(z, odd, ones)
		near(t, "odd silu", z, []float32{nan, 0, 0, 0, 0, 89, 100, 1e30, inf, nan}, 0)
		SiluMulGrad(dg, du, z, ones, odd, ones)
		near(t, "odd silu grad g", dg, []float32{nan, 0, 0, 0, 0.5, 1, 1, 1, nan, nan}, 0)
		near(t, "odd silu grad u", du, z, 0)
	})
}

func TestRoundBF16(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 12))
		x := []float32{0, float32(math.Inf(1)), float32(math.Inf(-1)), math.Float32frombits(0x7F800001),
			math.Float32frombits(0xFFFFFFFF), math.MaxFloat32}
		for range 1000 {
			x = append(x, math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32()<<15))
		}
		want, got := make([]float32, len(x)), make([]float32, len(x))
		roundBF16Generic(want, x)
		RoundBF16(got, x)
		for i := range got {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Fatalf("%x rounds to %x, want %x", math.Float32bits(x[i]), math.Float32bits(got[i]),
					math.Float32bits(want[i]))
			}
		}
	})
}

// square makes numbers such as second moments.
func square(x []float32) {
	for i := range x {
		x[i] *= x[i]
	}
}
