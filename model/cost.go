package model

import "antiphase/layer"

// FLOPs are floating-point operations per token at sequence length T, forward alone and forward with backward.
// A product of matrices costs 2 per weight forward and 4 backward. An attention cell (query, key), of which causal
// rows have T/2 on average, costs 2 per multiply-add: per output head with q maps forward q·D + q·DV, backward
// q·D (scores again) + 2·DV (dP, dV, once for all maps) + 2·q·D (dQ, dK).
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
	q, d, dv := a.Queries, c.HeadDim, a.Values*c.HeadDim
	cells := float64(T+1) / 2 * float64(c.Layers*c.Heads)
	fwd := 2 * cells * float64(q*d+q*dv)
	bwd := 2 * cells * float64(q*d+2*dv+2*q*d)
	return 2*float64(weights) + fwd, 6*float64(weights) + fwd + bwd
}

// PromptFLOPs are those of a prompt of T tokens, of which the last one alone has logits.
func (c Config) PromptFLOPs(T int) float64 {
	forward, _ := c.FLOPs(T)
	logits := 2 * float64(c.Vocab) * float64(c.Dim)
	return float64(T)*(forward-logits) + logits
}

// ActivationBytes estimates what a training pass keeps of n rows, each activation size bytes wide.
func (c Config) ActivationBytes(n, size int) int {
	a, err := layer.LookupArch(c.Arch)
	if err != nil {
		return 0
	}
	qkv := c.HeadDim * (a.Queries*c.Heads + (a.Keys+a.Values)*c.KVHeads)
	heads := a.Values * c.HeadDim * c.Heads
	kept := heads // out
	if a.Queries == 2 {
		kept += heads // A2·V
	}
	if c.HeadNorm != layer.HeadNormOff {
		kept += heads // before the norm
	}
	perLayer := 6*c.Dim + qkv + kept + 3*c.FFN // two sums, two norms, two branch outputs
	backward := 4*c.Dim + qkv + heads + c.FFN
	return n * size * (perLayer*c.Layers + backward)
}
