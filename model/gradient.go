package model

import (
	"math"
	"slices"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// GradientGroup is the gradients of one kind of parameter: embed, q1, q2, k1, k2 (q and k for a Transformer), v, o,
// lambda, mlp, norm. Biases are in no group.
type GradientGroup struct {
	Name  string
	Count int // number of scalars

	parts []tensor.Tensor
}

// GradientGroups returns the groups over all layers, or of one layer if l ≥ 0. The model must have gradients.
func (n *network) GradientGroups(l int) []GradientGroup {
	var out []GradientGroup
	add := func(name string, g tensor.Tensor) {
		i := slices.IndexFunc(out, func(x GradientGroup) bool { return x.Name == name })
		if i < 0 {
			i = len(out)
			out = append(out, GradientGroup{Name: name})
		}
		out[i].parts = append(out[i].parts, g)
		out[i].Count += g.Len()
	}
	outside := func(list []*layer.Param) {
		for _, p := range list {
			switch p.Kind {
			case layer.Gain:
				add("norm", p.G)
			case layer.Embedding, layer.Matrix:
				add("embed", p.G)
			}
		}
	}
	if l < 0 {
		outside(n.Part(0))
	}
	for i, b := range n.blocks {
		if l >= 0 && i != l {
			continue
		}
		list := n.block(i)
		b.Attn.Gradients(list, add)
		for _, p := range []*layer.Param{b.MLP.GateUp.W, b.MLP.Down.W} {
			add("mlp", p.G)
		}
	}
	if l < 0 {
		outside(n.Part(n.Parts() - 1))
	}
	return out
}

// GradientNorms measures the norms of groups. After construction it allocates nothing.
type GradientNorms struct {
	Groups []GradientGroup
	dev    device.Device
	sums   tensor.Tensor // Stat [1, groups]
	host   []float32
}

// NewGradientNorms measures groups of the model.
func (n *network) NewGradientNorms(groups []GradientGroup) *GradientNorms {
	return &GradientNorms{Groups: groups, dev: n.dev, sums: device.Empty(n.dev, n.dev.Types().Stat, 1, len(groups)),
		host: make([]float32, len(groups))}
}

// Read appends the L2 norm of each group's current gradients.
func (g *GradientNorms) Read(dst []float64) []float64 {
	g.dev.Zero(g.sums)
	for i, x := range g.Groups {
		for _, t := range x.parts {
			g.dev.SumSquares(g.sums.Columns(i, i+1), t)
		}
	}
	device.ReadFloats(g.dev, g.host, g.sums)
	for _, x := range g.host {
		dst = append(dst, math.Sqrt(float64(x)))
	}
	return dst
}

// Free releases the memory.
func (g *GradientNorms) Free() { g.dev.Free(g.sums.Buf) }
