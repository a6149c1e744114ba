package main

// int8Tiles emits y of rows × 32·cols: a panel of W stays in L1 while those of x stream past it from L2. Tiles 0–1 hold
// the sums of the upper bytes of 16 rows and 32 columns, 2–3 those of the lower ones, 4–5 a step of both kinds of
// bytes, 6 one half of W's after the other: 4 products of 16 cycles for 4 loads of 8, for 64 elements of k.
//
// Finished sums go to a scratch; the steps of the next tile turn them into y, drain rows each, overlapped with the
// products, and write it with non-temporal stores when far.
//
// The narrow form uses fewer tiles (see gemmTiles): first the upper bytes, then the lower ones, two steps of k of x in
// 4–5 and W in 6. It loads half as much again, but is faster if the other hyperthread is busy. The sums of the upper
// bytes are stored while the previous tile is still being written, so two scratches alternate. It needs at least 2
// steps.
//
// With few rows, stream, reading W is the bound, and memory serves several streams faster than one: lines of the 8
// panels after the current 8 are prefetched together. In that case x is what is reused soon.
type int8Tiles struct {
	*asm
	stream, far, narrow bool
	p                   fields

	panel, nextPanel *reg // of W: the present one, and the next as far as it is prefetched
	line             *reg // 64
	c, ldc, ldc16    *reg // tile of C, from a row to the next, to the sixteenth
	x, w, steps      *reg // the step's part of x and W, steps left
	temp             *reg

	// Of the previous tile:
	left, sums, place *reg // rows to write, their sums, where they go
	scale             *reg // of its rows
	scales            []*reg
	columns           []*reg // masks
	low8, c256        *reg

	acc, factors []*reg // tiles of sums, of x
	weights      []*reg // tiles of W
	drained      []*reg // two rows' halves: upper sums, lower sums, temporary
}

var int8Ways = []string{"Near", "Far", "Stream"}

func tilesInt8Name(way string, narrow bool) string {
	if narrow {
		return "tilesInt8Narrow" + way
	}
	return "tilesInt8Wide" + way
}

func newInt8Tiles(a *asm, way string, narrow bool) *int8Tiles {
	k := &int8Tiles{asm: a, stream: way == "Stream", far: way == "Far", narrow: narrow,
		p: a.kernel(tilesInt8Name(way, narrow), "int8Args", 8, "DI")}
	configTiles(a, k.p.at("config"))
	k.panel, k.nextPanel, k.line = a.take(k.p, "w", "BX"), a.hold("AX", "next panel of W"), a.hold("R10", "64")
	k.c, k.ldc, k.ldc16 = a.hold("R11", "tile of C"), a.take(k.p, "ldc", "R12"), a.hold("R13", "16 rows of C")
	k.x, k.w, k.steps, k.temp = a.hold("SI", "step of x"), a.hold("R9", "step of W"), a.hold("CX", "steps left"),
		a.hold("R8", "temporary")
	k.left, k.sums, k.place = a.hold("R14", "rows to write"), a.hold("R15", "their sums"), a.hold("DX", "where they go")
	k.scale, k.scales, k.columns = a.hold("BP", "scales of rows"), a.vecs(28, 2, "scales of columns"),
		[]*reg{a.hold("K1", "columns"), a.hold("K2", "columns")}
	k.low8, k.c256, k.drained = a.vec(31, "255"), a.vec(30, "256"), a.vecs(0, 6, "rows of sums")
	k.acc, k.factors, k.weights = a.tmms(0, 4, "sums"), a.tmms(4, 2, "x"), a.tmms(6, 2, "W")
	return k
}

func (k *int8Tiles) emit() {
	k.mov("$64", k.line)
	k.mov(k.ldc, k.ldc16)
	k.shl(4, k.ldc16)
	k.zero(k.left)
	k.copies("c", "atC", "head", "atHead", "partial", "atPartial")
	k.op("VMOVUPS", k.bits(255), k.low8)
	k.op("VMOVUPS", k.constant(256), k.c256)
	k.mark("column")
	k.column()
	k.mark("panel")
	if k.narrow {
		k.passes()
	} else {
		k.start()
		k.turns(k.step)
		k.target()
		for i, t := range k.acc {
			k.use(storeTile(t, k.sums, k.line, 1024*i))
		}
	}
	k.park()
	k.next()
	k.use(tileRelease())
	k.op("TESTQ", k.left, k.left)
	k.op("JZ", "over")
	k.repeat("last", k.left, k.row)
	if k.far {
		k.op("SFENCE") // other threads may see the result as soon as the caller says so
	}
	k.mark("over")
	k.ret()
}

// turns runs step over k.
func (k *int8Tiles) turns(step func()) {
	k.repeat(k.fresh("turn"), k.steps, func() {
		step()
		k.prefetch()
		k.drain()
	})
}

// next goes to the next panel of x and the tile of C below, or to the next panel of W.
func (k *int8Tiles) next() {
	k.mov(k.p.at("strideX"), k.temp)
	k.add(k.temp, k.p.at("atX"))
	k.add("$64", k.p.at("atScale"))
	k.add("$4096", k.p.at("atPartial"))
	k.add(k.ldc16, k.c)
	k.sub("$16", k.p.at("left"))
	k.op("JGT", "panel")
	k.add(k.p.at("strideW"), k.panel)
	k.add("$128", k.p.at("atC"))
	k.add(imm(int8Head), k.p.at("atHead"))
	k.again("column", k.p.at("cols"))
}

// passes is the narrow form of a tile.
func (k *int8Tiles) passes() {
	for pass := range 2 {
		partial, begin, even := k.fresh("partial"), k.fresh("begin"), k.fresh("even")
		k.mov(k.p.at("steps"), k.steps)
		k.op("SHRQ", "$1", k.steps)
		k.jump(k.p.at("load"), 0, "JNE", partial)
		k.zeroSums(pass)
		k.op("JMP", begin)
		k.mark(partial)
		k.mov(k.p.at("atPartial"), k.w)
		for t := range 2 {
			k.use(loadTile(k.acc[t], k.w, k.line, 2048*pass+1024*t))
		}
		k.mark(begin)
		k.mov(k.p.at("atX"), k.x)
		k.mov(k.panel, k.w)
		k.turns(func() { k.narrowStep(pass) })
		k.op("TESTQ", "$1", k.p.at("steps"))
		k.op("JZ", even)
		x, w := k.loads()
		k.use(x(k.factors[0], k.x, k.line, 1024*pass))
		for t := range 2 {
			k.use(w(k.weights[t], k.w, k.line, 1024*t))
			k.use(multiplyBytes(k.acc[t], k.factors[0], k.weights[t]))
		}
		k.mark(even)
		k.mov(k.sums, k.x) // the previous tile may still be in flight
		k.target()
		for t := range 2 {
			k.use(storeTile(k.acc[t], k.sums, k.line, 2048*pass+1024*t))
		}
		if pass == 0 {
			k.mov(k.x, k.sums)
		}
	}
	k.op("XORQ", "$4096", k.p.at("turn"))
}

// zeroSums sets the first two tiles to the sums that a pass begins with.
func (k *int8Tiles) zeroSums(pass int) {
	if pass == 1 {
		k.use(zeroTile(k.acc[0]))
		k.use(zeroTile(k.acc[1]))
		return
	}
	k.zero(k.temp)
	k.mov(k.p.at("atHead"), k.w)
	k.use(loadTile(k.acc[0], k.w, k.temp, int8Sums))
	k.use(loadTile(k.acc[1], k.w, k.temp, int8Sums+64))
}

// narrowStep is two steps of one kind of bytes.
func (k *int8Tiles) narrowStep(pass int) {
	x, w := k.loads()
	for t := range 2 { // apart, see gemmTiles
		for half := range 2 {
			if t == 0 {
				k.use(x(k.factors[half], k.x, k.line, 1024*pass+2048*half))
				k.gap()
			}
			k.use(w(k.weights[0], k.w, k.line, 1024*t+2048*half))
			k.gap()
			k.use(multiplyBytes(k.acc[t], k.factors[half], k.weights[0]))
			k.gap()
		}
	}
	k.add("$4096", k.x)
	k.add("$4096", k.w)
}

// column begins with the first rows, at the top of C.
func (k *int8Tiles) column() {
	k.copies("x", "atX", "scale", "atScale", "rows", "left")
	k.mov(k.p.at("atC"), k.c)
	if k.stream {
		k.op("DECQ", k.p.at("until")) // columns until the next 8
		k.op("JGE", "same")
		k.mov("$7", k.p.at("until"))
	}
	k.mov(k.p.at("strideW"), k.nextPanel)
	if k.stream {
		k.shl(3, k.nextPanel)
	}
	k.add(k.panel, k.nextPanel)
	if k.stream {
		k.mark("same")
	}
}

// copies moves arguments to where the kernel counts, from, to, from, to …: the collector must not see a pointer that
// has run past its operand.
func (k *int8Tiles) copies(fields ...string) {
	for i := 0; i < len(fields); i += 2 {
		k.mov(k.p.at(fields[i]), k.temp)
		k.mov(k.temp, k.p.at(fields[i+1]))
	}
}

// start sets the tiles of sums to −128·Σq of the columns, the same in every line, and zero, or to sums of an earlier
// run of k.
func (k *int8Tiles) start() {
	k.mov(k.p.at("atX"), k.x)
	k.mov(k.p.at("steps"), k.steps)
	k.jump(k.p.at("load"), 0, "JNE", "partial")
	k.zeroSums(0)
	k.use(zeroTile(k.acc[2]))
	k.use(zeroTile(k.acc[3]))
	k.op("JMP", "begin")
	k.mark("partial")
	k.mov(k.p.at("atPartial"), k.w)
	for i, t := range k.acc {
		k.use(loadTile(t, k.w, k.line, 1024*i))
	}
	k.mark("begin")
	k.mov(k.panel, k.w)
}

// loads are those of tiles of x and of W: the operand that streams past is loaded so as not to evict the other from the
// first cache.
func (k *int8Tiles) loads() (x, w func(t, base, stride *reg, disp int) macro) {
	if k.stream {
		return loadTile, streamTile
	}
	return streamTile, loadTile
}

// step is 64 elements of k.
func (k *int8Tiles) step() {
	x, w := k.loads()
	k.use(x(k.factors[0], k.x, k.line, 0))
	k.use(x(k.factors[1], k.x, k.line, 1024))
	for t := range 2 { // apart, see gemmTiles
		k.use(w(k.weights[0], k.w, k.line, 1024*t))
		k.gap()
		k.use(multiplyBytes(k.acc[t], k.factors[0], k.weights[0]))
		k.gap()
		k.use(multiplyBytes(k.acc[2+t], k.factors[1], k.weights[0]))
		k.gap()
	}
	k.add("$2048", k.x)
	k.add("$2048", k.w)
}

// prefetch fetches some lines of the next panel of W, or of the next 8.
func (k *int8Tiles) prefetch() {
	if k.stream {
		k.prefetchStreams()
		return
	}
	k.mov(k.p.at("fetch"), k.temp)
	k.repeat(k.fresh("fetch"), k.temp, func() {
		for i := range 4 {
			k.op("PREFETCHT1", mem(k.nextPanel, 64*i))
		}
		k.add("$256", k.nextPanel)
	})
}

func (k *int8Tiles) prefetchStreams() {
	k.mov(k.p.at("fetch"), k.temp)
	k.mov(k.temp, k.p.at("turns"))
	k.repeat(k.fresh("fetch"), k.p.at("turns"), func() {
		stride := k.temp
		k.mov(k.p.at("strideW"), stride)
		for half := range 2 {
			for _, at := range []operand{mem(k.nextPanel), indexed(k.nextPanel, stride, 1),
				indexed(k.nextPanel, stride, 2)} {
				k.op("PREFETCHT1", at)
			}
			if half == 0 {
				k.add(k.p.at("four"), k.nextPanel)
			}
		}
		k.lea(indexed(stride, stride, 2), stride)
		k.op("PREFETCHT1", indexed(k.nextPanel, stride, 1))
		k.sub(k.p.at("four"), k.nextPanel)
		k.op("PREFETCHT1", indexed(k.nextPanel, stride, 1))
		k.add("$64", k.nextPanel)
	})
}

// drain writes some rows of the previous tile, if any are left.
func (k *int8Tiles) drain() {
	drain, drained := k.fresh("drain"), k.fresh("drained")
	k.op("TESTQ", k.left, k.left)
	k.op("JZ", drained)
	k.mov(k.p.at("drain"), k.temp)
	k.repeat(drain, k.temp, func() {
		k.row()
		k.op("DECQ", k.left)
		k.op("JZ", drained)
	})
	k.mark(drained)
}

// row turns a row of sums into y: 256·upper + lower, times the column's scale, times the row's. Near ones prefetch the
// place of the row 16 below, whose turn is next.
func (k *int8Tiles) row() {
	for i := range 2 {
		hi, lo, t := k.drained[3*i], k.drained[3*i+1], k.drained[3*i+2]
		k.op("VMOVDQU64", mem(k.sums, 1024*i), hi)
		k.op("VMOVDQU64", mem(k.sums, 1024*i+2048), lo)
		int8Round(k.asm, hi, lo, t, k.low8, k.c256)
		k.op("VMULPS", k.scales[i], lo, lo)
		k.op("VMULPS.BCST", mem(k.scale), lo, lo)
		if k.far {
			k.op("VMOVNTPS", lo, mem(k.place, 64*i))
		} else {
			k.op("VMOVUPS", lo, k.columns[i], mem(k.place, 64*i))
			k.op("PREFETCHT0", indexed(k.place, k.ldc16, 1, 64*i))
		}
	}
	k.add("$64", k.sums)
	k.add("$4", k.scale)
	k.add(k.ldc, k.place)
}

// target is where sums go: the scratch, or where they wait for the next run of k.
func (k *int8Tiles) target() {
	k.mov(k.p.at("scratch"), k.sums)
	k.add(k.p.at("turn"), k.sums)
	k.op("CMPQ", k.p.at("keep"), "$0")
	k.op("CMOVQNE", k.p.at("atPartial"), k.sums)
}

// park remembers whose sums are in the scratch.
func (k *int8Tiles) park() {
	k.jump(k.p.at("keep"), 0, "JNE", "kept")
	k.mov(k.c, k.place)
	k.mov(k.p.at("atScale"), k.scale)
	k.mov(k.p.at("left"), k.left)
	k.mov("$16", k.temp)
	k.op("CMPQ", k.left, k.temp)
	k.op("CMOVQGT", k.temp, k.left)
	k.mov(k.p.at("atHead"), k.temp)
	k.op("VMOVUPS", mem(k.temp), k.scales[0])
	k.op("VMOVUPS", mem(k.temp, 64), k.scales[1])
	k.mov("$-1", k.temp)
	k.op("CMPQ", k.p.at("cols"), "$1")
	k.op("CMOVQEQ", k.p.at("last"), k.temp)
	k.op("KMOVW", k.temp, k.columns[0])
	k.op("SHRQ", "$16", k.temp)
	k.op("KMOVW", k.temp, k.columns[1])
	k.mark("kept")
}
