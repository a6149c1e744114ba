package main

import "fmt"

// stretch names the kernels in which few rows attend to keys and values as they lie in a cache: bfloat16, the heads of
// a position side by side. They repeat the sums of attnForward bit for bit and read memory once, from end to end: that
// is their bound, about 10 cycles a line.
var stretch = isa{tag: "Stretch", file: "stretch", lanes: 16, reg: "Z", regs: 32}

// flush makes subnormal numbers 0, as tiles do; unflush ends that and returns.
func flush(a *asm) {
	a.op("STMXCSR", "mode-8(SP)")
	a.op("LDMXCSR", a.bits(0x9FC0))
}

func unflush(a *asm) {
	a.op("LDMXCSR", "mode-8(SP)")
	a.ret()
}

// keysKernel emits the logits of blocks of 16 positions for some key heads, each with n queries. The 16 lines of a
// block, 32 elements of each position, are a tile as they lie, the left factor; 32 elements of a query are a tile of a
// single column. Their product has the sums of the tiles in which the query is a row of the left factor. About 2 cycles
// a line.
type keysKernel struct {
	*asm
	n                  int
	p                  fields
	ld                 *reg
	next, nextLower    *reg // block to prefetch, its second half
	sums, keys         []*reg
	queries            []*reg // tiles that take turns
	line, query, pitch *reg   // lines of the block, queries, 4
}

func newKeysKernel(a *asm, n int) *keysKernel {
	k := &keysKernel{asm: a, n: n, p: a.kernel(fmt.Sprintf("keys%dx", n), "stretchKeys", 0, "DI")}
	configTiles(a, k.p.at("config"))
	k.ld, k.pitch = a.take(k.p, "ld", "R8"), a.hold("R10", "4")
	k.line, k.query = a.hold("SI", "lines of keys"), a.hold("BX", "queries")
	k.next, k.nextLower = a.hold("R13", "next block"), a.hold("R14", "its second half")
	k.sums, k.keys, k.queries = a.tmms(0, n, "logits"), a.tmms(4, 1, "keys"), a.tmms(5, 3, "queries")
	return k
}

func (k *keysKernel) emit() {
	block, logits, heads := k.hold("R11", "block"), k.hold("CX", "logits"), k.hold("DX", "heads left")
	k.mov("$4", k.pitch)
	k.zero(block)
	k.mark("block")
	k.mov(k.p.elem("k", block, 8), k.line)
	k.mov(k.p.elem("next", block, 8), k.next)
	k.lea(indexed(k.next, k.ld, 8), k.nextLower)
	k.mov(k.p.at("q"), k.query)
	k.mov(block, logits)
	k.shl(6, logits)
	k.add(k.p.at("logits"), logits)
	k.mov(k.p.at("heads"), heads)
	k.repeat("head", heads, func() {
		k.head()
		for i, t := range k.sums {
			k.use(storeTile(t, logits, k.pitch, i*tileRow))
		}
		k.add(imm(k.n*tileRow), logits)
	})
	k.op("INCQ", block)
	k.op("CMPQ", block, k.p.at("count"))
	k.op("JLT", "block")
	k.use(tileRelease())
	k.op("RET")
}

// head sums the products of one key head.
func (k *keysKernel) head() {
	for _, t := range k.sums {
		k.use(zeroTile(t))
	}
	steps := k.take(k.p, "steps", "AX")
	k.repeat("step", steps, func() {
		k.use(loadTile(k.keys[0], k.line, k.ld, 0))
		k.prefetch(0, 6)
		for i, t := range k.sums {
			k.use(loadTile(k.queries[i%3], k.query, k.pitch, 64*i))
			k.prefetch(6+10*i/k.n, 6+10*(i+1)/k.n)
			k.use(multiplyTiles(t, k.keys[0], k.queries[i%3]))
		}
		k.add("$256", k.next)
		k.add("$256", k.nextLower)
		k.add("$64", k.line)
		k.add(imm(64*k.n), k.query)
	})
	k.drop(steps)
}

// prefetch is steps [from,to) of 16, which fetch four lines of every fourth row of the next block: by the time that
// rows have been gone through once these are whole groups of four rows, 4 streams, which memory serves faster than one
// or sixteen.
func (k *keysKernel) prefetch(from, to int) {
	for i := from; i < to; i++ {
		at, half := 64*(i%4), []*reg{k.next, k.nextLower}[i/8]
		if i/4%2 == 0 {
			k.op("PREFETCHT1", mem(half, at))
		} else {
			k.op("PREFETCHT1", indexed(half, k.ld, 4, at))
		}
	}
}

// joinTable interleaves two vectors: the first 16 elements, then the others.
func joinTable(a *asm) {
	for i := range 16 {
		fmt.Fprintf(&a.out, "DATA join%s<>+%d(SB)/8, $0x%08X%08X\n", a.tag, 8*i, 16+i, i)
	}
	fmt.Fprintf(&a.out, "GLOBL join%s<>(SB), RODATA|NOPTR, $128\n", a.tag)
}
