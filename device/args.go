package device

import "antiphase/tensor"

// MatMul describes a product: c[m,n] (+)= Σ_k op(a)[m,k]·op(b)[k,n]. A linear layer's three products are y = x·Wᵀ
// {TransB}, dx = dy·W {}, dW += dyᵀ·x {TransA, Accumulate}. c may be Act or Stat. k = 0 gives zero (or leaves c
// unchanged when accumulating).
type MatMul struct {
	TransA, TransB bool // op(x) = xᵀ
	Accumulate     bool // c += instead of c =
}

// Rope is the rotary embedding of x [N, Heads·Dim], in place. With h the head and j < Dim/2 the pair,
// (a,b) = elements (2j, 2j+1) of the head when Interleaved, else (j, j+Dim/2):
//
//	a' = a·cos − b·sin,  b' = a·sin + b·cos,  cos = table[p, j], sin = table[p, Dim/2+j], p = pos[0,n].
//
// table [P, Dim] is Stat. Inverse rotates by −angle: the transpose, and so the backward pass.
type Rope struct {
	Heads, Dim  int
	Interleaved bool
	Inverse     bool
}

// AttnShape is the geometry of an attention op. Head h reads key/value group h/(Heads/Groups).
type AttnShape struct {
	B, T   int     // sequences and tokens in each
	Heads  int     // H: output heads; for DIFF the pairs
	Groups int     // G: key/value groups; divides Heads
	D, DV  int     // width of one query or key head, of one value head
	Scale  float64 // factor of the logits, 1/√D
}

// HeadNorm is an optional RMSNorm over each head's output, times a constant factor: out = Scale·w·raw·rstd, rstd =
// 1/√(mean_DV raw² + Eps). On=false gives out = raw, unscaled.
type HeadNorm struct {
	On     bool
	Weight tensor.Tensor // [1,DV], one vector for all heads; absent: all ones
	Eps    float64
	Scale  float64
}

// Attn is causal attention: for head h of sequence b and query t, over keys Start[b·T+t] ≤ s ≤ t,
//
//	P = softmax_s(Scale·q·k_s),  raw = Σ_s P_s v_s,  out = HeadNorm(raw),  LSE = log Σ_s exp(Scale·q·k_s).
//
// Layouts: Q [N,H·D], K [N,G·D], V [N,G·DV], Out and Raw [N,H·DV], LSE and Rstd [N,H] in Stat.
// No T×T map is ever stored. Raw and Rstd are present exactly when Norm.On; LSE may be absent when no
// backward follows. Start is I32 [1,N] (the row within the sequence where the query's document begins,
// never decreasing within a sequence) or absent (0).
type Attn struct {
	AttnShape
	Norm      HeadNorm
	Q, K, V   tensor.Tensor
	Start     tensor.Tensor
	Out, Raw  tensor.Tensor
	LSE, Rstd tensor.Tensor
}

// AttnGrad carries AttentionBackward's tensors. DQ, DK, DV (shaped as Q, K, V) are overwritten,
// DNorm [1,DV] (present when Norm.Weight is) accumulates. With dO the gradient of raw and Δ_t = dO_t·raw_t:
//
//	dP = dO·Vᵀ,  dS = P∘(dP − Δ),  dQ = Scale·dS·K,  dK = Scale·dSᵀ·Q,  dV = Pᵀ·dO   (dK, dV over a group's heads).
type AttnGrad struct {
	DOut       tensor.Tensor
	DQ, DK, DV tensor.Tensor
	DNorm      tensor.Tensor
}

// DiffAttn is differential attention. Head h is the pair of query heads (2h, 2h+1) = (Q1, Q2):
//
//	A_i = softmax(Scale·Q_i·K_iᵀ),  raw = (A1 − λ·A2)·V,  out = HeadNorm(raw),  Out2 = A2·V.
//
// Group g holds Keys key heads: 2 (V1: K1 = key head 2g, K2 = key head 2g+1) or 1 (V2: K1 = K2 = key head g).
// Lam is Stat: [1,1], one λ for all, or [N,H], one per row and head.
// Layouts: Q [N,H·2·D], K [N,G·Keys·D], V [N,G·DV], Out, Raw, Out2 [N,H·DV]; LSE [N,2H] (column 2h+i is map i+1
// of head h) and Rstd [N,H] in Stat. Raw and Rstd are present exactly when Norm.On; Out2 and LSE may be
// absent when no backward follows. Start as in Attn.
type DiffAttn struct {
	AttnShape
	Keys      int
	Norm      HeadNorm
	Q, K, V   tensor.Tensor
	Lam       tensor.Tensor
	Start     tensor.Tensor
	Out, Raw  tensor.Tensor
	Out2      tensor.Tensor
	LSE, Rstd tensor.Tensor
}

// DiffAttnGrad carries DiffAttentionBackward's tensors: DQ, DK, DV overwritten, DNorm accumulates, and
// DLam [N,H] in Stat (overwritten) is each row's and head's own share of dλ. With dO the gradient of raw:
//
//	O1 = raw + λ·Out2,  Δ1 = dO·O1,  Δ2 = dO·Out2,  dP = dO·Vᵀ (once, for both maps)
//	dV = (P1 − λP2)ᵀ·dO,  dS1 = P1∘(dP − Δ1),  dS2 = −λ·P2∘(dP − Δ2),  dλ = −Δ2
//	dQ_i = Scale·dS_i·K_i,  dK_i = Scale·dS_iᵀ·Q_i   (with Keys = 1 both maps add into the one key head)
type DiffAttnGrad struct {
	DOut       tensor.Tensor
	DQ, DK, DV tensor.Tensor
	DLam       tensor.Tensor
	DNorm      tensor.Tensor
}

// Cache is a paged key/value cache of one layer. Position p of slot s lies in row
// Table[s, p/PageSize]·PageSize + p%PageSize of K [rows, G·Keys·D] and V [rows, G·DV], both of Types.Cache.
//
// AttentionCached and DiffAttentionCached take N independent query rows: row n attends to positions 0…pos[n]
// of slot[n] (both I32 [1,N]), which CacheWrite has filled. They read Q, Lam and Norm of their Attn or DiffAttn and
// write Out (Raw and Rstd are scratch when Norm.On and may be absent); K, V, Start, B and T are not looked at.
// A row's result has the same bits whether it comes alone, in a batch, or as part of a prompt.
//
// Where Types.Cache is I8 a row holds a byte for each element and, from the next 16 bytes, a float32 for each of its
// heads, and ends on 16 bytes (see CacheCols): element = scale·(byte − 128), with scale = max|x|/127 over the head and
// byte = 128 + x/scale rounded to nearest.
type Cache struct {
	K, V           tensor.Tensor
	Table          tensor.Tensor // I32 [slots, pages per slot]
	PageSize       int
	KHeads, VHeads int // of an int8 cache: heads in a row of K and of V
	D, DV          int // and their widths
}

// Widths are the elements of a row of K and of V.
func (c *Cache) Widths() (k, v int) {
	if c.K.Type != tensor.I8 {
		return c.K.Cols, c.V.Cols
	}
	return c.KHeads * c.D, c.VHeads * c.DV
}

// CacheCols is the columns of a row of heads × width elements in a Cache of this type.
func CacheCols(t tensor.DType, heads, width int) int {
	if t != tensor.I8 {
		return heads * width
	}
	const scale, align = 4, 16
	up := func(n int) int { return (n + align - 1) / align * align }
	return up(heads*width) + up(heads*scale)
}

// CacheReader is a Device with an int8 cache: CacheRead sets rows of k and v, in Act, to rows ids [1,N] of the cache.
type CacheReader interface {
	CacheRead(k, v tensor.Tensor, c *Cache, ids tensor.Tensor)
}

// Probs selects rows of one map: for sequence Seq of a batch of T-token sequences, query rows
// Row … Row+out.Rows−1 of query head QHead against key head KHead (heads of width D in q and k):
// out[r,s] = softmax_s(Scale·q·k_s) for s ≤ Row+r, 0 beyond; with Logits the scaled logits instead.
// out is Stat [rows, T].
type Probs struct {
	T, D         int
	Seq, Row     int
	QHead, KHead int
	Scale        float64
	Logits       bool
}

// LambdaVecs are λ's four vectors, or their gradients: Stat [1,D] each.
type LambdaVecs struct{ Q1, K1, Q2, K2 tensor.Tensor }

// Classifier is y = X·Wᵀ [N,V] followed by cross-entropy, in chunks of rows so that the logits are never
// held whole. Loss[0,n] = logsumexp(y_n) − y_n[target], 0 where Targets[0,n] = −1.
// When DX is present: dy = Scale·(softmax(y) − onehot), rows with target −1 zero; DX [N,C] = dy·W is
// overwritten, DW [V,C] (Stat) accumulates dyᵀ·X.
//
// Classes that are split among ranks take two calls on each rank, W being its classes and Targets counted from the
// first of them, Elsewhere where another rank has it:
//   - with Part present, DX absent: Part[0,n] = logsumexp(y_n), Part[1,n] = y_n[target], 0 where it is Elsewhere. Rows
//     with target −1 are 0. Loss is left alone;
//   - with Parts present, the Part of all P ranks one after the other: Loss = log Σ_p exp(Parts[2p,n]) −
//     Σ_p Parts[2p+1,n], and that logarithm takes the place of this rank's own in dy.
type Classifier struct {
	X, W    tensor.Tensor // [N,C], [V,C]
	Targets tensor.Tensor // I32 [1,N]
	Loss    tensor.Tensor // Stat [1,N]
	DX, DW  tensor.Tensor
	Scale   float64
	Part    tensor.Tensor // Stat [2,N]
	Parts   tensor.Tensor // Stat [2P,N]
}

// Elsewhere is an id or a target that another rank holds.
const Elsewhere = -2

// AdamW is one decoupled-weight-decay step over flat tensors of n elements:
//
//	ĝ = g·min(1, MaxNorm/√GradSq)   (MaxNorm 0: no clipping)
//	m = β1·m + (1−β1)·ĝ,  v = β2·v + (1−β2)·ĝ²
//	p = p − lr·( (m/c1)/(√(v/c2)+Eps) + Decay·p )
//
// with Rate [1,3] = (lr, c1 = 1−β1^t, c2 = 1−β2^t) in Stat, so that a step may be replayed with new rates.
// p is Master when present, and W = p rounded to W's dtype, or to bf16 values when RoundBF16; without
// Master, p is W itself. M, V, G, Master are Stat. Where W is BF16 and Stat F32, Master may be I16: then p is the
// number whose halves are W and Master (see half.Split), an exact float32 in four bytes instead of six. When
// GradSq[0,0] is not finite nothing changes.
type AdamW struct {
	W, Master, M, V, G       tensor.Tensor
	Rate, GradSq             tensor.Tensor
	Beta1, Beta2, Eps, Decay float64
	MaxNorm                  float64
	RoundBF16                bool
}
