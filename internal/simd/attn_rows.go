package simd

import (
	"fmt"
	"math"
)

// rowKernels process rows after the forward pass and before the backward pass. They may be absent.
type rowKernels struct {
	dots     func(*dotsArgs)
	logSums  func(top, sum *float32, n int)
	normRows func(*normRowsArgs)
	normBack func(*normBackArgs)
}

// Dots: dst[r] = Σ_c x(r,c)·y(r,c).
func (t *AttnTile) Dots(dst []float32, x, y View, rows, cols int) {
	if rows == 0 || cols == 0 {
		clear(dst[:rows])
		return
	}
	if len(dst) < rows || x.size() < (rows-1)*x.Ld+cols || y.size() < (rows-1)*y.Ld+cols {
		panic(fmt.Sprintf("simd: dots of %d×%d in %d (ld %d) and %d (ld %d) elements", rows, cols, x.size(), x.Ld,
			y.size(), y.Ld))
	}
	r := 0
	if groups := rows / tileBF16; cur.dots != nil && groups > 0 && x.H != nil && y.H != nil && cols%PanelBF16 == 0 {
		t.dots = dotsArgs{&dst[0], &x.H[0], &y.H[0], 2 * x.Ld, 2 * y.Ld, groups, cols / PanelBF16}
		cur.dots(&t.dots)
		r = groups * tileBF16
	}
	buf := Grow(&t.room, 2*cols)
	for ; r < rows; r++ {
		dst[r] = Dot(x.wide(r, cols, buf), y.wide(r, cols, buf[cols:]))
	}
}

// wide is row r in float32: in place, or widened into buf.
func (v *View) wide(r, cols int, buf []float32) []float32 {
	if v.H == nil {
		return v.X[r*v.Ld:][:cols]
	}
	WidenBF16(buf[:cols], v.H[r*v.Ld:][:cols])
	return buf[:cols]
}

// LogSums: top[i] += log sum[i], sum[i] = 1/sum[i].
func LogSums(top, sum []float32) {
	if len(top) == 0 {
		return
	}
	if cur.logSums != nil {
		cur.logSums(&top[0], &sum[:len(top)][0], len(top))
		return
	}
	for i, x := range sum[:len(top)] {
		top[i] += float32(logOf(x))
		sum[i] = 1 / x
	}
}

// logOf is log x of a normal number to float32's precision, for less than math.Log's time: x = 2^e·m with m near 1, and
// with s = (m−1)/(m+1) log m = 2·(s + s³/3 + s⁵/5 + …), |s| < 0.172.
func logOf(x float32) float64 {
	const half = 0x3F3504F3 // √½: where m begins
	bits := int32(math.Float32bits(x))
	if bits < 0x00800000 || bits >= 0x7F800000 {
		return math.Log(float64(x))
	}
	e := (bits - half) >> 23
	m := float64(math.Float32frombits(uint32(bits - e<<23)))
	s := (m - 1) / (m + 1)
	q := s * s
	return float64(e)*math.Ln2 + 2*s*(1+q*(1.0/3+q*(1.0/5+q*(1.0/7+q*(1.0/9+q*(1.0/11))))))
}

// NormRows: x(r,c) = scale·weight[c]·x(r,c)·rstd(r), rstd(r) = 1/√(mean_c x(r,c)² + eps). rstd(r) is kept in
// rstd[r·ldRstd].
func (t *AttnTile) NormRows(x []float32, ld, rows, cols int, weight, rstd []float32, ldRstd int, eps, scale float32) {
	if rows <= 0 || cols <= 0 || len(x) < (rows-1)*ld+cols || len(weight) < cols || len(rstd) <= (rows-1)*ldRstd {
		panic(fmt.Sprintf("simd: norm of %d×%d in %d (ld %d), %d and %d (ld %d) elements", rows, cols, len(x), ld,
			len(weight), len(rstd), ldRstd))
	}
	if cur.normRows != nil && cols%tileBF16 == 0 {
		t.normed = normRowsArgs{&x[0], &weight[0], &rstd[0], 4 * ld, 4 * ldRstd, rows, cols / tileBF16,
			1 / float32(cols), eps, scale}
		cur.normRows(&t.normed)
		return
	}
	for r := range rows {
		row := x[r*ld:][:cols]
		s := float32(1 / math.Sqrt(SumSquares(row)/float64(cols)+float64(eps)))
		rstd[r*ldRstd] = s
		ScaleMul(row, s*scale, row, weight[:cols])
	}
}

// NormBack is the backward pass of out = Scale·w·raw·rstd, rstd = 1/√(mean raw² + ε): with g = Scale·w·dout and x̂ =
// raw·rstd,
//
//	do = rstd·(g − x̂·mean(g·x̂)),  DNorm += Scale·dout·x̂,  Delta = do·raw, do·out2 of each row.
type NormBack struct {
	Rows, Cols    int
	DO, DOut, Raw View // DO is rounded if it is bfloat16, after everything else
	Out2          View // may be absent, and with it the second of Delta
	Delta         [2][]float32
	Weight        []float32
	Rstd          []float32 // of each row, LdRstd apart
	LdRstd        int
	Scale         float32
	DNorm         []float32
}

// NormBack runs x.
func (t *AttnTile) NormBack(x *NormBack) {
	out2, second := x.Out2, x.Delta[1]
	buf := Grow(&t.room, 4*x.Cols+x.Rows)
	if out2.size() == 0 {
		out2, second = x.Raw, buf[4*x.Cols:]
	}
	ok := min(len(x.Weight), len(x.DNorm)) >= x.Cols && len(x.Rstd) > (x.Rows-1)*x.LdRstd &&
		min(len(x.Delta[0]), len(second)) >= x.Rows
	for _, v := range []*View{&x.DO, &x.DOut, &x.Raw, &out2} {
		ok = ok && v.size() >= (x.Rows-1)*v.Ld+x.Cols
	}
	if !ok || x.Rows <= 0 || x.Cols <= 0 {
		panic(fmt.Sprintf("simd: norm backward of %d×%d: operands too short", x.Rows, x.Cols))
	}
	if cur.normBack != nil && x.DO.H != nil && x.DOut.H != nil && x.Raw.H != nil && out2.H != nil &&
		x.Cols%PanelBF16 == 0 {
		t.norm = normBackArgs{do: &x.DO.H[0], dout: &x.DOut.H[0], raw: &x.Raw.H[0], out2: &out2.H[0],
			weight: &x.Weight[0], rstd: &x.Rstd[0], dnorm: &x.DNorm[0], delta: [2]*float32{&x.Delta[0][0], &second[0]},
			ldDO: 2 * x.DO.Ld, ldDOut: 2 * x.DOut.Ld, ldRaw: 2 * x.Raw.Ld, ldOut2: 2 * out2.Ld, ldRstd: 4 * x.LdRstd,
			rows: x.Rows, lines: x.Cols / PanelBF16,
			scale: x.Scale, mean: 1 / float32(x.Cols)}
		cur.normBack(&t.norm)
		return
	}
	if cur.normBackFloat != nil && x.DO.X != nil && x.DOut.X != nil && x.Raw.X != nil && out2.X != nil &&
		x.Cols%floatLine == 0 {
		t.normBack = normFloatArgs{do: &x.DO.X[0], dout: &x.DOut.X[0], raw: &x.Raw.X[0], out2: &out2.X[0],
			weight: &x.Weight[0], rstd: &x.Rstd[0], dnorm: &x.DNorm[0], delta: [2]*float32{&x.Delta[0][0], &second[0]},
			ldDO: 4 * x.DO.Ld, ldDOut: 4 * x.DOut.Ld, ldRaw: 4 * x.Raw.Ld, ldOut2: 4 * out2.Ld, ldRstd: 4 * x.LdRstd,
			rows: x.Rows, lines: x.Cols / floatLine,
			scale: x.Scale, mean: 1 / float32(x.Cols)}
		cur.normBackFloat(&t.normBack)
		return
	}
	for r := range x.Rows {
		x.row(r, buf)
	}
}

// row does row r.
func (x *NormBack) row(r int, buf []float32) {
	n := x.Cols
	dout, raw, do := x.DOut.wide(r, n, buf), x.Raw.wide(r, n, buf[n:]), buf[2*n:][:n]
	if x.DO.H == nil {
		do = x.DO.X[r*x.DO.Ld:][:n]
	}
	rstd := x.Rstd[r*x.LdRstd]
	alpha := rstd * x.Scale
	mean := Dot3(dout, x.Weight[:n], raw) * alpha / float32(n)
	clear(do)
	NormGrad(do, dout, x.Weight[:n], raw, alpha, -mean*rstd*rstd)
	MulAxpy(x.DNorm[:n], alpha, dout, raw)
	x.Delta[0][r] = Dot(do, raw)
	if x.Out2.size() > 0 {
		x.Delta[1][r] = Dot(do, x.Out2.wide(r, n, buf[3*n:]))
	}
	if x.DO.H != nil {
		NarrowBF16(x.DO.H[r*x.DO.Ld:][:n], do)
	}
}
