package model

import (
	"math"
	"slices"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// network is the layers and their parameters on a device. It does not own the memory that its passes use: a layer.Pass
// brings it.
type network struct {
	Config Config
	Params *layer.ParamSet

	dev    device.Device
	embed  *layer.Embed
	rope   *layer.Rope
	blocks []*Block
	norm   *layer.Norm
	loss   *layer.Loss

	parts  []int             // start of each part in Params.List, and its length
	shared [][]tensor.Tensor // by part: gradients of which each rank of a split model has a share
}

// newNetwork makes the layers, which add their parameters to the table in order. Parameters have no memory yet.
func newNetwork(d device.Device, c Config, split *layer.Split, rope *layer.Rope) network {
	ps := layer.NewParamSet()
	ps.Split = split
	n := network{Config: c, Params: ps, dev: d, rope: rope, parts: []int{0}}
	n.embed = layer.NewEmbed(ps, c.Vocab, c.Dim)
	for l := range c.Layers {
		first := len(ps.List)
		b := newBlock(ps, c, l, rope)
		n.blocks = append(n.blocks, b)
		n.parts = append(n.parts, first, first+slices.Index(ps.List[first:], b.Norm2.W))
	}
	n.parts = append(n.parts, len(ps.List))
	n.norm = layer.NewNorm(ps, "norm", c.Dim, c.NormEps)
	w := n.embed.Table
	if !c.TieEmbed {
		w = nil
	}
	n.loss = layer.NewLoss(ps, w, c.Vocab, c.Dim)
	n.parts = append(n.parts, len(ps.List))
	return n
}

// Table is the parameter table of a configuration, without memory.
func Table(c Config) *layer.ParamSet { return newNetwork(nil, c, nil, nil).Params }

func (c Config) residualGain() float64 {
	if c.InitResidual {
		return 1 / math.Sqrt(2*float64(c.Layers))
	}
	return 1
}

// Device is the device that holds the model.
func (n *network) Device() device.Device { return n.dev }

// Init draws fresh weights from a seed.
func (n *network) Init(seed uint64) { n.Params.Init(n.dev, seed) }

// Parts is the number of parts that a backward pass completes in turn: the embedding, attention and MLP of each block
// with their norms, and everything after the blocks.
func (n *network) Parts() int { return 2*len(n.blocks) + 2 }

// Part returns the parameters of one part; all parts in order make up Params.List.
func (n *network) Part(i int) []*layer.Param { return n.Params.List[n.parts[i]:n.parts[i+1]] }

// block returns the parameters of a block: two parts.
func (n *network) block(l int) []*layer.Param { return n.Params.List[n.parts[2*l+1]:n.parts[2*l+3]] }

// forward runs the network to the last norm's output h [N,C]. Prompt chunks may be long and have no backward pass:
// their blocks keep nothing.
func (n *network) forward(p *layer.Pass, ids tensor.Tensor, c *Cache) tensor.Tensor {
	x := n.embed.Forward(p, ids)
	p.Branch = p.Act(x.Rows, x.Cols)
	if p.Recompute == layer.RecomputeBlocks || len(p.Chunks) > 0 {
		p.Stream = p.Act(x.Rows, x.Cols)
	}
	var delta tensor.Tensor
	if len(p.Chunks) > 0 {
		x, delta = n.prompts(p, x, c)
	} else {
		for l, b := range n.blocks {
			x, delta = b.Forward(p, x, delta, c.layer(l))
		}
	}
	_, h := n.norm.Forward(p, x, delta)
	return h
}

// prompts is the blocks of a pass with many rows of which nothing is needed later: each leaves the stack as it was. The
// stream before a block takes the place of the embedded rows.
func (n *network) prompts(p *layer.Pass, x tensor.Tensor, c *Cache) (_, delta tensor.Tensor) {
	s, mark := x, p.Arena.Mark()
	for l, b := range n.blocks {
		x, delta = b.passing(p, s, x, delta, c.layer(l))
		p.Arena.Release(mark)
	}
	return x, delta
}

// logits pushes the logits of the rows of h, [·,V] in Stat.
func (n *network) logits(p *layer.Pass, h tensor.Tensor) tensor.Tensor {
	y := p.Arena.New(p.Dev.Types().Stat, h.Rows, n.Config.Vocab)
	n.loss.Logits(p, y, h)
	return y
}

// backward runs the backward pass after forward and the loss: dh is the gradient of forward's output, dx [N,C] is zero
// and becomes the gradient of the embedding's output. ready is called as each part's gradients are complete, the last
// part first.
func (n *network) backward(p *layer.Pass, dx, dh tensor.Tensor, ready func(part int)) {
	n.norm.Backward(p, dx, dh)
	ready(n.Parts() - 1)
	for l := len(n.blocks) - 1; l >= 0; l-- {
		n.blocks[l].Backward(p, dx, func() { ready(2*l + 2) })
		ready(2*l + 1)
	}
	n.embed.Backward(p, dx)
	ready(0)
}
