package device

import (
	"fmt"

	"antiphase/tensor"
)

// CheckAttentionProbs checks AttentionProbs' tensors and the rows and heads it selects.
func CheckAttentionProbs(out, q, k tensor.Tensor, p Probs, t Types) {
	heads := p.D > 0 && q.Cols%p.D == 0 && k.Cols%p.D == 0 &&
		p.QHead >= 0 && p.QHead < q.Cols/p.D && p.KHead >= 0 && p.KHead < k.Cols/p.D
	rows := p.T > 0 && q.Rows%p.T == 0 && p.Seq >= 0 && p.Seq < q.Rows/p.T && p.Row >= 0 && p.Row+out.Rows <= p.T
	if !(heads && rows && has(q, t.Act, q.Rows, q.Cols) && has(k, t.Act, q.Rows, k.Cols) &&
		has(out, t.Stat, out.Rows, p.T)) {
		fail(fmt.Sprintf("AttentionProbs %+v", p),
			"out[rows,T] in Stat, q and k[B·T,heads·D] in Act, all selected heads and rows inside", arg{"out", out},
			arg{"q", q}, arg{"k", k})
	}
}

// valid reports whether the geometry is consistent.
func (s *AttnShape) valid() bool {
	return s.B >= 0 && s.T >= 0 && s.Heads > 0 && s.Groups > 0 && s.Heads%s.Groups == 0 && s.D > 0 && s.DV > 0
}

// String shows the geometry.
func (s *AttnShape) String() string {
	return fmt.Sprintf("B=%d T=%d H=%d G=%d D=%d DV=%d", s.B, s.T, s.Heads, s.Groups, s.D, s.DV)
}

// ok reports whether the norm's weight fits; its outputs depend on the op.
func (h *HeadNorm) ok(dv int, t Types) bool { return !h.On || opt(h.Weight, t.Act, 1, dv) }

// Check checks Attention's tensors.
func (a *Attn) Check(t Types) {
	n, w := a.B*a.T, a.Heads*a.DV
	if !(a.valid() && a.inputs(t) && has(a.Out, t.Act, n, w) && iff(a.Norm.On, a.Raw, t.Act, n, w) &&
		opt(a.LSE, t.Stat, n, a.Heads) && iff(a.Norm.On, a.Rstd, t.Stat, n, a.Heads)) {
		a.fail("Attention")
	}
}

func (a *Attn) inputs(t Types) bool {
	n := a.B * a.T
	return has(a.Q, t.Act, n, a.Heads*a.D) && has(a.K, t.Act, n, a.Groups*a.D) && has(a.V, t.Act, n, a.Groups*a.DV) &&
		opt(a.Start, tensor.I32, 1, n) && a.Norm.ok(a.DV, t)
}

func (a *Attn) fail(op string) {
	fail(op+" of "+a.String(), "Q[N,H·D], K[N,G·D], V[N,G·DV], Out, Raw[N,H·DV] and norm[1,DV] in Act, LSE, "+
		"Rstd[N,H] in Stat, Start[1,N] in I32",
		arg{"Q", a.Q}, arg{"K", a.K}, arg{"V", a.V}, arg{"Start", a.Start}, arg{"Out", a.Out}, arg{"Raw", a.Raw},
		arg{"LSE", a.LSE}, arg{"Rstd", a.Rstd}, arg{"norm", a.Norm.Weight})
}

// CheckBackward checks AttentionBackward's tensors: LSE, Raw and Rstd are required with the norm on, LSE and Out with
// it off.
func (a *Attn) CheckBackward(g *AttnGrad, t Types) {
	n, w := a.B*a.T, a.Heads*a.DV
	kept := has(a.Out, t.Act, n, w)
	if a.Norm.On {
		kept = has(a.Raw, t.Act, n, w) && has(a.Rstd, t.Stat, n, a.Heads)
	}
	if !(a.valid() && a.inputs(t) && kept && has(a.LSE, t.Stat, n, a.Heads)) {
		a.fail("AttentionBackward")
	}
	if !(has(g.DOut, t.Act, n, w) && has(g.DQ, t.Act, n, a.Q.Cols) && has(g.DK, t.Act, n, a.K.Cols) &&
		has(g.DV, t.Act, n, a.V.Cols) && iff(a.Norm.On && a.Norm.Weight.Ok(), g.DNorm, t.Stat, 1, a.DV)) {
		fail("AttentionBackward of "+a.String(),
			"DOut[N,H·DV], DQ, DK, DV as Q, K, V in Act, DNorm[1,DV] in Stat when the norm has a weight",
			arg{"DOut", g.DOut}, arg{"DQ", g.DQ}, arg{"DK", g.DK}, arg{"DV", g.DV}, arg{"DNorm", g.DNorm})
	}
}

// CheckCached checks AttentionCached's tensors.
func (a *Attn) CheckCached(c *Cache, slot, pos tensor.Tensor, t Types) {
	n, w := a.Q.Rows, a.Heads*a.DV
	if !(a.valid() && a.Norm.ok(a.DV, t) && has(a.Q, t.Act, n, a.Heads*a.D) && has(a.Out, t.Act, n, w) &&
		opt(a.Raw, t.Act, n, w) && opt(a.Rstd, t.Stat, n, a.Heads)) {
		a.fail("AttentionCached")
	}
	if !c.fits(CacheCols(t.Cache, a.Groups, a.D), CacheCols(t.Cache, a.Groups, a.DV), n, slot, pos, t) {
		c.fail("AttentionCached of "+a.String(), slot, pos, arg{"Q", a.Q})
	}
}

// fits reports whether the pages hold heads of kw and vw columns, and slot and pos address n rows.
func (c *Cache) fits(kw, vw, n int, slot, pos tensor.Tensor, t Types) bool {
	return c.PageSize > 0 && has(c.K, t.Cache, c.K.Rows, kw) && has(c.V, t.Cache, c.K.Rows, vw) &&
		has(c.Table, tensor.I32, c.Table.Rows, c.Table.Cols) && has(slot, tensor.I32, 1, n) &&
		has(pos, tensor.I32, 1, n)
}

// fail panics with the cache and the rows that do not fit it.
func (c *Cache) fail(op string, slot, pos tensor.Tensor, rows ...arg) {
	fail(fmt.Sprintf("%s in pages of %d", op, c.PageSize),
		"cache K and V with one number of rows and as wide as their heads in Types.Cache, Table, slot[1,N] and "+
			"pos[1,N] in I32",
		append(rows, arg{"cache K", c.K}, arg{"cache V", c.V}, arg{"Table", c.Table}, arg{"slot", slot},
			arg{"pos", pos})...)
}

// CheckWrite checks CacheWrite's tensors.
func (c *Cache) CheckWrite(k, v, slot, pos tensor.Tensor, t Types) {
	kw, vw := c.Widths()
	rowK, rowV := kw, vw
	if t.Cache == tensor.I8 {
		rowK, rowV = CacheCols(tensor.I8, c.KHeads, c.D), CacheCols(tensor.I8, c.VHeads, c.DV)
	}
	if !(has(k, t.Act, k.Rows, kw) && has(v, t.Act, k.Rows, vw) && c.fits(rowK, rowV, k.Rows, slot, pos, t)) {
		c.fail("CacheWrite", slot, pos, arg{"k", k}, arg{"v", v})
	}
}

// Check checks DiffAttention's tensors.
func (a *DiffAttn) Check(t Types) {
	n, w := a.B*a.T, a.Heads*a.DV
	if !(a.valid() && a.inputs(t) && has(a.Out, t.Act, n, w) && iff(a.Norm.On, a.Raw, t.Act, n, w) &&
		opt(a.Out2, t.Act, n, w) && opt(a.LSE, t.Stat, n, 2*a.Heads) && iff(a.Norm.On, a.Rstd, t.Stat, n, a.Heads)) {
		a.fail("DiffAttention")
	}
}

func (a *DiffAttn) inputs(t Types) bool {
	n := a.B * a.T
	return (a.Keys == 1 || a.Keys == 2) && has(a.Q, t.Act, n, 2*a.Heads*a.D) &&
		has(a.K, t.Act, n, a.Groups*a.Keys*a.D) && has(a.V, t.Act, n, a.Groups*a.DV) && perHead(a.Lam, n, a.Heads, t) &&
		opt(a.Start, tensor.I32, 1, n) && a.Norm.ok(a.DV, t)
}

// perHead reports whether lam is one λ for all, or one for each of n rows and each head.
func perHead(lam tensor.Tensor, n, heads int, t Types) bool {
	return has(lam, t.Stat, 1, 1) || has(lam, t.Stat, n, heads)
}

func (a *DiffAttn) fail(op string) {
	fail(fmt.Sprintf("%s of %v Keys=%d", op, &a.AttnShape, a.Keys),
		"Q[N,H·2·D], K[N,G·Keys·D], V[N,G·DV], Out, Raw, Out2[N,H·DV] and norm[1,DV] in Act, Lam[1,1] or [N,H], "+
			"LSE[N,2H], Rstd[N,H] in Stat, Start[1,N] in I32",
		arg{"Q", a.Q}, arg{"K", a.K}, arg{"V", a.V}, arg{"Lam", a.Lam}, arg{"Start", a.Start}, arg{"Out", a.Out},
		arg{"Raw", a.Raw},
		arg{"Out2", a.Out2}, arg{"LSE", a.LSE}, arg{"Rstd", a.Rstd}, arg{"norm", a.Norm.Weight})
}

// CheckBackward checks DiffAttentionBackward's tensors: LSE and Out2 are required, and Raw and Rstd with the norm on or
// Out with it off.
func (a *DiffAttn) CheckBackward(g *DiffAttnGrad, t Types) {
	n, w := a.B*a.T, a.Heads*a.DV
	kept := has(a.Out, t.Act, n, w)
	if a.Norm.On {
		kept = has(a.Raw, t.Act, n, w) && has(a.Rstd, t.Stat, n, a.Heads)
	}
	if !(a.valid() && a.inputs(t) && kept && has(a.Out2, t.Act, n, w) && has(a.LSE, t.Stat, n, 2*a.Heads)) {
		a.fail("DiffAttentionBackward")
	}
	if !(has(g.DOut, t.Act, n, w) && has(g.DQ, t.Act, n, a.Q.Cols) && has(g.DK, t.Act, n, a.K.Cols) &&
		has(g.DV, t.Act, n, a.V.Cols) &&
		has(g.DLam, t.Stat, n, a.Heads) && iff(a.Norm.On && a.Norm.Weight.Ok(), g.DNorm, t.Stat, 1, a.DV)) {
		fail("DiffAttentionBackward of "+a.String(), "DOut[N,H·DV], DQ, DK, DV as Q, K, V in Act, DLam[N,H] in Stat, "+
			"DNorm[1,DV] in Stat when the norm has a weight",
			arg{"DOut", g.DOut}, arg{"DQ", g.DQ}, arg{"DK", g.DK}, arg{"DV", g.DV}, arg{"DLam", g.DLam},
			arg{"DNorm", g.DNorm})
	}
}

// CheckCached checks DiffAttentionCached's tensors.
func (a *DiffAttn) CheckCached(c *Cache, slot, pos tensor.Tensor, t Types) {
	n, w := a.Q.Rows, a.Heads*a.DV
	if !(a.valid() && (a.Keys == 1 || a.Keys == 2) && a.Norm.ok(a.DV, t) && has(a.Q, t.Act, n, 2*a.Heads*a.D) &&
		has(a.Out, t.Act, n, w) &&
		perHead(a.Lam, n, a.Heads, t) && opt(a.Raw, t.Act, n, w) && opt(a.Rstd, t.Stat, n, a.Heads)) {
		a.fail("DiffAttentionCached")
	}
	if !c.fits(CacheCols(t.Cache, a.Groups*a.Keys, a.D), CacheCols(t.Cache, a.Groups, a.DV), n, slot, pos, t) {
		c.fail(fmt.Sprintf("DiffAttentionCached of %v Keys=%d", &a.AttnShape, a.Keys), slot, pos, arg{"Q", a.Q})
	}
}

// CheckSubtractHeads checks SubtractHeads' tensors.
func CheckSubtractHeads(out, a, lam tensor.Tensor, heads int, t Types) {
	n, w := out.Rows, out.Cols
	if !(heads > 0 && w%heads == 0 && has(out, t.Act, n, w) && has(a, t.Act, n, 2*w) && perHead(lam, n, heads, t)) {
		fail(fmt.Sprintf("SubtractHeads of %d", heads), "out[N,H·DV] and a[N,2H·DV] in Act, lam[1,1] or [N,H] in Stat",
			arg{"out", out}, arg{"a", a}, arg{"lam", lam})
	}
}

// CheckSubtractHeadsBackward checks SubtractHeadsBackward's tensors.
func CheckSubtractHeadsBackward(da, dlam, dout, a, lam tensor.Tensor, heads int, t Types) {
	n, w := dout.Rows, dout.Cols
	if !(heads > 0 && w%heads == 0 && has(dout, t.Act, n, w) && has(a, t.Act, n, 2*w) && has(da, t.Act, n, 2*w) &&
		has(dlam, t.Stat, n, heads) && perHead(lam, n, heads, t)) {
		fail(fmt.Sprintf("SubtractHeadsBackward of %d", heads),
			"dout[N,H·DV] and da, a[N,2H·DV] in Act, dlam[N,H] and lam[1,1] or [N,H] in Stat", arg{"da", da},
			arg{"dlam", dlam}, arg{"dout", dout}, arg{"a", a}, arg{"lam", lam})
	}
}
