// Package device is the interface between the model and the machine: a set of coarse, fused ops.
//
// Everything above this package works with Tensors whose memory only the device accesses; everything below (cpu, cuda,
// and the float64 oracle ref) implements Device. The doc comment of a method is its numeric contract, and devicetest
// checks every implementation against it.
//
// Legend: B sequences, T tokens each, N = B·T rows (row b·T+t), C model width, H output heads (differential pairs for
// DIFF), G key/value groups, D width of a query or key head, DV of a value head, F inner width of the MLP, V
// vocabulary. Matrices are row-major; weights are [out, in].
//
// Unless an op says otherwise:
//   - outputs are overwritten, whatever they held before (NaN too); "accumulates" means out += …;
//   - outputs alias nothing; where an op allows aliasing it says so, and then only exactly equal views;
//   - sums run in at least fp32 (float64 on ref), and the result is rounded once to the output's dtype;
//   - results are a pure function of the inputs: the same bits for any number of threads, and each row's result is
//     independent of the other rows (a batch of n equals n alone). A device may exempt products of many rows, whose
//     order of summation a library chooses, and chunks of prompts (Chunker); it documents the limit;
//   - wrong shapes or dtypes panic with the shapes in the text; device faults surface in Sync.
//
// A Device is used by one goroutine at a time.
package device

import "antiphase/tensor"

// Types are the dtypes a device computes in, and its preferred layout.
type Types struct {
	Act   tensor.DType // weights and activations
	Stat  tensor.DType // master weights, gradients of weights, moments, statistics, λ, losses
	Cache tensor.DType // keys and values in a Cache: Act, the precision of attention's products, or I8
	// OddRows: rows of large activations should start an odd number of cache lines apart, see Stride.
	OddRows bool
}

// Stride is the row pitch for an activation of cols columns. With OddRows, lines that a product writes below each other
// alternate in parity: measured to be faster, by up to a quarter for a whole product.
func (t Types) Stride(cols int) int {
	const line = 64
	per := line / t.Act.Size()
	if !t.OddRows || cols < 2*per {
		return cols
	}
	return ((cols+per-1)/per | 1) * per
}

// Device is one processor with its memory and its ops.
type Device interface {
	// Name describes the device in one line, for logs and reports.
	Name() string
	// Types are the dtypes that layers must allocate.
	Types() Types
	// Alloc returns zeroed memory, Free releases it.
	Alloc(bytes int) *tensor.Buffer
	Free(*tensor.Buffer)
	// Write copies dense host bytes, in dst's dtype, into dst; src may be reused at once.
	Write(dst tensor.Tensor, src []byte)
	// Read waits for earlier work and copies src to dense host bytes.
	Read(dst []byte, src tensor.Tensor)
	// Sync waits for all work and returns the first fault since the last Sync.
	Sync() error
	// Close releases the device's own resources.
	Close() error

	// Zero: t = 0.
	Zero(t tensor.Tensor)
	// Copy: dst = src, converted to dst's dtype (round to nearest even). Same shape.
	Copy(dst, src tensor.Tensor)
	// Add accumulates: dst += src. Same shape; both any float dtype.
	Add(dst, src tensor.Tensor)
	// AddBias: y[n,:] += b[0,:] for y [N,C], b [1,C].
	AddBias(y, b tensor.Tensor)
	// BiasBackward accumulates column sums: db[0,c] += Σ_n dy[n,c].
	BiasBackward(db, dy tensor.Tensor)

	// Embed: out[n,:] = table[ids[n],:] for ids I32 [1,N], table [V,C]. An id outside [0,V) is a fault, except for
	// Elsewhere, which gives a row of zeros.
	Embed(out, table, ids tensor.Tensor)
	// EmbedBackward accumulates: dtable[ids[n],:] += dout[n,:], rows in order of n; nothing for Elsewhere.
	EmbedBackward(dtable, dout, ids tensor.Tensor)

	// MatMul: c = op(a)·op(b), see MatMul. Operands may be strided views.
	MatMul(c, a, b tensor.Tensor, op MatMul)

	// RMSNorm: s = x + delta (s = x when delta is absent; then sum is absent too);
	// rstd[0,n] = 1/√(mean_c s[n,c]² + eps); y[n,c] = s[n,c]·rstd[n]·w[0,c]. w is Act, rstd Stat.
	// sum (= s) may alias x or delta; rstd may be absent. s is rounded to sum's dtype before it is normalised.
	RMSNorm(y, rstd, sum, x, delta, w tensor.Tensor, eps float64)
	// RMSNormBackward accumulates both: with x the normalised input (s above) and x̂ = x·rstd, g = dy·w:
	// dx += rstd·(g − x̂·mean_c(g·x̂));  dw[0,c] += Σ_n dy·x̂.
	RMSNormBackward(dx, dw, dy, x, w, rstd tensor.Tensor)

	// Rope rotates x in place, see Rope.
	Rope(x, table, pos tensor.Tensor, r Rope)

	// SwiGLU: y = silu(g)·u for gu [N,2F] = [g | u], y [N,F]; silu(g) = g·σ(g).
	SwiGLU(y, gu tensor.Tensor)
	// SwiGLUBackward: dgu [N,2F], and y [N,F] again, so that it need not be kept, from dy [N,F] and gu; dgu may alias
	// gu, y may alias dy.
	SwiGLUBackward(dgu, y, dy, gu tensor.Tensor)

	// Attention is causal softmax attention, see Attn.
	Attention(a *Attn)
	AttentionBackward(a *Attn, g *AttnGrad)
	// AttentionCached attends from single rows to a KV cache, see Cache.
	AttentionCached(a *Attn, c *Cache, slot, pos tensor.Tensor)

	// DiffAttention is differential attention, both maps in one op, see DiffAttn.
	DiffAttention(a *DiffAttn)
	DiffAttentionBackward(a *DiffAttn, g *DiffAttnGrad)
	// DiffAttentionCached attends from single rows to a KV cache, reading V once for both maps.
	DiffAttentionCached(a *DiffAttn, c *Cache, slot, pos tensor.Tensor)

	// SubtractHeads: out[n, h·DV+c] = a[n, h·DV+c] − λ·a[n, (H+h)·DV+c], the first half of a row's 2H heads minus λ
	// times the second, for a [N,2H·DV], out [N,H·DV] and lam in Stat: [1,1], one λ for all, or [N,H], one per row and
	// head.
	SubtractHeads(out, a, lam tensor.Tensor, heads int)
	// SubtractHeadsBackward: da [N,2H·DV] and dlam [N,H] in Stat, each row's and head's own share of dλ, from dout
	// [N,H·DV]: da_h = dout_h, da_{H+h} = −λ·dout_h, dlam[n,h] = −Σ_c dout_h·a_{H+h}.
	SubtractHeadsBackward(da, dlam, dout, a, lam tensor.Tensor, heads int)

	// CacheWrite stores row n of k [N,·] and v [N,·], rounded to the cache's dtype, at (slot[n], pos[n]) of the cache.
	CacheWrite(c *Cache, k, v, slot, pos tensor.Tensor)
	// AttentionProbs materialises rows of one softmax map, for inspection only, see Probs.
	AttentionProbs(out, q, k tensor.Tensor, p Probs)

	// Lambda: lam[0,0] = exp(q1·k1) − exp(q2·k2) + init, evaluated in Stat or better.
	Lambda(lam tensor.Tensor, v LambdaVecs, init float64)
	// LambdaBackward accumulates into d's four vectors, with s = Σ dlam over all its elements:
	// dq1 += s·exp(q1·k1)·k1, dk1 += s·exp(q1·k1)·q1, dq2 −= s·exp(q2·k2)·k2, dk2 −= s·exp(q2·k2)·q2.
	LambdaBackward(d LambdaVecs, dlam tensor.Tensor, v LambdaVecs)

	// Sigmoid: y = 1/(1+e^−x). y may alias x.
	Sigmoid(y, x tensor.Tensor)
	// SigmoidBackward: dx = dy·y·(1−y), y being the forward result. dx may alias dy.
	SigmoidBackward(dx, dy, y tensor.Tensor)

	// ArgMax: ids[0,n] = the lowest column of the largest element of row n, for x [N,V] in Stat and ids I32 [1,N]; −1
	// if the row is not a distribution's logits: an element is NaN or +Inf, or all are −Inf.
	ArgMax(ids, x tensor.Tensor)
	// Classify is the output projection fused with cross-entropy and both its gradients, see Classifier.
	Classify(c *Classifier)

	// SumSquares accumulates: dst[0,0] += Σ x². dst is Stat; a fixed order of summation.
	SumSquares(dst, x tensor.Tensor)
	// AdamW updates parameters in place, see AdamW.
	AdamW(a *AdamW)
}
