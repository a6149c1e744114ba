package bench

import (
	"antiphase/device"
	"antiphase/tensor"
)

// Write is timed: a step writes its ids and rates with it.
func (o *opTimer) Write(dst tensor.Tensor, src []byte) {
	o.op(opKey{name: "Write"}, 0, func() { o.Device.Write(dst, src) }, dst)
}

// Read is timed: a step reads its losses with it.
func (o *opTimer) Read(dst []byte, src tensor.Tensor) {
	o.op(opKey{name: "Read"}, 0, func() { o.Device.Read(dst, src) }, src)
}

// Zero is timed.
func (o timedElements) Zero(t tensor.Tensor) {
	o.op(opKey{name: "Zero"}, 0, func() { o.Device.Zero(t) }, t)
}

// Copy is timed.
func (o timedElements) Copy(dst, src tensor.Tensor) {
	o.op(opKey{name: "Copy"}, 0, func() { o.Device.Copy(dst, src) }, dst, src)
}

// Add is timed.
func (o timedElements) Add(dst, src tensor.Tensor) {
	o.op(opKey{name: "Add"}, 0, func() { o.Device.Add(dst, src) }, dst, src)
}

// AddBias is timed.
func (o timedElements) AddBias(y, b tensor.Tensor) {
	o.op(opKey{name: "AddBias"}, 0, func() { o.Device.AddBias(y, b) }, y, b)
}

// BiasBackward is timed.
func (o timedElements) BiasBackward(db, dy tensor.Tensor) {
	o.op(opKey{name: "BiasBackward"}, 0, func() { o.Device.BiasBackward(db, dy) }, db, dy)
}

// Embed is timed.
func (o timedElements) Embed(out, table, ids tensor.Tensor) {
	o.op(opKey{name: "Embed"}, 0, func() { o.Device.Embed(out, table, ids) }, out, out, ids)
}

// EmbedBackward is timed.
func (o timedElements) EmbedBackward(dtable, dout, ids tensor.Tensor) {
	o.op(opKey{name: "EmbedBackward"}, 0, func() { o.Device.EmbedBackward(dtable, dout, ids) }, dout, dout, ids)
}

// MatMul is timed, each shape and form separately.
func (o timedProducts) MatMul(c, a, b tensor.Tensor, op device.MatMul) {
	k := a.Cols
	if op.TransA {
		k = a.Rows
	}
	key := opKey{productName(op), c.Rows, c.Cols, k}
	o.op(key, 2*float64(c.Rows)*float64(c.Cols)*float64(k), func() { o.Device.MatMul(c, a, b, op) }, a, b, c)
}

// productName names which of a linear layer's products this is: the forms are distinct.
func productName(op device.MatMul) string {
	switch op {
	case device.MatMul{TransB: true}:
		return "MatMul y=x·Wᵀ"
	case device.MatMul{}:
		return "MatMul dx=dy·W"
	case device.MatMul{Accumulate: true}:
		return "MatMul dx+=dy·W"
	case device.MatMul{TransA: true}:
		return "MatMul dW=dyᵀ·x"
	case device.MatMul{TransA: true, Accumulate: true}:
		return "MatMul dW+=dyᵀ·x"
	}
	return op.String()
}

// RMSNorm is timed.
func (o timedElements) RMSNorm(y, rstd, sum, x, delta, w tensor.Tensor, eps float64) {
	o.op(opKey{name: "RMSNorm"}, 0, func() { o.Device.RMSNorm(y, rstd, sum, x, delta, w, eps) }, y, rstd,
		sum, x, delta, w)
}

// RMSNormBackward is timed; dx is read and written.
func (o timedElements) RMSNormBackward(dx, dw, dy, x, w, rstd tensor.Tensor) {
	o.op(opKey{name: "RMSNormBackward"}, 0, func() { o.Device.RMSNormBackward(dx, dw, dy, x, w, rstd) }, dx, dx, dw,
		dy, x, w, rstd)
}

// Rope is timed; x is read and written.
func (o timedElements) Rope(x, table, pos tensor.Tensor, r device.Rope) {
	o.op(opKey{name: "Rope"}, 0, func() { o.Device.Rope(x, table, pos, r) }, x, x, pos)
}

// SwiGLU is timed.
func (o timedElements) SwiGLU(y, gu tensor.Tensor) {
	o.op(opKey{name: "SwiGLU"}, 0, func() { o.Device.SwiGLU(y, gu) }, y, gu)
}

// SwiGLUBackward is timed.
func (o timedElements) SwiGLUBackward(dgu, y, dy, gu tensor.Tensor) {
	o.op(opKey{name: "SwiGLUBackward"}, 0, func() { o.Device.SwiGLUBackward(dgu, y, dy, gu) }, dgu, y, dy, gu)
}

// Attention is timed.
func (o timedAttention) Attention(a *device.Attn) {
	o.op(opKey{name: "Attention"}, attnForward(&a.AttnShape, 1), func() { o.Device.Attention(a) }, a.Q, a.K, a.V,
		a.Out, a.Raw, a.LSE)
}

// AttentionBackward is timed.
func (o timedAttention) AttentionBackward(a *device.Attn, g *device.AttnGrad) {
	o.op(opKey{name: "AttentionBackward"}, attnBackward(&a.AttnShape, 1), func() { o.Device.AttentionBackward(a, g) },
		a.Q, a.K, a.V, a.Out, a.LSE, g.DOut, g.DQ, g.DK, g.DV)
}

// AttentionCached is timed; how much of the cache it reads is not known here.
func (o timedAttention) AttentionCached(a *device.Attn, c *device.Cache, slot, pos tensor.Tensor) {
	o.op(opKey{name: "AttentionCached"}, 0, func() { o.Device.AttentionCached(a, c, slot, pos) }, a.Q, a.Out)
}

// DiffAttention is timed.
func (o timedAttention) DiffAttention(a *device.DiffAttn) {
	o.op(opKey{name: "DiffAttention"}, attnForward(&a.AttnShape, 2), func() { o.Device.DiffAttention(a) },
		a.Q, a.K, a.V, a.Out, a.Raw, a.Out2, a.LSE)
}

// DiffAttentionBackward is timed.
func (o timedAttention) DiffAttentionBackward(a *device.DiffAttn, g *device.DiffAttnGrad) {
	o.op(opKey{name: "DiffAttentionBackward"}, attnBackward(&a.AttnShape, 2),
		func() { o.Device.DiffAttentionBackward(a, g) }, a.Q, a.K, a.V, a.Out, a.Out2, a.LSE, g.DOut, g.DQ,
		g.DK, g.DV, g.DLam)
}

// DiffAttentionCached is timed.
func (o timedAttention) DiffAttentionCached(a *device.DiffAttn, c *device.Cache, slot, pos tensor.Tensor) {
	o.op(opKey{name: "DiffAttentionCached"}, 0, func() { o.Device.DiffAttentionCached(a, c, slot, pos) }, a.Q, a.Out)
}

// SubtractHeads is timed.
func (o timedAttention) SubtractHeads(out, a, lam tensor.Tensor, heads int) {
	o.op(opKey{name: "SubtractHeads"}, 0, func() { o.Device.SubtractHeads(out, a, lam, heads) }, out, a, lam)
}

// SubtractHeadsBackward is timed; of a it reads the second half.
func (o timedAttention) SubtractHeadsBackward(da, dlam, dout, a, lam tensor.Tensor, heads int) {
	o.op(opKey{name: "SubtractHeadsBackward"}, 0,
		func() { o.Device.SubtractHeadsBackward(da, dlam, dout, a, lam, heads) }, da, dlam, dout,
		a.Columns(a.Cols/2, a.Cols), lam)
}

// pagedOps are Ops of a device that computes chunks over pages.
type pagedOps struct {
	*Ops
	pager device.Pager
}

// ChunkRows is the device's.
func (o *pagedOps) ChunkRows() int { return o.pager.ChunkRows() }

// AttentionChunks is timed.
func (o *pagedOps) AttentionChunks(a *device.Attn, c *device.Cache, chunks tensor.Tensor, longest int) (done bool) {
	o.op(opKey{name: "AttentionChunks"}, 0, func() { done = o.pager.AttentionChunks(a, c, chunks, longest) }, a.Q,
		a.Out)
	return done
}

// DiffAttentionChunks is timed.
func (o *pagedOps) DiffAttentionChunks(a *device.DiffAttn, c *device.Cache, chunks tensor.Tensor,
	longest int) (done bool) {
	o.op(opKey{name: "DiffAttentionChunks"}, 0, func() { done = o.pager.DiffAttentionChunks(a, c, chunks, longest) },
		a.Q, a.Out)
	return done
}

// CacheRead is timed. A device without it has no cache of another type than Act, and its rows are embedded.
func (o *pagedOps) CacheRead(k, v tensor.Tensor, c *device.Cache, ids tensor.Tensor) {
	r, ok := o.Device.(device.CacheReader)
	if !ok {
		o.Embed(k, c.K, ids)
		o.Embed(v, c.V, ids)
		return
	}
	o.op(opKey{name: "CacheRead"}, 0, func() { r.CacheRead(k, v, c, ids) }, k, k, v, v)
}

// CacheWrite is timed.
func (o timedAttention) CacheWrite(c *device.Cache, k, v, slot, pos tensor.Tensor) {
	o.op(opKey{name: "CacheWrite"}, 0, func() { o.Device.CacheWrite(c, k, v, slot, pos) }, k, k, v, v)
}

// AttentionProbs is timed.
func (o timedAttention) AttentionProbs(out, q, k tensor.Tensor, p device.Probs) {
	o.op(opKey{name: "AttentionProbs"}, 0, func() { o.Device.AttentionProbs(out, q, k, p) }, out)
}

// Lambda is timed.
func (o timedAttention) Lambda(lam tensor.Tensor, v device.LambdaVecs, init float64) {
	o.op(opKey{name: "Lambda"}, 0, func() { o.Device.Lambda(lam, v, init) }, v.Q1, v.K1, v.Q2, v.K2)
}

// LambdaBackward is timed.
func (o timedAttention) LambdaBackward(d device.LambdaVecs, dlam tensor.Tensor, v device.LambdaVecs) {
	o.op(opKey{name: "LambdaBackward"}, 0, func() { o.Device.LambdaBackward(d, dlam, v) }, dlam)
}

// Sigmoid is timed.
func (o timedElements) Sigmoid(y, x tensor.Tensor) {
	o.op(opKey{name: "Sigmoid"}, 0, func() { o.Device.Sigmoid(y, x) }, y, x)
}

// SigmoidBackward is timed.
func (o timedElements) SigmoidBackward(dx, dy, y tensor.Tensor) {
	o.op(opKey{name: "SigmoidBackward"}, 0, func() { o.Device.SigmoidBackward(dx, dy, y) }, dx, dy, y)
}

// Classify is timed: one product forward, two more for gradients.
func (o timedProducts) Classify(c *device.Classifier) {
	flops := 2 * float64(c.X.Rows) * float64(c.X.Cols) * float64(c.W.Rows)
	if c.DX.Ok() {
		flops *= 3
	}
	o.op(opKey{"Classify", c.X.Rows, c.W.Rows, c.X.Cols}, flops, func() { o.Device.Classify(c) }, c.X, c.W,
		c.Loss, c.DX, c.DW)
}

// SumSquares is timed.
func (o timedElements) SumSquares(dst, x tensor.Tensor) {
	o.op(opKey{name: "SumSquares"}, 0, func() { o.Device.SumSquares(dst, x) }, x)
}

// AdamW is timed: weights, masters and moments are read and written.
func (o timedElements) AdamW(a *device.AdamW) {
	o.op(opKey{name: "AdamW"}, 0, func() { o.Device.AdamW(a) }, a.W, a.Master, a.Master, a.M, a.M, a.V, a.V, a.G)
}

// ArgMax is timed.
func (o timedElements) ArgMax(ids, x tensor.Tensor) {
	o.op(opKey{name: "ArgMax"}, 0, func() { o.Device.ArgMax(ids, x) }, x)
}
