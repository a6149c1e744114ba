package main

// sumAt is where the sums of tile t are in the scratch, or among partial sums: rows of 128 bytes.
func sumAt(t int) int { return t/2*2048 + t%2*64 }

// startTiles sets the first tile to zero, or to partial sums; one that begins with C waits for startFromC.
func (k *gemmTiles) startTiles() {
	k.jump(k.p.at("load"), 1, "JEQ", "column")
	k.op("JGT", "partial")
	for _, t := range k.order() {
		k.use(zeroTile(k.sums[t]))
	}
	k.op("JMP", "column")
	k.mark("partial")
	partial, row := k.take(k.p, "partial", "CX"), k.other
	k.mov("$128", row)
	for _, t := range k.order() {
		k.use(loadTile(k.sums[t], partial, row, sumAt(t)))
	}
	k.drop(partial)
}

// startFromC sets a tile to what is in C, if it is to begin with that.
func (k *gemmTiles) startFromC() {
	k.jump(k.p.at("load"), 1, "JNE", "begin")
	upper, lower := k.other, k.hold("CX", "lower rows of C")
	k.mov(k.p.at("tile"), upper)
	k.mov(k.ldc, lower)
	k.shl(4, lower)
	k.add(upper, lower)
	for _, t := range k.order() {
		k.use(loadTile(k.sums[t], []*reg{upper, lower}[t/2], k.ldc, t%2*64))
		k.gap()
	}
	k.mark("begin")
	k.drop(lower)
}

// park stores the finished tile in the scratch, to be written to C by the next, or among partial sums, which wait for
// the next run of k. Each tile register begins the next tile, with zero or its partial sums, as soon as it is stored.
func (k *gemmTiles) park() {
	k.mov(k.p.at("scratch"), k.scratch)
	k.mov(k.p.at("tile"), k.done)
	k.jump(k.p.at("keep"), 0, "JEQ", "park")
	k.mov(k.p.at("partial"), k.scratch)
	k.zero(k.done)
	k.mark("park")
	k.add(imm(1024*len(k.sums)), k.p.at("partial"))
	row := k.other
	k.mov("$128", row)
	store := func(t int) {
		k.use(storeTile(k.sums[t], k.scratch, row, sumAt(t)))
		k.gap()
	}
	k.jump(k.p.at("load"), 1, "JLT", "tozero")
	k.op("JGT", "topartial")
	for _, t := range k.order() {
		store(t)
	}
	k.op("JMP", "parked")
	k.mark("tozero")
	for _, t := range k.order() {
		store(t)
		k.use(zeroTile(k.sums[t]))
		k.gap()
	}
	k.op("JMP", "parked")
	k.mark("topartial")
	partial := k.take(k.p, "partial", "CX")
	for _, t := range k.order() {
		store(t)
		k.use(loadTile(k.sums[t], partial, row, sumAt(t)))
		k.gap()
	}
	k.mark("parked")
	k.drop(partial)
}

// nextTile finds the tile of C after the present one: below its rows, or at the top of the next column.
func (k *gemmTiles) nextTile() {
	below := k.fresh("below")
	k.mov(k.ldc, k.other)
	k.op("IMULQ", imm(k.height()), k.other)
	k.add(k.p.at("tile"), k.other)
	k.jump(k.p.at("left"), 1, "JNE", below)
	k.mov(k.p.at("c"), k.other)
	k.add(imm(k.width()), k.other)
	k.mark(below)
}

// prefetchRows prefetches as many rows of it as are written in a step: a store that misses the caches waits for the
// line that it overwrites, and a few of them fill the store buffer.
func (k *gemmTiles) prefetchRows() {
	for range k.drain {
		for at := 0; at < k.width(); at += 64 {
			k.op("PREFETCHT0", mem(k.other, at))
		}
		k.op("PREFETCHT0", mem(k.other, k.width()-1)) // a row may begin within a line
		k.add(k.ldc, k.other)
	}
}

// drainRows copies n rows of the scratch to C.
func (k *gemmTiles) drainRows(n int) {
	store := storeWay(k.far)
	for r := range n {
		x, y := k.drained[2*r%16], k.drained[2*r%16+1]
		k.op("VMOVUPS", mem(k.scratch, 128*r), x)
		k.op("VMOVUPS", mem(k.scratch, 128*r+64), y)
		if k.halves {
			k.asm.use(roundPair(x, y, x))
		} else {
			k.op(store, y, mem(k.done, 64))
		}
		k.op(store, x, mem(k.done))
		k.add(k.ldc, k.done)
	}
	k.add(imm(128*n), k.scratch)
}

// drainRest writes out the last tile and returns.
func (k *gemmTiles) drainRest() {
	k.op("TESTQ", k.done, k.done)
	k.op("JZ", "over")
	k.mov(k.p.at("scratch"), k.scratch)
	left := k.hold("CX", "8 rows left")
	k.mov(imm(k.height()/8), left)
	k.repeat("last", left, func() { k.drainRows(8) })
	if k.far {
		k.op("SFENCE") // the caller may publish the result to other threads at once
	}
	k.mark("over")
	k.ret()
}
