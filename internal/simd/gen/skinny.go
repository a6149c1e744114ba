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

// skinnyKernel: c[i·ldc+j] = c₀ + Σ_p a[i·lda+p]·b[j·ldb+p] for i < rows, j < lanes, k a multiple of 4. B's elements
// are turned in registers, so that a lane is a column of C and each sum runs in the order of p as in the tiles.
// For AVX-512 64 shuffles and 16·rows multiply-adds on 1 KiB of B, on different ports: faster than memory.
type skinnyKernel struct {
	*asm
	rows int
}

func (k skinnyKernel) emit() {
	bases := []string{"SI", "R10", "R11", "R12"}[:k.lanes/4]
	k.text(fmt.Sprintf("skinny%dx", k.rows), 0, 57)
	loadArgs(k.asm, "k+0", "CX", "a+8", "DI", "lda+16", "BX", "b+24", "SI", "ldb+32", "R8")
	k.op("SHLQ", "$2", "BX")
	k.op("SHLQ", "$2", "R8")
	k.op("LEAQ", "(BX)(BX*2)", "DX")
	k.op("LEAQ", "(R8)(R8*2)", "R9")
	for i := 1; i < len(bases); i++ {
		k.op("LEAQ", fmt.Sprintf("(%s)(R8*4)", bases[i-1]), bases[i])
	}
	k.op("MOVBLZX", "load+56(FP)", "AX")
	k.op("TESTL", "AX", "AX")
	k.op("JZ", "zero")
	k.eachRow(func(r int, mem string) { k.op("VMOVUPS", mem, k.sum(r)) })
	k.op("JMP", "begin")
	k.mark("zero")
	for r := range k.rows {
		k.op("VXORPS", k.sum(r), k.sum(r), k.sum(r))
	}
	k.mark("begin")
	if k.wide() {
		k.op("MOVQ", "R8", "R13")
		k.op("SHLQ", "$4", "R13") // to the next 16 rows of B
	}
	addr := []string{"%d(DI)", "%d(DI)(BX*1)", "%d(DI)(BX*2)", "%d(DI)(DX*1)"}
	turn(k.asm, bases, func(p int, reg string) {
		for r := range k.rows {
			mem := fmt.Sprintf(addr[r], 4*p)
			if k.wide() {
				k.op("VFMADD231PS.BCST", mem, reg, k.sum(r))
				continue
			}
			k.op("VBROADCASTSS", mem, k.v(8))
			k.op("VFMADD231PS", k.v(8), reg, k.sum(r))
		}
	}, func(bytes int) {
		k.op("ADDQ", imm(bytes), "DI")
		for i := 0; i < len(bases) && bytes == 64; i++ { // whole lines of the next rows, in as many streams
			k.op("LEAQ", fmt.Sprintf("(%s)(R13*1)", bases[i]), "R14")
			for _, row := range rowAddr {
				k.op("PREFETCHT1", fmt.Sprintf(row, "R14"))
			}
		}
	})
	k.eachRow(func(r int, mem string) { k.op("VMOVUPS", k.sum(r), mem) })
	k.ret()
}

// sum is the accumulator of row r, above the registers that turn uses.
func (k skinnyKernel) sum(r int) string {
	if k.wide() {
		return k.v(20 + r)
	}
	return k.v(9 + r)
}

// eachRow walks R13 over the rows of C.
func (k skinnyKernel) eachRow(f func(r int, mem string)) {
	k.op("MOVQ", "c+40(FP)", "R13")
	k.op("MOVQ", "ldc+48(FP)", "AX")
	for r := range k.rows {
		f(r, "(R13)")
		if r < k.rows-1 {
			k.op("LEAQ", "(R13)(AX*4)", "R13")
		}
	}
}
