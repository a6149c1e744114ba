package layer

import (
	"math"

	"antiphase/tensor"
)

// Embed is x[n] = table[ids[n]]: table [V,C].
type Embed struct {
	Table *Param
	ids   tensor.Tensor
}

// NewEmbed declares the table, started with deviation C^−½ so that a tied output begins with unit logits.
func NewEmbed(ps *ParamSet, vocab, dim int) *Embed {
	return &Embed{Table: ps.Add(Param{Name: "embed.weight", Kind: Embedding, Rows: vocab, Cols: dim, Std: 1 / math.Sqrt(float64(dim))})}
}

// Forward pushes the rows of ids, I32 [1,N].
func (e *Embed) Forward(p *Pass, ids tensor.Tensor) tensor.Tensor {
	e.ids = ids
	x := p.Act(ids.Cols, e.Table.Cols)
	p.Dev.Embed(x, e.Table.W, ids)
	return x
}

// Backward adds dx to the gradients of the rows that were read.
func (e *Embed) Backward(p *Pass, dx tensor.Tensor) { p.Dev.EmbedBackward(e.Table.G, dx, e.ids) }
