package main

// arith is the arithmetic of vector programs: one line for each instruction, with its name on amd64 and its code and
// name in NEON. Operands are in the order of Go's assembler: sub(y, x, dst) is dst = x − y. Constants are operands too.
type arith struct{ *asm }

func (a arith) add(y, x, dst string)    { three(a, "VADDPS", 0x4E20D400, "fadd", "4s", y, x, dst) }
func (a arith) sub(y, x, dst string)    { three(a, "VSUBPS", 0x4EA0D400, "fsub", "4s", y, x, dst) }
func (a arith) mul(y, x, dst string)    { three(a, "VMULPS", 0x6E20DC00, "fmul", "4s", y, x, dst) }
func (a arith) div(y, x, dst string)    { three(a, "VDIVPS", 0x6E20FC00, "fdiv", "4s", y, x, dst) }
func (a arith) min(y, x, dst string)    { three(a, "VMINPS", 0x4EA0F400, "fmin", "4s", y, x, dst) }
func (a arith) max(y, x, dst string)    { three(a, "VMAXPS", 0x4E20F400, "fmax", "4s", y, x, dst) }
func (a arith) and(y, x, dst string)    { three(a, "VANDPS", 0x4E201C00, "and", "16b", y, x, dst) }
func (a arith) or(y, x, dst string)     { three(a, "VORPS", 0x4EA01C00, "orr", "16b", y, x, dst) }
func (a arith) addInt(y, x, dst string) { three(a, "VPADDD", 0x4EA08400, "add", "4s", y, x, dst) }
func (a arith) subInt(y, x, dst string) { three(a, "VPSUBD", 0x6EA08400, "sub", "4s", y, x, dst) }

// fma: acc += x·y; fnma: acc −= x·y.
func (a arith) fma(y, x, acc string)  { three(a, "VFMADD231PS", 0x4E20CC00, "fmla", "4s", y, x, acc) }
func (a arith) fnma(y, x, acc string) { three(a, "VFNMADD231PS", 0x4EA0CC00, "fmls", "4s", y, x, acc) }

func (a arith) sqrt(x, dst string)  { two(a, "VSQRTPS", 0x6EA1F800, "fsqrt", x, dst) }
func (a arith) toInt(x, dst string) { two(a, "VCVTPS2DQ", 0x4E21A800, "fcvtns", x, dst) }

func (a arith) shiftLeft(n int, x, dst string) {
	shift(a, "VPSLLD", 0x4F005400, "shl", 32+n, n, x, dst)
}
func (a arith) shiftRight(n int, x, dst string) {
	shift(a, "VPSRLD", 0x6F000400, "ushr", 64-n, n, x, dst)
}
func (a arith) shiftDown(n int, x, dst string) {
	shift(a, "VPSRAD", 0x4F000400, "sshr", 64-n, n, x, dst)
} // with the sign

// move copies a register, set any operand.
func (a arith) move(x, dst string) { copied(a, "VMOVAPS", x, dst) }
func (a arith) set(x, dst string)  { copied(a, "VMOVUPS", x, dst) }

func copied(a arith, amd64, x, dst string) {
	if a.arm() {
		a.use(vvv(0x4EA01C00, "mov", "16b", dst, x, x))
	} else {
		a.op(amd64, x, dst)
	}
}

// mulAdd: x = x·y + c; mulSub: x = x·y − c. NEON only adds products to what an accumulator holds.
func (a arith) mulAdd(c, y, x string) {
	if a.arm() {
		a.move(c, a.spare())
		a.fma(y, x, a.spare())
		a.move(a.spare(), x)
	} else {
		a.op("VFMADD213PS", c, y, x)
	}
}

func (a arith) mulSub(c, y, x string) {
	if a.arm() {
		a.use(vv(0x6EA0F800, "fneg", a.spare(), c))
		a.fma(y, x, a.spare())
		a.move(a.spare(), x)
	} else {
		a.op("VFMSUB213PS", c, y, x)
	}
}

// subFrom: acc = x·y − acc.
func (a arith) subFrom(y, x, acc string) {
	if a.arm() {
		a.use(vv(0x6EA0F800, "fneg", acc, acc))
		a.fma(y, x, acc)
	} else {
		a.op("VFMSUB231PS", y, x, acc)
	}
}

func three(a arith, amd64 string, code uint32, neon, shape, y, x, dst string) {
	if a.arm() {
		a.use(vvv(code, neon, shape, dst, x, y))
	} else {
		a.op(amd64, y, x, dst)
	}
}

func two(a arith, amd64 string, code uint32, neon, x, dst string) {
	if a.arm() {
		a.use(vv(code, neon, dst, x))
	} else {
		a.op(amd64, x, dst)
	}
}

// shift encodes the distance n as at in NEON.
func shift(a arith, amd64 string, code uint32, neon string, at, n int, x, dst string) {
	if a.arm() {
		a.use(shifted(code, neon, at, n, dst, x))
	} else {
		a.op(amd64, imm(n), x, dst)
	}
}
