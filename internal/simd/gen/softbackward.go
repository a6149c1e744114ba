package main

import "fmt"

// softBackRows is the loop of softBack1 and softBack2 over rows.
type softBackRows struct {
	*fullKernel
	maps      int
	p         []*reg // the rows of logits, then of dS; with one map p stays and dS replaces dp
	dp, mix   *reg
	rows, row *reg   // rows left, bytes of lse and the like that are done
	lse       []*reg // vectors
}

// softBack: simd.SoftTileBack in one call, for one or two maps.
func softBack(a *asm, maps int) {
	k := softBackRows{fullKernel: newFull(a, fmt.Sprintf("softBack%d", maps), "softBackArgs", 4), maps: maps}
	for m := range maps {
		k.p = append(k.p, k.rowsOf("p", []string{"SI", "DI"}[m], m))
		k.lse = append(k.lse, a.ymm(13-m, "lse"))
	}
	k.dp = a.take(k.args, "dp", "R9")
	if maps == 2 {
		k.mix = a.take(k.args, "mix", "R10")
	}
	k.rows, k.row = a.take(k.args, "rows", "R12"), a.hold("R11", "bytes of rows done")
	a.zero(k.row)
	a.repeat("row", k.rows, k.oneRow)
	a.ret()
}

// rowsOf holds a register for element m of a field that is an array, and loads it.
func (k *softBackRows) rowsOf(field, name string, m int) *reg {
	r := k.hold(name, field)
	k.mov(k.args.at(field, m), r)
	return r
}

// spread sets a vector to the row's element of a field: lse, delta or lam.
func (k *softBackRows) spread(to *reg, field string, m ...int) {
	at := k.hold("BX", field)
	k.mov(k.args.at(field, m...), at)
	k.op("VBROADCASTSS", indexed(at, k.row, 1), to)
	k.drop(at)
}

// oneRow does a row and moves on to the next.
func (k *softBackRows) oneRow() {
	for m := range k.maps {
		k.spread(k.lse[m], "lse", m)
	}
	if k.maps == 2 {
		k.columns(2, k.two)
		k.clearRest(k.chains[0].x, k.p[0], k.p[1], k.mix)
		k.add(imm(tilePitch), k.p[1])
		k.add(imm(tilePitch), k.mix)
	} else {
		k.columns(4, k.one)
		k.clearRest(k.chains[0].x, k.p[0], k.dp)
	}
	k.add(imm(tilePitch), k.p[0])
	k.add(imm(tilePitch), k.dp)
	k.add("$4", k.hi)
	k.add("$4", k.row)
}

// powers loads the logits of the chains' vectors, those of all maps side by side, and sets q to P.
func (k *softBackRows) powers(chains []chain) {
	for i, c := range chains {
		m := i % k.maps
		k.op("VMOVUPS", k.vector(k.p[m], i/k.maps), c.x)
		k.op("VFMSUB213PS", k.lse[m], k.scale, c.x)
	}
	k.exp2(chains...)
}

// one: P stays in its place, dS = P∘(dP − Δ) replaces dP.
func (k *softBackRows) one(vectors int, masked bool) {
	chains, delta := k.chains[:vectors], k.ymm(12, "Δ")
	k.powers(chains)
	k.spread(delta, "delta", 0)
	for i, c := range chains {
		k.keep(masked, c.q)
		k.op("VMOVUPS", c.q, k.vector(k.p[0], i))
		k.op("VMOVUPS", k.vector(k.dp, i), c.x)
		k.op("VSUBPS", delta, c.x, c.x)
		k.op("VMULPS", c.q, c.x, c.x)
		k.keep(masked, c.x)
		k.op("VMOVUPS", c.x, k.vector(k.dp, i))
	}
	k.drop(delta)
}

// two: mix = P1 + lam·P2, dS1 = P1∘(dP − Δ1), dS2 = lam·P2∘(dP − Δ2).
func (k *softBackRows) two(vectors int, masked bool) {
	chains := k.chains[:2*vectors]
	k.powers(chains)
	for i := range vectors {
		first, second := chains[2*i], chains[2*i+1]
		for m, c := range []chain{first, second} {
			k.keep(masked, c.q)
			k.spread(c.n, "delta", m)
		}
		lam := first.x
		k.spread(lam, "lam")
		k.op("VMULPS", lam, second.q, second.q)
		k.op("VADDPS", second.q, first.q, second.x)
		k.op("VMOVUPS", second.x, k.vector(k.mix, i))
		k.op("VMOVUPS", k.vector(k.dp, i), first.x)
		for m, c := range []chain{first, second} {
			k.op("VSUBPS", c.n, first.x, c.n)
			k.op("VMULPS", c.n, c.q, c.q)
			k.keep(masked, c.q)
			k.op("VMOVUPS", c.q, k.vector(k.p[m], i))
		}
	}
}

// keep clears the lanes after the last column. What memory holds there may be anything.
func (k *softBackRows) keep(masked bool, x *reg) {
	if masked {
		k.op("VANDPS", mem(k.maskAt), x, x)
	}
}
