package model

import (
	"antiphase/device"
	"antiphase/layer"
)

// FLOPs are floating-point operations per token at sequence length T, for the forward pass and for forward plus
// backward. A matrix product costs 2 per weight forward and 4 backward. Causal rows have T/2 attention cells (query,
// key) on average. A cell costs 2 per multiply-add: per output head with q maps, q·D + q·DV forward; backward q·D
// (scores again) + 2·DV (dP and dV, once for all maps) + 2·q·D (dQ, dK).
func (c Config) FLOPs(T int) (forward, train float64) {
	a, err := layer.LookupArch(c.Arch)
	if err != nil {
		return 0, 0
	}
	weights := 0
	for _, p := range Table(c).List {
		if p.Kind == layer.Matrix || p.Kind == layer.LambdaMatrix || p.Kind == layer.Embedding && c.TieEmbed {
			weights += p.Rows * p.Cols
		}
	}
	q, d, dv := a.Maps, c.HeadDim, a.Values*c.HeadDim
	cells := float64(T+1) / 2 * float64(c.Layers*c.Heads)
	fwd := 2 * cells * float64(q*d+q*dv)
	bwd := 2 * cells * float64(q*d+2*dv+2*q*d)
	return 2*float64(weights) + fwd, 6*float64(weights) + fwd + bwd
}

// PromptFLOPs are those of a prompt of T tokens with logits for the last token only.
func (c Config) PromptFLOPs(T int) float64 {
	forward, _ := c.FLOPs(T)
	logits := 2 * float64(c.Vocab) * float64(c.Dim)
	return float64(T)*(forward-logits) + logits
}

// ActivationBytes is the arena memory of a training pass of n rows on a device with these types, except for rounding.
// TestActivationBytes compares it with what passes allocate.
func (c Config) ActivationBytes(n int, t device.Types, r layer.Recompute) int {
	l, err := c.attn(0)
	if err != nil {
		return 0
	}
	act := func(cols int) int { return t.Act.Size() * t.Stride(cols) }
	stat, dim := t.Stat.Size(), act(c.Dim)
	attention, passing := l.Memory(t)
	mlp := 3*dim + act(2*c.FFN) + 2*stat   // both norms' outputs, the second one's sum, gate and up
	ends := 6*dim + stat                   // dx, embedding, branch, last norm's sum and output, its gradient
	backward := dim + act(c.FFN) + passing // of one block
	// Including the stream before each block.
	sum := ends + backward + dim*(c.Layers-1) + mlp + attention
	switch r {
	case layer.RecomputeBlocks:
	case layer.RecomputeAttention:
		sum += (c.Layers - 1) * mlp
	default:
		sum += (c.Layers - 1) * (mlp + attention)
	}
	return n * sum
}
