package main

// outRegs are the registers of the kernels that write results.
type outRegs struct {
	fields
	dst, src, ldDst, ldSrc, rows, vectors, scale *reg
	from, to, left                               *reg // within a row, or 16 rows
}

// outKernel begins one.
func outKernel(a *asm, name string) (k outRegs) {
	k.fields = a.kernel(name, "outArgs", 0, "AX")
	k.dst, k.src = a.take(k.fields, "dst", "DI"), a.take(k.fields, "src", "SI")
	k.ldDst, k.ldSrc = a.take(k.fields, "ldDst", "R8"), a.take(k.fields, "ldSrc", "R9")
	k.rows, k.vectors = a.take(k.fields, "rows", "CX"), a.take(k.fields, "vectors", "R13")
	k.scale = a.take(k.fields, "scale", "BX")
	k.from, k.to, k.left = a.hold("R10", "source"), a.hold("R11", "destination"), a.hold("DX", "vectors left")
	return k
}

// startRow begins at the start of a row, or of 16.
func startRow(a *asm, k *outRegs) {
	a.mov(k.src, k.from)
	a.mov(k.dst, k.to)
	a.mov(k.vectors, k.left)
}

// scaleRows: row r of dst = scale[r] · row r of src, 16·vectors elements each, or 32·vectors that are rounded to half.
// When far, rows belong to a matrix that is larger than the caches and are written around them, whole lines at a time.
func scaleRows(a *asm, far, half bool) {
	k := outKernel(a, scaleName(far, half))
	scale, x, y := a.vec(0, "scale"), a.vec(1, "elements"), a.vec(2, "16 more")
	a.repeat("row", k.rows, func() {
		a.op("VBROADCASTSS", mem(k.scale), scale)
		startRow(a, &k)
		a.repeat("vector", k.left, func() {
			a.op("VMULPS", mem(k.from), scale, x)
			if half {
				a.op("VMULPS", mem(k.from, 64), scale, y)
				a.use(roundPair(x, y, x))
				a.add("$64", k.from)
			}
			a.op(storeWay(far), x, mem(k.to))
			a.add("$64", k.from)
			a.add("$64", k.to)
		})
		a.add(k.ldDst, k.dst)
		a.add(k.ldSrc, k.src)
		a.add("$4", k.scale)
	})
	endRows(a, far)
}

// turnRows: element (r, c) of dst = scale[0] · element (c, r) of src, for 16·rows and 16·vectors of them: 16 whole rows
// of dst at a time. To half go 32·vectors: pairs of rows of src, interleaved, are 32-bit elements.
func turnRows(a *asm, far, half bool) {
	k := outKernel(a, turnName(far, half))
	block, temp := a.vecs(0, 16, "16 × 16 elements"), a.vecs(16, 4, "temporary")
	scale, pairs := a.vec(31, "scale"), a.vec(regPairs, "interleaving permutation")
	row := a.hold("R12", "row of the block")
	a.op("VBROADCASTSS", mem(k.scale), scale)
	if half {
		a.op("VMOVDQU64", "bytes"+a.tag+"<>(SB)", pairs)
	}
	a.repeat("rows", k.rows, func() {
		startRow(a, &k)
		a.repeat("block", k.left, func() {
			for i, x := range block {
				a.op("VMULPS", mem(k.from), scale, x)
				a.add(k.ldSrc, k.from)
				if half {
					a.op("VMULPS", mem(k.from), scale, temp[i%4])
					a.add(k.ldSrc, k.from)
					a.use(roundPair(x, temp[i%4], x))
					a.op("VPERMB", x, pairs, x)
				}
			}
			a.numbered(append(temp, block...), func() { turnRegisters(a) })
			a.mov(k.to, row)
			for _, x := range block {
				a.op(storeWay(far), x, mem(row))
				a.add(k.ldDst, row)
			}
			a.add("$64", k.to)
		})
		a.mov(k.ldDst, row)
		a.shl(4, row)
		a.add(row, k.dst)
		a.add("$64", k.src)
	})
	endRows(a, far)
}

func scaleName(far, half bool) string {
	if half {
		return "scaleHalves" + way(far)
	}
	return "scaleRows" + way(far)
}

func turnName(far, half bool) string {
	if half {
		return "turnToHalves" + way(far)
	}
	return "turnRows" + way(far)
}

func way(far bool) string {
	if far {
		return "Far"
	}
	return "Near"
}

func storeWay(far bool) string {
	if far {
		return "VMOVNTPS"
	}
	return "VMOVUPS"
}

func endRows(a *asm, far bool) {
	if far {
		a.op("SFENCE") // the caller may publish the result to other threads at once
	}
	a.ret()
}
