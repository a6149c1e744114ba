package main

// Rows before and after attention on float32 factors, for AVX2: what attnrows.go and attnout.go are for bfloat16.

// floatRows are the registers of such a kernel. Pointers are at the present row.
type floatRows struct {
	*asm
	args     fields
	at, left *reg // bytes done of the row, vectors left
}

func newFloatRows(a *asm, name, args string) floatRows {
	k := floatRows{asm: a, args: a.kernel(name, args, 0, "AX")}
	k.at, k.left = a.hold("CX", "bytes done"), a.hold("DX", "vectors left")
	return k
}

// vectors runs body over the vectors of a row, n at a time, of which the field has the number.
func (k *floatRows) vectors(label, field string, n int, body func(i int)) {
	k.zero(k.at)
	k.mov(k.args.at(field), k.left)
	k.repeat(k.fresh(label), k.left, func() {
		for i := range n {
			body(i)
		}
		k.add(imm(n*k.bytes()), k.at)
	})
}

// vector is vector i at the present place of a row.
func (k *floatRows) vector(row *reg, i int) operand { return indexed(row, k.at, 1, i*k.bytes()) }

// next moves pointers on to the next row.
func (k *floatRows) next(fields []string, rows []*reg) {
	for i, r := range rows {
		k.add(k.args.at(fields[i]), r)
	}
}

// scaleFloats is scaleRows, see attnout.go.
func scaleFloats(a *asm) {
	k := newFloatRows(a, "scaleRows", "outArgs")
	dst, src, scale, rows := a.take(k.args, "dst", "DI"), a.take(k.args, "src", "SI"), a.take(k.args, "scale", "BX"),
		a.take(k.args, "rows", "R8")
	factor, x := a.ymm(0, "scale"), a.ymms(1, 2, "elements")
	a.repeat("row", rows, func() {
		a.op("VBROADCASTSS", mem(scale), factor)
		k.vectors("vector", "vectors", 2, func(i int) {
			a.op("VMULPS", k.vector(src, i), factor, x[i])
			a.op("VMOVUPS", x[i], k.vector(dst, i))
		})
		k.next([]string{"ldDst", "ldSrc"}, []*reg{dst, src})
		a.add("$4", scale)
	})
	a.ret()
}

// mixNorm: simd.MixNorm in one call, row by row.
func mixNorm(a *asm) {
	k := newFloatRows(a, "mixNorm", "mixNormArgs")
	first, second := a.hold("SI", "acc of map 1"), a.hold("DI", "acc of map 2")
	a.mov(k.args.at("acc", 0), first)
	a.mov(k.args.at("acc", 1), second)
	raw, out, out2 := a.take(k.args, "raw", "R8"), a.take(k.args, "out", "R9"), a.take(k.args, "out2", "R10")
	rstd, row, rows := a.take(k.args, "rstd", "R11"), a.hold("R12", "bytes of factors done"),
		a.take(k.args, "rows", "R13")
	at := a.hold("BX", "factors, then weight")
	f, sums, x := a.ymms(0, 3, "factors"), a.ymms(3, 4, "squares"), a.ymms(7, 4, "elements")
	y, unit := a.ymm(11, "elements of map 2"), a.ymm(12, "1")
	a.op("VMOVSS", a.bits(one), unit.low())
	a.zero(row)
	a.repeat("row", rows, func() {
		for i := range f {
			a.mov(k.args.at("factor", i), at)
			a.op("VBROADCASTSS", indexed(at, row, 1), f[i])
		}
		a.zero(sums...)
		k.vectors("mix", "lines", 4, func(i int) {
			a.op("VMOVUPS", k.vector(second, i), y)
			a.op("VMULPS", k.vector(first, i), f[0], x[i])
			a.op("VFMADD231PS", y, f[1], x[i])
			a.op("VMULPS", y, f[2], y)
			a.op("VFMADD231PS", x[i], x[i], sums[i])
			a.op("VMOVUPS", x[i], k.vector(raw, i))
			a.op("VMOVUPS", y, k.vector(out2, i))
		})
		s := addAll(a, sums)
		foldVector(a, "VADDPS", s, y)
		a.op("VMULSS", k.args.at("mean"), s.low(), s.low())
		a.op("VADDSS", k.args.at("eps"), s.low(), s.low())
		a.op("VSQRTSS", s.low(), s.low(), s.low())
		a.op("VDIVSS", s.low(), unit.low(), s.low())
		a.op("VMOVSS", s.low(), mem(rstd))
		a.op("VMULSS", k.args.at("scale"), s.low(), s.low())
		a.op("VBROADCASTSS", s.low(), s)
		a.mov(k.args.at("weight"), at)
		k.vectors("scale", "lines", 4, func(i int) {
			a.op("VMULPS", k.vector(at, i), s, x[i])
			a.op("VMULPS", k.vector(raw, i), x[i], x[i])
			a.op("VMOVUPS", x[i], k.vector(out, i))
		})
		k.next([]string{"ldacc", "ldacc", "ldRaw", "ldOut", "ldOut2", "ldRstd"},
			[]*reg{first, second, raw, out, out2, rstd})
		a.add("$4", row)
	})
	a.ret()
}

// addAll adds four vectors into the first.
func addAll(a *asm, x []*reg) *reg {
	a.op("VADDPS", x[1], x[0], x[0])
	a.op("VADDPS", x[3], x[2], x[2])
	a.op("VADDPS", x[2], x[0], x[0])
	return x[0]
}

// foldVector reduces a vector of AVX2 to its lowest lane; t is used on the way.
func foldVector(a *asm, op string, x, t *reg) {
	a.op("VEXTRACTF128", "$1", x, t.low())
	a.op(op, t.low(), x.low(), x.low())
	a.op("VPERMILPD", "$1", x.low(), t.low())
	a.op(op, t.low(), x.low(), x.low())
	a.op("VPERMILPS", "$1", x.low(), t.low())
	a.op(op, t.low(), x.low(), x.low())
}

// normBackFloats is normBack, see attnrows.go: the sum first, then do and what is summed with it.
type normBackFloats struct {
	floatRows
	do, dout, raw, out2, rstd *reg
	weight                    *reg
	alpha, mean, r            *reg   // vectors: scale·rstd; −mean·rstd²; rstd
	sums, x                   []*reg // four vectors each
}

func emitNormBackFloats(a *asm) {
	k := normBackFloats{floatRows: newFloatRows(a, "normBack", "normFloatArgs")}
	k.do, k.dout, k.raw, k.out2 = a.take(k.args, "do", "R8"), a.take(k.args, "dout", "R9"),
		a.take(k.args, "raw", "R10"), a.take(k.args, "out2", "R12")
	k.rstd, k.weight = a.take(k.args, "rstd", "R11"), a.take(k.args, "weight", "BX")
	rows := a.take(k.args, "rows", "R13")
	k.alpha, k.mean, k.r = a.ymm(0, "scale·rstd"), a.ymm(1, "−mean·rstd²"), a.ymm(2, "rstd")
	k.sums, k.x = a.ymms(3, 4, "sums"), a.ymms(7, 4, "elements")
	a.repeat("row", rows, func() {
		a.op("VBROADCASTSS", mem(k.rstd), k.r)
		a.op("VBROADCASTSS", k.args.at("scale"), k.alpha)
		a.op("VMULPS", k.r, k.alpha, k.alpha)
		a.zero(k.sums...)
		k.vectors("sum", "lines", 4, func(i int) {
			a.op("VMOVUPS", k.vector(k.dout, i), k.x[i])
			a.op("VMULPS", k.vector(k.weight, i), k.x[i], k.x[i])
			a.op("VFMADD231PS", k.vector(k.raw, i), k.x[i], k.sums[i])
		})
		sum := addAll(a, k.sums)
		foldVector(a, "VADDPS", sum, k.x[0])
		a.op("VBROADCASTSS", sum.low(), k.mean)
		a.op("VBROADCASTSS", k.args.at("mean"), sum)
		for _, f := range []*reg{sum, k.alpha, k.r, k.r} {
			a.op("VMULPS", f, k.mean, k.mean)
		}
		k.write()
		k.next([]string{"ldDO", "ldDOut", "ldRaw", "ldOut2", "ldRstd"}, []*reg{k.do, k.dout, k.raw, k.out2, k.rstd})
	})
	a.ret()
}

// write writes do of a row, its products with raw and out2, and adds to the weight's gradient.
func (k *normBackFloats) write() {
	dnorm, g, raw := k.take(k.args, "dnorm", "SI"), k.ymm(11, "dout"), k.ymm(12, "raw")
	k.zero(k.sums...)
	k.vectors("write", "lines", 4, func(i int) {
		k.op("VMULPS", k.vector(k.dout, i), k.alpha, g)
		k.op("VMOVUPS", k.vector(k.raw, i), raw)
		k.op("VMOVUPS", k.vector(dnorm, i), k.x[i])
		k.op("VFMADD231PS", g, raw, k.x[i])
		k.op("VMOVUPS", k.x[i], k.vector(dnorm, i))
		k.op("VMULPS", k.vector(k.weight, i), g, g)
		k.op("VFNMADD231PS", k.mean, raw, g)
		k.op("VFMADD231PS", g, raw, k.sums[i%2])
		k.op("VFMADD231PS", k.vector(k.out2, i), g, k.sums[2+i%2])
		k.op("VMOVUPS", g, k.vector(k.do, i))
	})
	delta, at := k.hold("DI", "delta"), k.hold("R14", "bytes of it that are written")
	k.mov(k.args.at("at"), at)
	for i := range 2 {
		sum := k.sums[2*i]
		k.op("VADDPS", k.sums[2*i+1], sum, sum)
		foldVector(k.asm, "VADDPS", sum, g)
		k.mov(k.args.at("delta", i), delta)
		k.op("VMOVSS", sum.low(), indexed(delta, at, 1))
	}
	k.add("$4", k.args.at("at"))
	k.drop(dnorm, g, raw, delta, at)
}
