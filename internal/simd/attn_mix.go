package simd

import "fmt"

// floatLine is the number of elements that mixNorm and normBackFloat do at a time.
const floatLine = 32

// MixNorm is the end of rows of differential attention with a head norm: with the sums of both maps,
//
//	raw = F1·Acc1 + F2·Acc2,  Out2 = Back·Acc2,  rstd = 1/√(mean raw² + Eps),  Out = Scale·Weight·raw·rstd.
type MixNorm struct {
	Rows, Cols     int
	Acc            [2][]float32 // [Rows, Cols], rows Ld apart; overwritten
	Ld             int
	F              [2][]float32 // [Rows]
	Back           []float32    // [Rows]
	Raw, Out2, Out View         // Raw and Out2 may be absent
	Weight         []float32
	Rstd           []float32 // of each row, LdRstd apart
	LdRstd         int
	Eps, Scale     float32
	Far            bool // outputs are parts of matrices larger than the caches
}

// MixNorm runs x.
func (t *AttnTile) MixNorm(x *MixNorm) {
	n, last := x.Cols, x.Rows-1
	ok := x.Rows > 0 && n > 0 && len(x.Acc[0]) >= last*x.Ld+n && len(x.Acc[1]) >= last*x.Ld+n && len(x.Weight) >= n &&
		min(len(x.F[0]), len(x.F[1]), len(x.Back)) >= x.Rows && len(x.Rstd) > last*x.LdRstd
	for _, v := range []*View{&x.Raw, &x.Out2, &x.Out} {
		ok = ok && (v.size() == 0 && v != &x.Out || v.size() >= last*v.Ld+n)
	}
	if !ok {
		panic(fmt.Sprintf("simd: mix and norm of %d×%d: operands too short", x.Rows, n))
	}
	if cur.mixNorm == nil || x.Out.X == nil || n%floatLine != 0 {
		t.mixNorm(x)
		return
	}
	raw, out2 := x.Raw, x.Out2 // if they are not wanted, back into acc
	if raw.X == nil {
		raw = View{X: x.Acc[0], Ld: x.Ld}
	}
	if out2.X == nil {
		out2 = View{X: x.Acc[1], Ld: x.Ld}
	}
	t.mix = mixNormArgs{acc: [2]*float32{&x.Acc[0][0], &x.Acc[1][0]},
		factor: [3]*float32{&x.F[0][0], &x.F[1][0], &x.Back[0]}, raw: &raw.X[0], out: &x.Out.X[0], out2: &out2.X[0],
		weight: &x.Weight[0], rstd: &x.Rstd[0],
		ldacc: 4 * x.Ld, ldRaw: 4 * raw.Ld, ldOut: 4 * x.Out.Ld, ldOut2: 4 * out2.Ld, ldRstd: 4 * x.LdRstd,
		rows: x.Rows, lines: n / floatLine, mean: 1 / float32(n), eps: x.Eps, scale: x.Scale}
	cur.mixNorm(&t.mix)
}

// mixNorm is MixNorm in parts.
func (t *AttnTile) mixNorm(x *MixNorm) {
	n := x.Cols
	reserveOnes(&t.ones, x.Rows)
	t.JoinRows(x.Acc[0], x.Ld, x.Acc[1], x.Ld, x.Rows, n, x.F[0], x.F[1])
	if x.Out2.size() > 0 {
		t.ScaleRows(x.Out2, x.Acc[1], x.Ld, x.Rows, n, x.Back, x.Far)
	}
	if x.Raw.size() > 0 {
		t.ScaleRows(x.Raw, x.Acc[0], x.Ld, x.Rows, n, t.ones, x.Far)
	}
	t.NormRows(x.Acc[0], x.Ld, x.Rows, n, x.Weight, x.Rstd, x.LdRstd, x.Eps, x.Scale)
	t.ScaleRows(x.Out, x.Acc[0], x.Ld, x.Rows, n, t.ones, x.Far)
}

// reserveOnes makes at least n factors of 1.
func reserveOnes(ones *[]float32, n int) {
	for len(*ones) < n {
		*ones = append(*ones, 1)
	}
}
