package main

// The arithmetic of vector programs: one line for each instruction, with its name on amd64 and its code and name in NEON. Operands come in the
// order of Go's assembler, so that sub(y, x, dst) is dst = x − y. A constant is an operand like any other.

func (b *body) add(y, x, dst string)    { b.three("VADDPS", 0x4E20D400, "fadd", "4s", y, x, dst) }
func (b *body) sub(y, x, dst string)    { b.three("VSUBPS", 0x4EA0D400, "fsub", "4s", y, x, dst) }
func (b *body) mul(y, x, dst string)    { b.three("VMULPS", 0x6E20DC00, "fmul", "4s", y, x, dst) }
func (b *body) div(y, x, dst string)    { b.three("VDIVPS", 0x6E20FC00, "fdiv", "4s", y, x, dst) }
func (b *body) min(y, x, dst string)    { b.three("VMINPS", 0x4EA0F400, "fmin", "4s", y, x, dst) }
func (b *body) max(y, x, dst string)    { b.three("VMAXPS", 0x4E20F400, "fmax", "4s", y, x, dst) }
func (b *body) and(y, x, dst string)    { b.three("VANDPS", 0x4E201C00, "and", "16b", y, x, dst) }
func (b *body) or(y, x, dst string)     { b.three("VORPS", 0x4EA01C00, "orr", "16b", y, x, dst) }
func (b *body) addInt(y, x, dst string) { b.three("VPADDD", 0x4EA08400, "add", "4s", y, x, dst) }
func (b *body) subInt(y, x, dst string) { b.three("VPSUBD", 0x6EA08400, "sub", "4s", y, x, dst) }

// fma: acc += x·y; fnma: acc −= x·y.
func (b *body) fma(y, x, acc string)  { b.three("VFMADD231PS", 0x4E20CC00, "fmla", "4s", y, x, acc) }
func (b *body) fnma(y, x, acc string) { b.three("VFNMADD231PS", 0x4EA0CC00, "fmls", "4s", y, x, acc) }

func (b *body) sqrt(x, dst string)  { b.two("VSQRTPS", 0x6EA1F800, "fsqrt", x, dst) }
func (b *body) toInt(x, dst string) { b.two("VCVTPS2DQ", 0x4E21A800, "fcvtns", x, dst) }

func (b *body) shiftLeft(n int, x, dst string) { b.shift("VPSLLD", 0x4F005400, "shl", 32+n, n, x, dst) }
func (b *body) shiftRight(n int, x, dst string) {
	b.shift("VPSRLD", 0x6F000400, "ushr", 64-n, n, x, dst)
}
func (b *body) shiftDown(n int, x, dst string) {
	b.shift("VPSRAD", 0x4F000400, "sshr", 64-n, n, x, dst)
} // with the sign

// move copies a register, set an operand.
func (b *body) move(x, dst string) { b.copied("VMOVAPS", x, dst) }
func (b *body) set(x, dst string)  { b.copied("VMOVUPS", x, dst) }

func (b *body) copied(amd64, x, dst string) {
	if b.arm() {
		b.use(vvv(0x4EA01C00, "mov", "16b", dst, x, x))
	} else {
		b.op(amd64, x, dst)
	}
}

// mulAdd: x = x·y + c; mulSub: x = x·y − c. NEON only adds products to what an accumulator holds.
func (b *body) mulAdd(c, y, x string) {
	if b.arm() {
		b.move(c, b.spare())
		b.fma(y, x, b.spare())
		b.move(b.spare(), x)
	} else {
		b.op("VFMADD213PS", c, y, x)
	}
}

func (b *body) mulSub(c, y, x string) {
	if b.arm() {
		b.use(vv(0x6EA0F800, "fneg", b.spare(), c))
		b.fma(y, x, b.spare())
		b.move(b.spare(), x)
	} else {
		b.op("VFMSUB213PS", c, y, x)
	}
}

// subFrom: acc = x·y − acc.
func (b *body) subFrom(y, x, acc string) {
	if b.arm() {
		b.use(vv(0x6EA0F800, "fneg", acc, acc))
		b.fma(y, x, acc)
	} else {
		b.op("VFMSUB231PS", y, x, acc)
	}
}

func (b *body) three(amd64 string, code uint32, neon, shape, y, x, dst string) {
	if b.arm() {
		b.use(vvv(code, neon, shape, dst, x, y))
	} else {
		b.op(amd64, y, x, dst)
	}
}

func (b *body) two(amd64 string, code uint32, neon, x, dst string) {
	if b.arm() {
		b.use(vv(code, neon, dst, x))
	} else {
		b.op(amd64, x, dst)
	}
}

// shift encodes the distance n as at in NEON.
func (b *body) shift(amd64 string, code uint32, neon string, at, n int, x, dst string) {
	if b.arm() {
		b.use(shifted(code, neon, at, n, dst, x))
	} else {
		b.op(amd64, imm(n), x, dst)
	}
}
