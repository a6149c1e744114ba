package device

import (
	"fmt"
	"strings"

	"antiphase/tensor"
)

// The checks below implement the shape rules of Device's doc comments, once for every device, so that a wrong shape
// panics with the same text everywhere. t are the calling device's dtypes. A check that passes compares integers and
// allocates nothing; text is formatted only for the panic.

// arg names a tensor in a panic's text.
type arg struct {
	name string
	t    tensor.Tensor
}

// fail panics with what op wants and what it was given.
//
//go:noinline
func fail(op, want string, args ...arg) {
	var b strings.Builder
	fmt.Fprintf(&b, "device: %s wants %s; got", op, want)
	for i, a := range args {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s %v", a.name, a.t)
	}
	panic(b.String())
}

// sound reports whether t is present and its rows do not overlap.
func sound(t tensor.Tensor) bool { return t.Buf != nil && (t.Ld >= t.Cols || t.Rows <= 1) }

// has reports whether t is present with this dtype and shape.
func has(t tensor.Tensor, d tensor.DType, rows, cols int) bool {
	return t.Type == d && t.Rows == rows && t.Cols == cols && sound(t)
}

// opt reports whether t is absent or has this dtype and shape.
func opt(t tensor.Tensor, d tensor.DType, rows, cols int) bool {
	return t.Buf == nil || has(t, d, rows, cols)
}

// iff reports whether t has this dtype and shape if on, and is absent otherwise.
func iff(on bool, t tensor.Tensor, d tensor.DType, rows, cols int) bool {
	if !on {
		return t.Buf == nil
	}
	return has(t, d, rows, cols)
}

func float(d tensor.DType) bool { return d == tensor.F32 || d == tensor.F64 || d == tensor.BF16 }

// either reports whether d is one of the device's two dtypes.
func (t Types) either(d tensor.DType) bool { return d == t.Act || d == t.Stat }

// CheckZero checks Zero's tensor.
func CheckZero(x tensor.Tensor) {
	if !sound(x) {
		fail("Zero", "a tensor", arg{"t", x})
	}
}

// CheckCopy checks Copy's tensors.
func CheckCopy(dst, src tensor.Tensor) { checkPair("Copy", dst, src) }

// CheckAdd checks Add's tensors.
func CheckAdd(dst, src tensor.Tensor) { checkPair("Add", dst, src) }

func checkPair(op string, dst, src tensor.Tensor) {
	if !(sound(dst) && float(dst.Type) && float(src.Type) && has(src, src.Type, dst.Rows, dst.Cols)) {
		fail(op, "two float tensors of one shape", arg{"dst", dst}, arg{"src", src})
	}
}

// CheckAddBias checks AddBias's tensors.
func CheckAddBias(y, b tensor.Tensor, t Types) {
	if !(has(y, t.Act, y.Rows, y.Cols) && has(b, t.Act, 1, y.Cols)) {
		fail("AddBias", "y[N,C] and b[1,C] in Act", arg{"y", y}, arg{"b", b})
	}
}

// CheckBiasBackward checks BiasBackward's tensors.
func CheckBiasBackward(db, dy tensor.Tensor, t Types) {
	if !(has(dy, t.Act, dy.Rows, dy.Cols) && has(db, t.Stat, 1, dy.Cols)) {
		fail("BiasBackward", "db[1,C] in Stat and dy[N,C] in Act", arg{"db", db}, arg{"dy", dy})
	}
}

// CheckEmbed checks Embed's tensors.
func CheckEmbed(out, table, ids tensor.Tensor, t Types) {
	if !(has(table, t.Act, table.Rows, out.Cols) && has(out, t.Act, out.Rows, out.Cols) &&
		has(ids, tensor.I32, 1, out.Rows)) {
		fail("Embed", "out[N,C] and table[V,C] in Act, ids[1,N] in I32", arg{"out", out}, arg{"table", table},
			arg{"ids", ids})
	}
}

// CheckEmbedBackward checks EmbedBackward's tensors.
func CheckEmbedBackward(dtable, dout, ids tensor.Tensor, t Types) {
	if !(has(dtable, t.Stat, dtable.Rows, dout.Cols) && has(dout, t.Act, dout.Rows, dout.Cols) &&
		has(ids, tensor.I32, 1, dout.Rows)) {
		fail("EmbedBackward", "dtable[V,C] in Stat, dout[N,C] in Act, ids[1,N] in I32",
			arg{"dtable", dtable}, arg{"dout", dout}, arg{"ids", ids})
	}
}

// CheckMatMul checks MatMul's tensors.
func CheckMatMul(c, a, b tensor.Tensor, op MatMul, t Types) {
	m, k := a.Rows, a.Cols
	if op.TransA {
		m, k = k, m
	}
	br, bc := k, c.Cols
	if op.TransB {
		br, bc = bc, br
	}
	if !(t.either(c.Type) && has(c, c.Type, m, c.Cols) && has(a, t.Act, a.Rows, a.Cols) && has(b, t.Act, br, bc)) {
		fail(op.String(), "c[m,n] in Act or Stat, op(a)[m,k] and op(b)[k,n] in Act", arg{"c", c},
			arg{"a", a}, arg{"b", b})
	}
}

// String is the product as a formula.
func (m MatMul) String() string {
	s := []byte("MatMul c")
	if m.Accumulate {
		s = append(s, " +="...)
	} else {
		s = append(s, " ="...)
	}
	s = append(s, " a"...)
	if m.TransA {
		s = append(s, "ᵀ"...)
	}
	s = append(s, "·b"...)
	if m.TransB {
		s = append(s, "ᵀ"...)
	}
	return string(s)
}

// CheckRMSNorm checks RMSNorm's tensors.
func CheckRMSNorm(y, rstd, sum, x, delta, w tensor.Tensor, t Types) {
	n, c := x.Rows, x.Cols
	if !(has(x, t.Act, n, c) && has(y, t.Act, n, c) && has(w, t.Act, 1, c) && opt(rstd, t.Stat, 1, n) &&
		opt(delta, t.Act, n, c) && iff(delta.Ok(), sum, t.Act, n, c)) {
		fail("RMSNorm",
			"y, x[N,C] and w[1,C] in Act, rstd[1,N] in Stat or absent, sum and delta[N,C] in Act or both absent",
			arg{"y", y}, arg{"rstd", rstd}, arg{"sum", sum}, arg{"x", x}, arg{"delta", delta}, arg{"w", w})
	}
}

// CheckRMSNormBackward checks RMSNormBackward's tensors.
func CheckRMSNormBackward(dx, dw, dy, x, w, rstd tensor.Tensor, t Types) {
	n, c := x.Rows, x.Cols
	if !(has(x, t.Act, n, c) && has(dx, t.Act, n, c) && has(dy, t.Act, n, c) && has(w, t.Act, 1, c) &&
		has(dw, t.Stat, 1, c) && has(rstd, t.Stat, 1, n)) {
		fail("RMSNormBackward", "dx, dy, x[N,C] and w[1,C] in Act, dw[1,C] and rstd[1,N] in Stat",
			arg{"dx", dx}, arg{"dw", dw}, arg{"dy", dy}, arg{"x", x}, arg{"w", w}, arg{"rstd", rstd})
	}
}

// Check checks Rope's tensors.
func (r Rope) Check(x, table, pos tensor.Tensor, t Types) {
	if !(r.Dim%2 == 0 && r.Dim > 0 && has(x, t.Act, x.Rows, r.Heads*r.Dim) &&
		has(table, t.Stat, table.Rows, r.Dim) && has(pos, tensor.I32, 1, x.Rows)) {
		fail(fmt.Sprintf("Rope of %d heads of %d", r.Heads, r.Dim),
			"an even Dim, x[N,Heads·Dim] in Act, table[P,Dim] in Stat, pos[1,N] in I32", arg{"x", x},
			arg{"table", table}, arg{"pos", pos})
	}
}

// CheckSwiGLU checks SwiGLU's tensors.
func CheckSwiGLU(y, gu tensor.Tensor, t Types) {
	if !(has(y, t.Act, y.Rows, y.Cols) && has(gu, t.Act, y.Rows, 2*y.Cols)) {
		fail("SwiGLU", "y[N,F] and gu[N,2F] in Act", arg{"y", y}, arg{"gu", gu})
	}
}

// CheckSwiGLUBackward checks SwiGLUBackward's tensors.
func CheckSwiGLUBackward(dgu, y, dy, gu tensor.Tensor, t Types) {
	if !(has(dy, t.Act, dy.Rows, dy.Cols) && has(y, t.Act, dy.Rows, dy.Cols) && has(gu, t.Act, dy.Rows, 2*dy.Cols) &&
		has(dgu, t.Act, dy.Rows, 2*dy.Cols)) {
		fail("SwiGLUBackward", "dgu, gu[N,2F] and y, dy[N,F] in Act", arg{"dgu", dgu}, arg{"y", y}, arg{"dy", dy},
			arg{"gu", gu})
	}
}

// check requires four vectors of Stat [1,D] and returns D.
func (v LambdaVecs) check(op string, t Types) int {
	d := v.Q1.Cols
	if !(has(v.Q1, t.Stat, 1, d) && has(v.K1, t.Stat, 1, d) && has(v.Q2, t.Stat, 1, d) && has(v.K2, t.Stat, 1, d)) {
		fail(op, "four vectors[1,D] in Stat", arg{"q1", v.Q1}, arg{"k1", v.K1}, arg{"q2", v.Q2}, arg{"k2", v.K2})
	}
	return d
}

// CheckLambda checks Lambda's tensors.
func CheckLambda(lam tensor.Tensor, v LambdaVecs, t Types) {
	v.check("Lambda", t)
	if !has(lam, t.Stat, 1, 1) {
		fail("Lambda", "lam[1,1] in Stat", arg{"lam", lam})
	}
}

// CheckLambdaBackward checks LambdaBackward's tensors.
func CheckLambdaBackward(d LambdaVecs, dlam tensor.Tensor, v LambdaVecs, t Types) {
	if v.check("LambdaBackward", t) != d.check("LambdaBackward", t) || !has(dlam, t.Stat, dlam.Rows, dlam.Cols) {
		fail("LambdaBackward", "gradients as wide as their vectors and dlam in Stat", arg{"dq1", d.Q1}, arg{"q1", v.Q1},
			arg{"dlam", dlam})
	}
}

// CheckSigmoid checks Sigmoid's tensors.
func CheckSigmoid(y, x tensor.Tensor, t Types) {
	if !(t.either(y.Type) && has(y, y.Type, y.Rows, y.Cols) && has(x, y.Type, y.Rows, y.Cols)) {
		fail("Sigmoid", "two tensors of one shape, both Act or both Stat", arg{"y", y}, arg{"x", x})
	}
}

// CheckSigmoidBackward checks SigmoidBackward's tensors.
func CheckSigmoidBackward(dx, dy, y tensor.Tensor, t Types) {
	if !(t.either(y.Type) && has(y, y.Type, y.Rows, y.Cols) && has(dy, y.Type, y.Rows, y.Cols) &&
		has(dx, y.Type, y.Rows, y.Cols)) {
		fail("SigmoidBackward", "three tensors of one shape, all Act or all Stat", arg{"dx", dx},
			arg{"dy", dy}, arg{"y", y})
	}
}

// Check checks Classify's tensors.
func (c *Classifier) Check(t Types) {
	n, w, v := c.X.Rows, c.X.Cols, c.W.Rows
	grad := c.DX.Ok()
	if !(v > 0 && w > 0 && has(c.X, t.Act, n, w) && has(c.W, t.Act, v, w) && has(c.Targets, tensor.I32, 1, n) &&
		has(c.Loss, t.Stat, 1, n) && iff(grad, c.DX, t.Act, n, w) && iff(grad, c.DW, t.Stat, v, w)) {
		fail("Classify", "X[N,C] and W[V,C] in Act, neither C nor V 0, Targets[1,N] in I32, Loss[1,N] in Stat, DX as "+
			"X in Act and DW as W in Stat or both absent",
			arg{"X", c.X}, arg{"W", c.W}, arg{"Targets", c.Targets}, arg{"Loss", c.Loss}, arg{"DX", c.DX},
			arg{"DW", c.DW})
	}
	if c.Part.Ok() && (c.Parts.Ok() || grad || !has(c.Part, t.Stat, 2, n)) ||
		c.Parts.Ok() && (c.Parts.Rows%2 != 0 || c.Parts.Rows == 0 || !has(c.Parts, t.Stat, c.Parts.Rows, n)) {
		fail("Classify", "Part[2,N] in Stat without DX, or Parts[2P,N] in Stat, or neither", arg{"Part", c.Part},
			arg{"Parts", c.Parts}, arg{"DX", c.DX}, arg{"Targets", c.Targets})
	}
}

// Split reports whether the classes are split over ranks.
func (c *Classifier) Split() bool { return c.Part.Ok() || c.Parts.Ok() }

// CheckArgMax checks ArgMax's tensors.
func CheckArgMax(ids, x tensor.Tensor, t Types) {
	if !(has(ids, tensor.I32, 1, x.Rows) && has(x, t.Stat, x.Rows, x.Cols)) {
		fail("ArgMax", "ids[1,N] in I32 and x[N,V] in Stat", arg{"ids", ids}, arg{"x", x})
	}
}

// CheckSumSquares checks SumSquares' tensors.
func CheckSumSquares(dst, x tensor.Tensor, t Types) {
	if !(has(dst, t.Stat, 1, 1) && t.either(x.Type) && sound(x)) {
		fail("SumSquares", "dst[1,1] in Stat and x in Act or Stat", arg{"dst", dst}, arg{"x", x})
	}
}

// Split reports whether W and Master are the halves of the parameters.
func (a *AdamW) Split() bool { return a.W.Type == tensor.BF16 && a.Master.Type == tensor.I16 }

// Check checks AdamW's tensors.
func (a *AdamW) Check(t Types) {
	n := a.W.Len()
	flat := func(x tensor.Tensor, d tensor.DType) bool {
		return x.Buf != nil && x.Type == d && x.Dense() && x.Len() == n
	}
	if !(t.either(a.W.Type) && flat(a.W, a.W.Type) && flat(a.M, t.Stat) && flat(a.V, t.Stat) && flat(a.G, t.Stat) &&
		(!a.Master.Ok() || flat(a.Master, t.Stat) || a.Split() && t.Stat == tensor.F32 && flat(a.Master, tensor.I16)) &&
		has(a.Rate, t.Stat, 1, 3) && has(a.GradSq, t.Stat, 1, 1)) {
		fail("AdamW", "dense W in Act or Stat, M, V, G and Master (or none) in Stat, or W in BF16 and Master in I16 "+
			"where Stat is F32, all of one length, Rate[1,3] and GradSq[1,1] in Stat",
			arg{"W", a.W}, arg{"Master", a.Master}, arg{"M", a.M}, arg{"V", a.V}, arg{"G", a.G}, arg{"Rate", a.Rate},
			arg{"GradSq", a.GradSq})
	}
	if a.RoundBF16 && !a.Master.Ok() {
		fail("AdamW", "a Master with RoundBF16, or p would lose what W drops", arg{"W", a.W}, arg{"Master", a.Master})
	}
}
