package main

import "math"

// dots: dst[r] = x_r·y_r for rows of bfloat16, 16 at a time.
func dots(a *asm) {
	p := a.kernel("dots", "dotsArgs", 0, "DI")
	dst := a.take(p, "dst", "DX")
	x, y := a.take(p, "x", "SI"), a.take(p, "y", "BX")
	ldx, ldy := a.take(p, "ldx", "R8"), a.take(p, "ldy", "R9")
	groups := a.take(p, "groups", "CX")
	lineX, lineY := a.hold("R12", "line of x"), a.hold("R13", "line of y")
	rowX, rowY := a.hold("R10", "row of it"), a.hold("R11", "row of it")
	sums, factors := a.vecs(0, 16, "sums"), a.vecs(16, 8, "factors")
	temp := a.hold("AX", "temporary")
	a.repeat("group", groups, func() {
		a.zero(sums...)
		a.mov(x, lineX)
		a.mov(y, lineY)
		a.mov(p.at("lines"), temp)
		a.repeat("line", temp, func() {
			a.mov(lineX, rowX)
			a.mov(lineY, rowY)
			for r, sum := range sums {
				fx, fy := factors[2*(r%4)], factors[2*(r%4)+1]
				a.op("VMOVDQU64", mem(rowX), fx)
				a.op("VMOVDQU64", mem(rowY), fy)
				a.use(dotPairs(sum.num(), fx.num(), fy.num()))
				a.add(ldx, rowX)
				a.add(ldy, rowY)
			}
			a.add("$64", lineX)
			a.add("$64", lineY)
		})
		fold16(a, "VADDPS", sums, factors[0], factors[1])
		a.op("VMOVUPS", sums[0], mem(dst))
		a.add("$64", dst)
		for _, p := range [][2]*reg{{ldx, x}, {ldy, y}} {
			a.mov(p[0], temp)
			a.shl(4, temp)
			a.add(temp, p[1])
		}
	})
	a.ret()
}

// logSums: top += log sum, sum = 1/sum. sum = 2^e·m with m from √½ to √2, and with s = (m−1)/(m+1) log m = 2·(s + s³/3
// + s⁵/5 + …).
func logSums(a *asm) {
	a.text("logSums", 0, 24)
	a.held = map[string]*reg{}
	top, sum, n, bits := a.hold("DI", "top"), a.hold("SI", "sum"), a.hold("CX", "rows left"), a.hold("AX", "mask")
	used, large := a.hold("K1", "rows in use"), a.hold("K2", "m above √2")
	a.mov("top+0(FP)", top)
	a.mov("sum+8(FP)", sum)
	a.mov("n+16(FP)", n)
	a.op("KXNORW", used, used, used)
	a.mark("rows")
	a.jump(n, 16, "JGE", "whole")
	a.op("MOVL", "$1", bits)
	a.op("SHLL", n, bits)
	a.op("DECL", bits)
	a.op("KMOVW", bits, used)
	a.mark("whole")
	logSum16(a, top, sum, used, large)
	a.add("$64", top)
	a.add("$64", sum)
	a.sub("$16", n)
	a.op("JGT", "rows")
	a.ret()
}

// logSum16 does the 16 rows at top and sum.
func logSum16(a *asm, top, sum, used, large *reg) {
	x, e, m := a.vec(0, "sum"), a.vec(1, "exponent"), a.vec(2, "mantissa")
	s, t, y := a.vec(3, "s"), a.vec(4, "m + 1, then s²"), a.vec(5, "polynomial, then log")
	z := a.vec(6, "temporary")
	defer a.drop(x, e, m, s, t, y, z)
	a.op("VMOVUPS.Z", mem(sum), used, x)
	a.op("VGETEXPPS", x, e)
	a.op("VGETMANTPS", "$0", x, m)
	a.op("VCMPPS", "$14", a.constant(math.Sqrt2), m, large)
	a.op("VMULPS", a.constant(0.5), m, large, m)
	a.op("VADDPS", a.constant(1), e, large, e)
	a.op("VSUBPS", a.constant(1), m, s)
	a.op("VADDPS", a.constant(1), m, t)
	a.op("VDIVPS", t, s, s)
	a.op("VMULPS", s, s, t)
	a.op("VMOVUPS", a.constant(2.0/9), y)
	for _, c := range []float64{2.0 / 7, 2.0 / 5, 2.0 / 3, 2} {
		a.op("VFMADD213PS", a.constant(c), t, y)
	}
	a.op("VMULPS", s, y, y)
	a.op("VFMADD231PS", a.constant(math.Ln2), e, y)
	a.op("VMOVUPS.Z", mem(top), used, z)
	a.op("VADDPS", z, y, y)
	a.op("VMOVUPS", y, used, mem(top))
	a.op("VMOVUPS", a.constant(1), z)
	a.op("VDIVPS", x, z, x)
	a.op("VMOVUPS", x, used, mem(sum))
}

// normRows is a head norm, see simd.AttnTile.NormRows: in place, row by row.
func normRows(a *asm) {
	p := a.kernel("normRows", "normRowsArgs", 0, "DI")
	x, rstd := a.take(p, "x", "SI"), a.take(p, "rstd", "R11")
	ld, ldRstd, rows := a.take(p, "ld", "R8"), a.take(p, "ldRstd", "R9"), a.take(p, "rows", "CX")
	at, weight, left := a.hold("AX", "place in the row"), a.hold("BX", "weight"), a.hold("DX", "vectors left")
	sum, y, unit := a.vec(0, "sum, then scale·rstd"), a.vec(1, "elements"), a.vec(5, "1")
	low := sum.low()
	a.op("VMOVSS", a.bits(one), unit.low())
	a.repeat("row", rows, func() {
		a.mov(x, at)
		a.mov(p.at("vectors"), left)
		a.zero(sum)
		a.repeat("sum", left, func() {
			a.op("VMOVUPS", mem(at), y)
			a.op("VFMADD231PS", y, y, sum)
			a.add("$64", at)
		})
		foldLanes(a, "VADDPS", sum, y)
		a.op("VMULSS", p.at("mean"), low, low)
		a.op("VADDSS", p.at("eps"), low, low)
		a.op("VSQRTSS", low, low, low)
		a.op("VDIVSS", low, unit.low(), low)
		a.op("VMOVSS", low, mem(rstd))
		a.op("VMULSS", p.at("scale"), low, low)
		a.op("VBROADCASTSS", low, sum)
		a.mov(x, at)
		a.mov(p.at("weight"), weight)
		a.mov(p.at("vectors"), left)
		a.repeat("scale", left, func() {
			a.op("VMULPS", mem(weight), sum, y)
			a.op("VMULPS", mem(at), y, y)
			a.op("VMOVUPS", y, mem(at))
			a.add("$64", at)
			a.add("$64", weight)
		})
		a.add(ld, x)
		a.add(ldRstd, rstd)
	})
	a.ret()
}

// normBack is the backward pass of a head norm, see simd.NormBack.
type normBack struct {
	*asm
	p                         fields
	do, dout, raw, out2, rstd *reg   // of the row
	weight                    *reg   // of the line
	alpha, mean               *reg   // scale·rstd; first sums, then mean·rstd²
	gradOut, value, temp      []*reg // halves of a line: dout, raw
}

// emitNormBack goes row by row, the sum first.
func emitNormBack(a *asm) {
	p := a.kernel("normBack", "normBackArgs", 0, "DI")
	k := normBack{asm: a, p: p, do: a.take(p, "do", "R8"), dout: a.take(p, "dout", "R9"), raw: a.take(p, "raw", "R10"),
		out2: a.take(p, "out2", "R12"), rstd: a.take(p, "rstd", "R11"), weight: a.hold("BX", "weight"),
		mean: a.vec(0, "mean·rstd²"), alpha: a.vec(30, "scale·rstd"),
		temp: a.vecs(1, 2, "temporary"), gradOut: a.vecs(4, 2, "dout"), value: a.vecs(6, 2, "raw")}
	rows, rstd, sum2 := a.take(p, "rows", "CX"), a.vec(31, "rstd"), k.temp[0]
	a.repeat("row", rows, func() {
		a.op("VBROADCASTSS", mem(k.rstd), rstd)
		a.op("VBROADCASTSS", p.at("scale"), k.alpha)
		a.op("VMULPS", rstd, k.alpha, k.alpha)
		a.zero(k.mean, sum2)
		k.lines("sum", func() {
			for i, sum := range []*reg{k.mean, sum2} {
				a.op("VMULPS", mem(k.weight, 64*i), k.gradOut[i], k.gradOut[i])
				a.op("VFMADD231PS", k.gradOut[i], k.value[i], sum)
			}
		})
		a.op("VADDPS", sum2, k.mean, k.mean)
		foldLanes(a, "VADDPS", k.mean, sum2)
		a.op("VBROADCASTSS", p.at("mean"), sum2)
		a.op("VMULPS", k.alpha, k.mean, k.mean)
		for _, r := range []*reg{sum2, rstd, rstd} {
			a.op("VMULPS", r, k.mean, k.mean)
		}
		k.write()
		for _, x := range []struct {
			ld string
			at *reg
		}{{"ldDO", k.do}, {"ldDOut", k.dout}, {"ldRaw", k.raw}, {"ldOut2", k.out2}, {"ldRstd", k.rstd}} {
			a.add(p.at(x.ld), x.at)
		}
	})
	a.ret()
}

// write processes a row again: do, its products with raw and with out2, and the weight's gradient.
func (k *normBack) write() {
	dnorm, do, out2 := k.take(k.p, "dnorm", "R13"), k.hold("R14", "do of the line"), k.hold("R15", "out2 of the line")
	products, second := k.vecs(8, 4, "do·raw, do·out2"), k.vecs(12, 2, "out2")
	k.mov(k.do, do)
	k.mov(k.out2, out2)
	k.zero(products...)
	k.lines("write", func() {
		t := k.temp[1]
		for i, g := range k.gradOut {
			widen(k.asm, mem(out2, 32*i), second[i])
			k.op("VMULPS", k.alpha, g, g)
			k.op("VMOVUPS", mem(dnorm, 64*i), t)
			k.op("VFMADD231PS", g, k.value[i], t)
			k.op("VMOVUPS", t, mem(dnorm, 64*i))
			k.op("VMULPS", mem(k.weight, 64*i), g, g)
			k.op("VFNMADD231PS", k.mean, k.value[i], g)
			k.op("VFMADD231PS", g, k.value[i], products[i])
			k.op("VFMADD231PS", g, second[i], products[2+i])
		}
		k.use(roundPair(k.gradOut[0], k.gradOut[1], k.gradOut[0]))
		k.op("VMOVDQU64", k.gradOut[0], mem(do))
		k.add("$128", dnorm)
		k.add("$64", do)
		k.add("$64", out2)
	})
	delta, at := k.hold("AX", "delta"), k.hold("DX", "bytes of it that are written")
	for i := range 2 {
		sum := products[2*i]
		k.op("VADDPS", products[2*i+1], sum, sum)
		foldLanes(k.asm, "VADDPS", sum, k.temp[0])
		k.mov(k.p.at("delta", i), delta)
		k.mov(k.p.at("at"), at)
		k.op("VMOVSS", sum.low(), indexed(delta, at, 1))
	}
	k.add("$4", k.p.at("at"))
	k.drop(dnorm, do, out2, delta, at)
	k.drop(append(products, second...)...)
}

// lines runs do for 32 columns at a time, with dout and raw widened.
func (k *normBack) lines(label string, do func()) {
	dout, raw, left := k.hold("AX", "dout of the line"), k.hold("DX", "raw of the line"), k.hold("SI", "lines left")
	k.mov(k.dout, dout)
	k.mov(k.raw, raw)
	k.mov(k.p.at("weight"), k.weight)
	k.mov(k.p.at("lines"), left)
	k.repeat(label, left, func() {
		for half := range 2 {
			widen(k.asm, mem(dout, 32*half), k.gradOut[half])
		}
		for half := range 2 {
			widen(k.asm, mem(raw, 32*half), k.value[half])
		}
		do()
		k.add("$64", dout)
		k.add("$64", raw)
		k.add("$128", k.weight)
	})
	k.drop(dout, raw, left)
}
