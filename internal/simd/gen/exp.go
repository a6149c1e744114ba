package main

// What exp_generic.go explains. Adding roundMagic to a number of less than 2^22 leaves its nearest integer in the lowest bits.
const (
	expMin, expMax = -87.33654, 89
	log2e          = 1.44269504088896340736
	ln2Hi, ln2Lo   = 0.693359375, -2.12194440e-4
	roundMagic     = 3 << 22
	powerMagic     = roundMagic + 127 // the lowest bits are then 2^n's exponent
	sigmoidMin     = -87
)

// expPoly are the coefficients of e^r, the highest power's first.
var expPoly = []float64{1.3814539972e-3, 8.3687451165e-3, 4.1668390788e-2, 1.6666520399e-1, 4.9999993432e-1, 1, 1}

// exp replaces x by e^x: n = round(x·log2 e), r = x − n·ln 2, e^x = 2^n·e^r. The result is in a register of its own; x is lost.
func (b *body) exp(x string) string {
	n, q, keep := b.tmp(), b.tmp(), b.tmp()
	b.op("VMOVUPS", b.constant(expMax), n)
	b.op("VMINPS", x, n, x) // in this order a NaN comes through
	b.atLeast(expMin, x, keep)
	b.op("VMOVUPS", b.constant(roundMagic), n)
	b.op("VFMADD231PS", b.constant(log2e), x, n)
	b.op("VSUBPS", b.constant(roundMagic), n, n)
	b.op("VFNMADD231PS", b.constant(ln2Hi), n, x)
	b.op("VFNMADD231PS", b.constant(ln2Lo), n, x)
	b.poly(x, q, 1)
	if b.wide() {
		b.op("VSCALEFPS.Z", n, q, "K2", q)
		return q
	}
	// 2^n in two halves, for n = 128.
	b.op("VCVTPS2DQ", n, n)
	b.op("VPSRAD", "$1", n, x)
	b.op("VPSUBD", x, n, n)
	for _, h := range []string{x, n} {
		b.op("VPADDD", b.bits(127), h, h)
		b.op("VPSLLD", "$23", h, h)
		b.op("VMULPS", h, q, q)
	}
	b.op("VANDPS", keep, q, q)
	return q
}

// atLeast marks the lanes where x is not less than low, which a NaN is not: in K2, or in keep.
func (b *body) atLeast(low float64, x, keep string) {
	if b.wide() {
		keep = "K2"
	}
	b.op("VCMPPS", "$5", b.constant(low), x, keep)
}

// poly is e^(sign·x) in q.
func (b *body) poly(x, q string, sign float64) {
	b.op("VMOVUPS", b.constant(expPoly[0]), q)
	for i, c := range expPoly[1:] {
		if i%2 == 0 {
			c *= sign
		}
		b.op("VFMADD213PS", b.constant(c), x, q)
	}
}

// sigmoid is 1/(1+e^−x) in a register of its own; x is kept. It is exp of −x without what only matters far from 0: below sigmoidMin the result is 0,
// and from −sigmoidMin on 1 by rounding. The division takes fewer slots of the two units that everything else waits for than an estimate of 1/d with a
// step of Newton, and is hidden behind them.
func (b *body) sigmoid(x string) string {
	r, n, q, keep := b.tmp(), b.tmp(), b.tmp(), b.tmp()
	b.atLeast(sigmoidMin, x, keep)
	b.op("VMOVUPS", b.constant(-sigmoidMin), r)
	b.op("VMINPS", x, r, r)
	b.op("VMOVUPS", b.constant(powerMagic), n)
	b.op("VFNMADD231PS", b.constant(log2e), r, n)
	b.op("VSUBPS", b.constant(powerMagic), n, q)
	b.op("VFMADD231PS", b.constant(ln2Hi), q, r)
	b.op("VFMADD231PS", b.constant(ln2Lo), q, r)
	b.poly(r, q, -1)
	b.op("VPSLLD", "$23", n, n)
	b.op("VFMADD213PS", b.bits(one), n, q)
	b.op("VMOVUPS", b.bits(one), r)
	if b.wide() {
		b.op("VDIVPS.Z", q, r, "K2", r)
		return r
	}
	b.op("VDIVPS", q, r, r)
	b.op("VANDPS", keep, r, r)
	return r
}
