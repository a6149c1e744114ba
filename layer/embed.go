package layer

import (
	"math"

	"antiphase/tensor"
)

// Embed is x[n] = table[ids[n]]: table [V,C].
type Embed struct {
	Table *Param
	split *Split
	ids   tensor.Tensor
}

// NewEmbed declares the table, initialised with deviation C^−½, so that a tied output starts with unit logits.
func NewEmbed(ps *ParamSet, vocab, dim int) *Embed {
	e := &Embed{split: ps.Split, Table: ps.Add(Param{Name: "embed.weight", Kind: Embedding, Rows: vocab, Cols: dim,
		Std: 1 / math.Sqrt(float64(dim))})}
	if s := ps.Split; s != nil {
		e.Table.keep(false, s.run(0, vocab))
	}
	return e
}

// Forward pushes the rows of ids, I32 [1,N]. If ranks split the table, ids are rows of this rank's part or Elsewhere.
func (e *Embed) Forward(p *Pass, ids tensor.Tensor) tensor.Tensor {
	e.ids = ids
	x := p.Act(ids.Cols, e.Table.Cols)
	p.Dev.Embed(x, e.Table.W, ids)
	e.split.add(p, x)
	return x
}

// Backward adds dx to the gradients of the rows that were read.
func (e *Embed) Backward(p *Pass, dx tensor.Tensor) { p.Dev.EmbedBackward(e.Table.G, dx, e.ids) }
