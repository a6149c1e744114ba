package main

// exp2Regs are the registers of exp2: the logits' scale and a polynomial's coefficients.
type exp2Regs struct{ scale, c3, c2, c1, one *reg }

// holdExp2 holds them.
func holdExp2(a *asm) exp2Regs {
	return exp2Regs{a.vec(31, "scale"), a.vec(30, "c3"), a.vec(29, "c2"), a.vec(28, "c1"), a.vec(27, "1")}
}

// exp2 sets dst to 2^x, 0 below the smallest normal number where such are zero; f is lost. x = n + f with n = floor(x),
// and 2^f = 1 + f·(c1 + f·(c2 + f·c3)) to 9e-5: the result will be rounded to bfloat16.
func exp2(a *asm, c *exp2Regs, dst, x, f any) {
	a.op("VREDUCEPS", "$9", x, f)
	a.op("VMOVAPS", f, dst)
	a.op("VFMADD213PS", c.c2, c.c3, dst)
	a.op("VFMADD213PS", c.c1, f, dst)
	a.op("VFMADD213PS", c.one, f, dst)
	a.op("VSCALEFPS", x, dst, dst)
}

// beginExp2 loads the coefficients and makes subnormal numbers zero; endExp2 takes that back. The frame has 8 bytes for
// it.
func beginExp2(a *asm, c *exp2Regs) {
	a.op("STMXCSR", "mode-8(SP)")
	a.op("LDMXCSR", a.bits(0x9FC0)) // all exceptions masked, subnormal inputs and results zero
	a.op("VMOVUPS", a.constant(0.07706857673539672), c.c3)
	a.op("VMOVUPS", a.constant(0.22764331991013126), c.c2)
	a.op("VMOVUPS", a.constant(0.6951171637762403), c.c1)
	a.op("VMOVUPS", a.constant(1), c.one)
}

func endExp2(a *asm) { a.op("LDMXCSR", "mode-8(SP)") }

// fold16 turns the reductions of 16 vectors into the lanes of the first, in order; t and u are used on the way.
func fold16(a *asm, op string, x []*reg, t, u *reg) {
	merge := func(n int, low, high string, imm ...any) {
		for i := range n {
			first, second := x[2*i], x[2*i+1]
			if len(imm) == 0 {
				a.op(low, second, first, t)
				a.op(high, second, first, u)
			} else {
				a.op(low, imm[0], second, first, t)
				a.op(high, imm[1], second, first, u)
			}
			a.op(op, u, t, x[i])
		}
	}
	merge(8, "VUNPCKLPS", "VUNPCKHPS")
	merge(4, "VUNPCKLPD", "VUNPCKHPD")
	merge(2, "VSHUFF32X4", "VSHUFF32X4", "$0x44", "$0xEE")
	merge(1, "VSHUFF32X4", "VSHUFF32X4", "$0x88", "$0xDD")
}
