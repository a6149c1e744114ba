// Package layer holds the parts of the network as explicit forward/backward pairs.
//
// There is no tape: a layer's Forward keeps in the layer what its Backward will need, and Backward runs in
// reverse order by hand. Activations live on the arena's stack, which the next pass takes from its bottom again.
// The attention spine (attn.go) is shared; an architecture is one file beside it (attn_plain.go,
// attn_diff.go, attn_diff2.go) and one line in its table.
//
// A file reads in this order: the type with its equation, constructor, Forward, Backward.
// Shapes follow the device package's legend; gradients are named with a d in front.
package layer

import (
	"antiphase/device"
	"antiphase/tensor"
)

// Pass is one trip of N rows through the network.
type Pass struct {
	Dev   device.Device
	Arena *tensor.Arena

	B, T  int           // N = B·T rows; in a cached pass B = N and T = 1
	Pos   tensor.Tensor // I32 [1,N]: position of each row, for RoPE and the cache
	Start tensor.Tensor // I32 [1,N]: first row of each row's document, or absent
	Slot  tensor.Tensor // I32 [1,N]: cache slot of each row; present makes this a cached pass

	Fresh bool // backward sets the gradients of products' weights instead of adding to them, see ParamSet.ZeroSums

	Chunks    []Chunk       // of a cached pass: rows that attend together, in order; the others attend one by one
	ChunkList tensor.Tensor // the same for device.Pager

	Probe Probe // looks inside; nil in ordinary passes

	Recompute Recompute // which activations are dropped and formed again by the backward pass; the zero value drops none

	// Stream [N,C] holds the residual stream between the halves of a block where blocks do not keep it.
	Stream tensor.Tensor

	// Branch [N,C] is where what attention and MLP give waits until the next norm has added it to the residual stream. No backward pass
	// asks for it again, so that all blocks may share one. Without it each gets its own.
	Branch tensor.Tensor
}

// N is the number of rows.
func (p *Pass) N() int { return p.B * p.T }

// Act pushes an activation, laid out as the device likes it.
func (p *Pass) Act(rows, cols int) tensor.Tensor {
	t := p.Dev.Types()
	return p.Arena.New(t.Act, rows, t.Stride(cols)).Columns(0, cols)
}

// branch is the place of a branch.
func (p *Pass) branch(rows, cols int) tensor.Tensor {
	if p.Branch.Ok() {
		return p.Branch
	}
	return p.Act(rows, cols)
}

// padded is Act with rows of whole pieces (see up8), of which it shows cols.
func (p *Pass) padded(rows, cols int) tensor.Tensor {
	return p.Act(rows, up8(cols)).Columns(0, cols)
}

// wide is Act with whole pieces of columns, those from cols on zero: as the factor of a product they add nothing.
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
