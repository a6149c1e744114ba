package main

// exp replaces x by e^x, as exp_generic.go explains: n = round(x·log2 e), r = x − n·ln 2, e^x = 2^n·(1 + r + r²·q(r)).
// The result is in a register of its own; x is lost.
func (b *body) exp(x string) string {
	n, q, keep := b.tmp(), b.tmp(), b.tmp()
	b.op("VMOVUPS", b.constant(89), n)
	b.op("VMINPS", x, n, x) // in this order a NaN comes through
	if b.wide() {
		b.op("VCMPPS", "$5", b.constant(-87.33654), x, "K2") // not less than: true for NaN
	} else {
		b.op("VCMPPS", "$5", b.constant(-87.33654), x, keep)
	}
	b.op("VMULPS", b.constant(1.44269504088896340736), x, n)
	if b.wide() {
		b.op("VRNDSCALEPS", "$0", n, n)
	} else {
		b.op("VROUNDPS", "$0", n, n)
	}
	b.op("VFNMADD231PS", b.constant(0.693359375), n, x)
	b.op("VFNMADD231PS", b.constant(-2.12194440e-4), n, x)
	b.op("VMOVUPS", b.constant(1.9875691500e-4), q)
	for _, c := range []float64{1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1} {
		b.op("VFMADD213PS", b.constant(c), x, q)
	}
	b.op("VMULPS", x, q, q)
	b.op("VFMADD213PS", x, x, q) // (q·r)·r + r
	b.op("VADDPS", b.bits(one), q, q)
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

// sigmoid is 1/(1+e^−x) in a register of its own; x is kept.
func (b *body) sigmoid(x string) string {
	m := b.tmp()
	b.op("VXORPS", b.bits(0x80000000), x, m)
	e := b.exp(m)
	b.op("VADDPS", b.bits(one), e, e)
	b.op("VMOVUPS", b.bits(one), m)
	b.op("VDIVPS", e, m, m)
	return m
}
