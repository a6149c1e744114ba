package layer

import (
	"antiphase/device"
	"antiphase/tensor"
)

// Probe inspects a pass. Its arguments are valid only during the call.
type Probe interface {
	// Attention is called by every attention layer once its queries and keys are computed.
	Attention(v View)
	// Hidden is called with the residual stream after every block, both adds done: x [N,C].
	Hidden(layer int, x tensor.Tensor)
}

// View is what an attention layer exposes: enough to compute any row of its maps.
type View struct {
	Layer int
	Shape device.AttnShape
	Maps  int           // 1, or 2 for differential heads
	Keys  int           // key heads per group
	Q, K  tensor.Tensor // rotated
	V     tensor.Tensor // [N, G·DV]
	Out   tensor.Tensor // [N, H·DV]: the heads' output, after their norm and before the output projection
	// Context [N, H·DV] is Σ_j a_j·v_j: the heads' output before their norm and before interventions in the second map.
	Context tensor.Tensor
	Lam     tensor.Tensor // Stat [1,1] or [N,H], as applied; absent without λ
	dev     device.Device
	cfg     *AttnConfig
}

// Group is the group whose keys and values map m of a head reads. It is the same for both maps except in an ablation of
// DIFF V2.
func (v View) Group(head, m int) int { return v.cfg.group(head, m) }

// QueryHead is the query head of map m of a head.
func (v View) QueryHead(head, m int) int { return v.cfg.QueryHead(head, m) }

func (l *Attention) view(p *Pass, s device.AttnShape, q, k, v tensor.Tensor) View {
	a := l.mix.applied()
	return View{Layer: l.cfg.Layer, Shape: s, Maps: l.cfg.Arch.Maps, Keys: l.cfg.Arch.Keys, Q: q, K: k, V: v,
		Out: l.heads, Context: a.raw, Lam: a.lam, dev: p.Dev, cfg: &l.cfg}
}

// rawOr returns the output before the head norm, or the output itself if there is no norm.
func rawOr(raw, out tensor.Tensor) tensor.Tensor {
	if raw.Ok() {
		return raw
	}
	return out
}

// silent reports whether an intervention zeroes the head's output.
func (v View) silent(head int) bool { return v.cfg.edits != nil && v.cfg.edits[head].knockout }

// remap applies an intervention to one row of map m, over the positions up to row.
func (v View) remap(x []float64, head, m, row int, logits bool) {
	if m == 1 && !logits {
		v.cfg.edits.remap(x[:row+1], v.Layer, head, row)
	}
}

// Rows materialises rows of map m (0 or 1) of a head, before interventions, into out, Stat [rows,T], starting at query
// row of sequence seq; with logits, the scaled scores before the softmax.
func (v View) Rows(out tensor.Tensor, head, m, seq, row int, logits bool) {
	v.dev.AttentionProbs(out, v.Q, v.K, device.Probs{
		T: v.Shape.T, D: v.Shape.D, Seq: seq, Row: row, Scale: v.Shape.Scale, Logits: logits,
		QHead: v.cfg.QueryHead(head, m), KHead: v.Group(head, m)*v.Keys + min(m, v.Keys-1),
	})
}

// RowReader reads single rows of a view's maps to the host, reusing its memory.
type RowReader struct {
	v         View
	out       tensor.Tensor
	lam       []float64
	row, diff []float64
}

// RowReader returns a reader of rows of T entries.
func (v View) RowReader(T int) *RowReader {
	r := &RowReader{v: v, row: make([]float64, T), diff: make([]float64, T), lam: make([]float64, v.Lam.Len())}
	r.out = device.Empty(v.dev, v.dev.Types().Stat, 1, T)
	if len(r.lam) > 0 {
		device.ReadFloats(v.dev, r.lam, v.Lam)
	}
	return r
}

// Free releases the reader's device memory.
func (r *RowReader) Free() { r.v.dev.Free(r.out.Buf) }

// Map returns one row of map m of a head: probabilities, or scaled logits. It is valid until the next call.
func (r *RowReader) Map(head, m, seq, row int, logits bool) []float64 {
	r.v.Rows(r.out, head, m, seq, row, logits)
	device.ReadFloats(r.v.dev, r.row, r.out)
	r.v.remap(r.row, head, m, row, logits)
	return r.row
}

// Scores returns one row of the weights the head applies to its values: A, or A1 − λA2; zeros for a disabled head. It
// is valid until the next call.
func (r *RowReader) Scores(head, seq, row int) []float64 {
	if r.v.silent(head) {
		clear(r.diff)
		return r.diff
	}
	copy(r.diff, r.Map(head, 0, seq, row, false))
	if r.v.Maps == 2 {
		lam := r.Lambda(seq*r.v.Shape.T+row, head)
		for s, x := range r.Map(head, 1, seq, row, false) {
			r.diff[s] -= lam * x
		}
	}
	return r.diff
}

// Lambda returns λ of a row and head; 0 without λ.
func (r *RowReader) Lambda(row, head int) float64 {
	switch len(r.lam) {
	case 0:
		return 0
	case 1:
		return r.lam[0]
	}
	return r.lam[row*r.v.Shape.Heads+head]
}
