package main

import "fmt"

// skinnyRows is the largest number of rows of A for which B is used straight from memory.
const skinnyRows = 4

// skinnyWidth is the number of columns of a call.
func (i isa) skinnyWidth() int {
	if i.arm() {
		return skinnyColumns
	}
	return i.lanes
}

// skinny: c[i·ldc+j] = c₀ + Σ_p a[i·lda+p]·b[j·ldb+p] for i < rows, j < lanes, k a multiple of 4. B's elements are
// turned in registers, so that a lane is a column of C and each sum runs in the order of p as in the tiles.
// For AVX-512 64 shuffles and 16·rows multiply-adds on 1 KiB of B, on different ports: faster than memory.
func (a *asm) skinny(rows int) {
	bases := []string{"SI", "R10", "R11", "R12"}[:a.lanes/4]
	a.text(fmt.Sprintf("skinny%dx", rows), 0, 57)
	a.op("MOVQ", "k+0(FP)", "CX")
	a.op("MOVQ", "a+8(FP)", "DI")
	a.op("MOVQ", "lda+16(FP)", "BX")
	a.op("MOVQ", "b+24(FP)", "SI")
	a.op("MOVQ", "ldb+32(FP)", "R8")
	a.op("SHLQ", "$2", "BX")
	a.op("SHLQ", "$2", "R8")
	a.op("LEAQ", "(BX)(BX*2)", "DX")
	a.op("LEAQ", "(R8)(R8*2)", "R9")
	for i := 1; i < len(bases); i++ {
		a.op("LEAQ", fmt.Sprintf("(%s)(R8*4)", bases[i-1]), bases[i])
	}
	a.op("MOVBLZX", "load+56(FP)", "AX")
	a.op("TESTL", "AX", "AX")
	a.op("JZ", "zero")
	a.eachSkinny(rows, func(r int, mem string) { a.op("VMOVUPS", mem, a.accReg(r)) })
	a.op("JMP", "begin")
	a.mark("zero")
	for r := range rows {
		a.op("VXORPS", a.accReg(r), a.accReg(r), a.accReg(r))
	}
	a.mark("begin")
	if a.wide() {
		a.op("MOVQ", "R8", "R13")
		a.op("SHLQ", "$4", "R13") // to the next 16 rows of B
	}
	addr := []string{"%d(DI)", "%d(DI)(BX*1)", "%d(DI)(BX*2)", "%d(DI)(DX*1)"}
	a.turn(bases, func(p int, reg string) {
		for r := range rows {
			mem := fmt.Sprintf(addr[r], 4*p)
			if a.wide() {
				a.op("VFMADD231PS.BCST", mem, reg, a.accReg(r))
				continue
			}
			a.op("VBROADCASTSS", mem, a.v(8))
			a.op("VFMADD231PS", a.v(8), reg, a.accReg(r))
		}
	}, func(bytes int) {
		a.op("ADDQ", fmt.Sprintf("$%d", bytes), "DI")
		for i := 0; i < len(bases) && bytes == 64; i++ { // whole lines of the next rows, in as many streams
			a.op("LEAQ", fmt.Sprintf("(%s)(R13*1)", bases[i]), "R14")
			for _, row := range rowAddr {
				a.op("PREFETCHT1", fmt.Sprintf(row, "R14"))
			}
		}
	})
	a.eachSkinny(rows, func(r int, mem string) { a.op("VMOVUPS", a.accReg(r), mem) })
	a.op("VZEROUPPER")
	a.op("RET")
}

// accReg is the accumulator of row r, above the registers that turn uses.
func (a *asm) accReg(r int) string {
	if a.wide() {
		return a.v(20 + r)
	}
	return a.v(9 + r)
}

// eachSkinny walks R13 over the rows of C.
func (a *asm) eachSkinny(rows int, f func(r int, mem string)) {
	a.op("MOVQ", "c+40(FP)", "R13")
	a.op("MOVQ", "ldc+48(FP)", "AX")
	for r := range rows {
		f(r, "(R13)")
		if r < rows-1 {
			a.op("LEAQ", "(R13)(AX*4)", "R13")
		}
	}
}
