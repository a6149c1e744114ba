// Package layer holds the parts of the network as explicit forward/backward pairs.
//
// There is no tape: a layer's Forward saves in the layer what its Backward needs, and Backward calls run in reverse
// order. Activations live on the arena's stack, which the next pass reuses from the bottom. attn.go is shared by all
// attention architectures; each is one file (attn_plain.go, attn_diff.go, attn_diff2.go, attn_gda.go) and one line in
// its table.
//
// A file reads in this order: the type with its equation, constructor, Forward, Backward. Shapes follow the device
// package's legend; gradients are named with a d in front.
package layer

import (
	"antiphase/device"
	"antiphase/tensor"
)

// Pass is one pass of N rows through the network.
type Pass struct {
	Dev   device.Device
	Arena *tensor.Arena

	B, T  int           // N = B·T rows; in a cached pass B = N and T = 1
	Pos   tensor.Tensor // I32 [1,N]: position of each row, for RoPE and the cache
	Start tensor.Tensor // I32 [1,N]: first row of each row's document, or absent
	Slot  tensor.Tensor // I32 [1,N]: cache slot of each row; its presence makes this a cached pass

	Known bool // what depends on weights alone is as the last pass computed it: the weights have not changed since

	Fresh bool // backward overwrites the gradients of products' weights instead of adding, see ParamSet.ZeroSums

	Chunks    []Chunk       // of a cached pass: rows that attend together, in order; other rows attend one by one
	ChunkList tensor.Tensor // the same for device.Pager

	Probe Probe // inspects the pass; nil in ordinary passes

	Recompute Recompute // which activations are dropped and recomputed by the backward pass; the zero value drops none

	// Stream [N,C] holds the residual stream between the two halves of a block if blocks do not keep it.
	Stream tensor.Tensor

	// Branch [N,C] holds the branch output until the next norm adds it to the residual stream. No backward pass needs
	// it, so all blocks share one. If absent, each branch gets its own memory.
	Branch tensor.Tensor
}

// N is the number of rows.
func (p *Pass) N() int { return p.B * p.T }

// Act pushes an activation with the device's preferred row pitch.
func (p *Pass) Act(rows, cols int) tensor.Tensor {
	t := p.Dev.Types()
	return p.Arena.New(t.Act, rows, t.Stride(cols)).Columns(0, cols)
}

// branch returns memory for a branch output.
func (p *Pass) branch(rows, cols int) tensor.Tensor {
	if p.Branch.Ok() {
		return p.Branch
	}
	return p.Act(rows, cols)
}

// padded is Act with rows padded to a multiple of 8 columns (see up8), of which it shows cols.
func (p *Pass) padded(rows, cols int) tensor.Tensor {
	return p.Act(rows, up8(cols)).Columns(0, cols)
}

// wide is Act with a multiple of 8 columns; those after cols are zero and contribute nothing to a product.
func (p *Pass) wide(rows, cols int) tensor.Tensor {
	t := p.Act(rows, up8(cols))
	if t.Cols > cols {
		p.Dev.Zero(t.Columns(cols, t.Cols))
	}
	return t
}

// stat pushes a statistic.
func (p *Pass) stat(rows, cols int) tensor.Tensor {
	return p.Arena.New(p.Dev.Types().Stat, rows, cols)
}
