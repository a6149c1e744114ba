package main

// What exp_generic.go explains. Adding roundMagic to a number of less than 2^22 leaves its nearest integer in the
// lowest bits.
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

// exp replaces x by e^x: n = round(x·log2 e), r = x − n·ln 2, e^x = 2^n·e^r. The result is in a separate register; x is
// overwritten.
func exp(b *body, x string) string {
	n, q, keep := b.tmp(), b.tmp(), b.tmp()
	b.set(b.constant(expMax), n)
	b.min(x, n, x) // in this order a NaN comes through
	atLeast(b, expMin, x, keep)
	b.set(b.constant(roundMagic), n)
	b.fma(b.constant(log2e), x, n)
	b.sub(b.constant(roundMagic), n, n)
	b.fnma(b.constant(ln2Hi), n, x)
	b.fnma(b.constant(ln2Lo), n, x)
	poly(b, x, q, 1)
	if b.wide() {
		b.op("VSCALEFPS.Z", n, q, "K2", q)
		return q
	}
	// 2^n in two halves, for n = 128.
	b.toInt(n, n)
	b.shiftDown(1, n, x)
	b.subInt(x, n, n)
	for _, h := range []string{x, n} {
		b.addInt(b.bits(127), h, h)
		b.shiftLeft(23, h, h)
		b.mul(h, q, q)
	}
	cut(b, keep, q)
	return q
}

// atLeast marks the lanes where x is not less than low, which a NaN is not: in K2, or in keep. NEON marks the others.
func atLeast(b *body, low float64, x, keep string) {
	if b.arm() {
		b.use(vvv(0x6EA0E400, "fcmgt", "4s", keep, b.constant(low), x))
		return
	}
	if b.wide() {
		keep = "K2"
	}
	b.op("VCMPPS", "$5", b.constant(low), x, keep)
}

// cut makes x 0 where atLeast found less.
func cut(b *body, keep, x string) {
	if b.arm() {
		b.use(vvv(0x4E601C00, "bic", "16b", x, x, keep))
	} else {
		b.and(keep, x, x)
	}
}

// poly is e^(sign·x) in q. NEON takes turns with a second register; the number of turns is even.
func poly(b *body, x, q string, sign float64) {
	b.set(b.constant(expPoly[0]), q)
	for i, c := range expPoly[1:] {
		if i%2 == 0 {
			c *= sign
		}
		if b.arm() {
			to := [2]string{b.spare(), q}
			b.set(b.constant(c), to[i%2])
			b.fma(x, to[1-i%2], to[i%2])
			continue
		}
		b.mulAdd(b.constant(c), x, q)
	}
}

// sigmoid is 1/(1+e^−x) in a separate register; x is kept. It is exp of −x without what only matters far from 0: below
// sigmoidMin the result is 0, and at and above −sigmoidMin 1 by rounding. The division takes fewer slots of the two
// bottleneck units than an estimate of 1/d with a Newton step, and its latency is hidden.
func sigmoid(b *body, x string) string {
	r, n, q, keep := b.tmp(), b.tmp(), b.tmp(), b.tmp()
	atLeast(b, sigmoidMin, x, keep)
	b.set(b.constant(-sigmoidMin), r)
	b.min(x, r, r)
	b.set(b.constant(powerMagic), n)
	b.fnma(b.constant(log2e), r, n)
	b.sub(b.constant(powerMagic), n, q)
	b.fma(b.constant(ln2Hi), q, r)
	b.fma(b.constant(ln2Lo), q, r)
	poly(b, r, q, -1)
	b.shiftLeft(23, n, n)
	b.mulAdd(b.bits(one), n, q)
	b.set(b.bits(one), r)
	if b.wide() {
		b.op("VDIVPS.Z", q, r, "K2", r)
		return r
	}
	b.div(q, r, r)
	cut(b, keep, r)
	return r
}
