package main

import "fmt"

const (
	unitRow, unitSize = 128, 32 * 128 // bytes of the logits of a unit
	regPairs          = 24            // the permutation that interleaves
)

// attnGrad combines strips of 32 queries with a tile of keys and values in the backward pass: logits x and dP, and the
// softmax backward in units of log 2: with P_m = 2^(scale·x_m − lse_m), mix = P1 + lam·P2, dS1 = P1∘(dP − Δ1), dS2 =
// lam·P2∘(dP − Δ2); with one map mix = P1. It writes mix as a packed B, dS as a packed A and as a packed B: two rows
// and 32 columns at a time hold a line of each kind. Panels of 32 keys that a strip does not see are zeros.
//
// A unit is a strip and one panel: its logits and dP leave room in the first cache for keys and values. That is worth
// more than products in the shadow of the exponentials, which gain nothing here.
type attnGrad struct {
	*asm
	p     fields
	maps  int
	exp   exp2Regs
	pairs *reg // the permutation that interleaves
}

func emitGrad(a *asm, maps int) {
	p := a.kernel(fmt.Sprintf("attnGrad%d", maps), "gradArgs", 8, "DI")
	g := attnGrad{asm: a, p: p, maps: maps, exp: holdExp2(a), pairs: a.vec(regPairs, "interleaving permutation")}
	configTiles(a, p.at("config"))
	for i := range p.off("unit") / 8 {
		copyField(a, p.byte(8*i), p.at("strip", i))
	}
	copyField(a, p.at("strips"), p.at("stripsLeft"))
	a.op("VBROADCASTSS", p.at("scale"), g.exp.scale)
	beginExp2(a, &g.exp)
	a.op("VMOVDQU64", "bytes"+a.tag+"<>(SB)", g.pairs)
	a.repeat("strip", p.at("stripsLeft"), func() {
		g.startStrip()
		a.repeat("unit", p.at("panelsLeft"), func() {
			g.products()
			g.mask()
			g.rows()
			g.nextColumns()
		})
		g.zeroRest()
		g.nextStrip()
	})
	a.use(tileRelease())
	endExp2(a)
	a.ret()
}

// strip is a pointer of the arguments as it is for the present strip.
func (g *attnGrad) strip(field string, i ...int) operand {
	return g.p.byte(g.p.off("strip") + g.p.off(field, i...))
}

// products computes the unit's logits and dP.
func (g *attnGrad) products() {
	for m := range g.maps {
		q := g.hold("R8", "Q")
		g.mov(g.strip("q"), q)
		if m == 1 {
			g.add(g.p.at("strideMap"), q)
		}
		g.unitTimes(q, g.p.at("unitK", m), m, "depth", "strideK")
	}
	do := g.hold("R8", "dO")
	g.mov(g.strip("do"), do)
	g.unitTimes(do, g.p.at("unitV"), g.maps, "depthV", "strideV")
}

// unitTimes multiplies a panel of A with the panel of B that a field points to into unit n, advances to the next panel,
// and drops A.
func (g *attnGrad) unitTimes(panelA *reg, with operand, n int, depth, stride string) {
	panelB, unit := g.hold("BX", "panel of B"), g.hold("R11", "unit")
	g.mov(with, panelB)
	g.mov(g.p.at("unit"), unit)
	g.add(imm(n*unitSize), unit)
	unitProduct(g.asm, panelA, panelB, unit, g.p.at(depth))
	g.advance(g.p.at(stride), with)
	g.drop(panelA, panelB, unit)
}

// advance adds one field to another.
func (g *attnGrad) advance(by, to operand) {
	x := g.hold("AX", "stride")
	g.mov(by, x)
	g.add(x, to)
	g.drop(x)
}

// startStrip gathers the strip's factors and begins with its first panel.
func (g *attnGrad) startStrip() {
	p := g.p
	g.livePanels()
	copyField(g.asm, g.strip("mix"), p.at("unitMix"))
	copyField(g.asm, p.at("v"), p.at("unitV"))
	iota := g.hold("AX", "numbers of columns")
	g.lea(operand(fmt.Sprintf("iota%s<>(SB)", g.tag)), iota)
	g.mov(iota, p.at("unitIota"))
	g.drop(iota)
	lam := g.hold("CX", "lam")
	if g.maps == 2 {
		g.mov(g.strip("lam"), lam)
	}
	for m := range g.maps {
		copyField(g.asm, p.at("k", m), p.at("unitK", m))
		copyField(g.asm, g.strip("pairs", m), p.at("unitPairs", m))
		copyField(g.asm, g.strip("lines", m), p.at("unitLines", m))
		g.factors(m, lam)
	}
	g.drop(lam)
}

// factors keeps lse and Δ of map m, Δ2 times lam, and lam.
func (g *attnGrad) factors(m int, from *reg) {
	at := func(field string, m, half int) operand { return g.p.byte(g.p.off(field, m) + 64*half) }
	lse, delta := g.hold("AX", "lse"), g.hold("DX", "Δ")
	x, y, lam := g.vec(0, "lse"), g.vec(1, "Δ"), g.vec(2, "lam")
	g.mov(g.strip("lse", m), lse)
	g.mov(g.strip("delta", m), delta)
	for half := range 2 {
		g.op("VMOVUPS", mem(lse, 64*half), x)
		g.op("VMOVUPS", mem(delta, 64*half), y)
		if m == 1 {
			g.op("VMOVUPS", mem(from, 64*half), lam)
			g.op("VMOVUPS", lam, g.p.at("rowLam", 16*half))
			g.op("VMULPS", lam, y, y)
		}
		g.op("VMOVUPS", x, at("rowLSE", m, half))
		g.op("VMOVUPS", y, at("rowDelta", m, half))
	}
	g.drop(lse, delta, x, y, lam)
}

// livePanels finds the panels of columns that the strip sees, those that it does not, and whether some columns are
// masked: see simd.Masked.
func (g *attnGrad) livePanels() {
	live, masked := g.hold("AX", "live"), g.hold("CX", "masked")
	g.mov(g.strip("live"), live)
	g.op("MOVLQSX", mem(live), live)
	g.mov(live, masked)
	g.op("SHRQ", "$8", masked)
	g.mov(masked, g.p.at("masked"))
	g.op("ANDQ", "$255", live)
	g.mov(live, g.p.at("panelsLeft"))
	g.op("NEGQ", live)
	g.add(g.p.at("panels"), live)
	g.mov(live, g.p.at("restLeft"))
	g.drop(live, masked)
}

// mask sets logits to −Inf outside of each row's columns lo … hi−1, if the strip is masked.
func (g *attnGrad) mask() {
	g.jump(g.p.at("masked"), 0, "JEQ", "masked")
	m := maskRegs{lo: g.hold("R9", "lo"), hi: g.hold("R11", "hi"),
		columns: g.hold("R14", "numbers of columns"), at: g.hold("AX", "logits")}
	g.mov(g.strip("lo"), m.lo)
	g.mov(g.strip("hi"), m.hi)
	g.mov(g.p.at("unitIota"), m.columns)
	g.mov(g.p.at("unit"), m.at)
	maskPanel(g.asm, m, 32, unitRow, g.maps)
	g.mark("masked")
	g.drop(m.lo, m.hi, m.columns, m.at)
}

// gradPair is two rows of a unit: their logits, 8 bytes for each earlier pair, and vectors of which there are one for
// each row, or each half of each row.
type gradPair struct {
	at, offset      *reg
	lse, delta, lam []*reg
	p, ds           []*reg
	second, x, temp *reg // P2, logits
	words           []*reg
	lines           []*reg
}

// rows goes through the unit, two rows at a time.
func (g *attnGrad) rows() {
	r := gradPair{
		at: g.hold("SI", "logits of two rows"), offset: g.hold("DX", "8 bytes for each pair"),
		p: g.vecs(0, 4, "P1, then mix"), ds: g.vecs(4, 4, "dS"), second: g.vec(8, "P2"), x: g.vec(9, "logits"),
		lines: g.vecs(10, 2, "lines, temporary"), words: g.vecs(12, 2, "pairs of rows"),
		lse: g.vecs(14, 2, "lse"), delta: g.vecs(16, 2, "Δ"), lam: g.vecs(22, 2, "lam"),
	}
	r.temp = r.lines[0]
	g.mov(g.p.at("unit"), r.at)
	g.zero(r.offset)
	g.mark("rows")
	spread := func(field string, m int, to []*reg) {
		for row, x := range to {
			g.op("VBROADCASTSS", indexed(g.p.base.(*reg), r.offset, 1, g.p.off(field, m)+4*row), x)
		}
	}
	if g.maps == 2 {
		spread("rowLam", 0, r.lam)
	}
	for m := range g.maps {
		spread("rowLSE", m, r.lse)
		spread("rowDelta", m, r.delta)
		g.gradMap(m, &r)
	}
	fetchSome(g.asm, g.p.at("fetch"), 1)
	g.add(imm(2*unitRow), r.at)
	g.add("$8", r.offset)
	g.jump(r.offset, 128, "JLT", "rows")
	g.drop(r.at, r.offset, r.second, r.x)
	for _, all := range [][]*reg{r.lse, r.delta, r.lam, r.p, r.ds, r.words, r.lines} {
		g.drop(all...)
	}
}

// gradMap is map m of two rows: both halves of the first, then of the second.
func (g *attnGrad) gradMap(m int, r *gradPair) {
	for i, ds := range r.ds {
		row, at := i/2, i/2*unitRow+i%2*64
		g.op("VMOVUPS", mem(r.at, m*unitSize+at), r.x)
		g.op("VFMSUB213PS", r.lse[row], g.exp.scale, r.x)
		g.op("VMOVUPS", mem(r.at, g.maps*unitSize+at), ds) // dP
		p := r.p[i]
		if m == 0 {
			exp2(g.asm, &g.exp, p, r.x, r.temp)
			g.op("VSUBPS", r.delta[row], ds, ds)
		} else {
			p = r.second
			exp2(g.asm, &g.exp, p, r.x, r.temp)
			g.op("VFMADD231PS", r.lam[row], p, r.p[i])
			g.op("VFMSUB213PS", r.delta[row], r.lam[row], ds)
		}
		g.op("VMULPS", p, ds, ds)
	}
	if m == g.maps-1 {
		g.storePairs(r, r.p, g.p.at("unitMix"), "")
	}
	g.storePairs(r, r.ds, g.p.at("unitPairs", m), g.p.at("unitLines", m))
}

// storePairs writes a line of both tiles of a B: two rows, interleaved; and each row as a line of an A, if there is
// one.
func (g *attnGrad) storePairs(r *gradPair, from []*reg, to, lines operand) {
	for half, w := range r.words {
		g.use(roundPair(w, from[2+half], from[half]))
	}
	b := g.hold("AX", "B")
	g.mov(to, b)
	if lines != "" {
		a, twice := g.hold("CX", "A"), g.hold("R9", "16 bytes for each pair")
		g.mov(lines, a)
		g.lea(indexed(r.offset, r.offset, 1), twice)
		for row, imm := range []string{"$0x44", "$0xEE"} {
			g.op("VSHUFF64X2", imm, r.words[1], r.words[0], r.lines[row])
			g.op("VMOVDQU64", r.lines[row], indexed(a, twice, 8, 64*row))
		}
		g.drop(a, twice)
	}
	for half, w := range r.words {
		g.op("VPERMB", w, g.pairs, w)
		g.op("VMOVDQU64", w, indexed(b, r.offset, 8, 1024*half))
	}
	g.drop(b)
}

// nextColumns goes to the next 32 columns of the results.
func (g *attnGrad) nextColumns() {
	g.advance(g.p.at("strideMix"), g.p.at("unitMix"))
	g.add("$128", g.p.at("unitIota"))
	for m := range g.maps {
		g.advance(g.p.at("stridePairs"), g.p.at("unitPairs", m))
		g.add(imm(panelStep), g.p.at("unitLines", m))
	}
}

// zeroRest clears the panels that the strip does not see.
func (g *attnGrad) zeroRest() {
	zero, at := g.vec(0, "0"), g.hold("AX", "panel")
	g.zero(zero)
	g.jump(g.p.at("restLeft"), 0, "JEQ", "whole")
	g.mark("rest")
	outs := []operand{g.p.at("unitMix")}
	for m := range g.maps {
		outs = append(outs, g.p.at("unitPairs", m), g.p.at("unitLines", m))
	}
	for _, out := range outs {
		g.mov(out, at)
		for i := 0; i < panelStep; i += 64 {
			g.op("VMOVUPS", zero, mem(at, i))
		}
	}
	g.drop(at)
	g.nextColumns()
	g.again("rest", g.p.at("restLeft"))
	g.mark("whole")
	g.drop(zero)
}

// nextStrip goes to the next step of the packed Bs and the next panel of the As.
func (g *attnGrad) nextStrip() {
	g.add(imm(panelStep), g.strip("mix"))
	for m := range g.maps {
		g.add(imm(panelStep), g.strip("pairs", m))
		g.advance(g.p.at("strideLines"), g.strip("lines", m))
		g.add("$128", g.strip("lse", m))
		g.add("$128", g.strip("delta", m))
	}
	for _, field := range []string{"lam", "lo", "hi"} {
		g.add("$128", g.strip(field))
	}
	g.advance(g.p.at("strideQ"), g.strip("q"))
	g.advance(g.p.at("strideDO"), g.strip("do"))
	g.add("$4", g.strip("live"))
}

// byteTable is the permutation of bytes that interleaves the halves of a vector of 32 words.
func byteTable(a *asm) {
	for i := 0; i < 16; i += 2 {
		var x uint64
		for b, word := range []int{i, 16 + i, i + 1, 17 + i} {
			x |= uint64((2*word+1)<<8|2*word) << (16 * b)
		}
		fmt.Fprintf(&a.out, "DATA bytes%s<>+%d(SB)/8, $0x%016X\n", a.tag, 4*i, x)
	}
	fmt.Fprintf(&a.out, "GLOBL bytes%s<>(SB), RODATA|NOPTR, $64\n", a.tag)
}
