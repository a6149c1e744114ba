package model

import (
	"fmt"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// Model is a network with its memory on one device. Its own methods are passes over batches; a Cache runs steps of
// rows. It is used by one goroutine at a time.
type Model struct {
	network
	workspace

	losses tensor.Tensor // Stat [1,N] of the last batch
	lams   lambdas

	lead *lead    // sends operations to other ranks; nil if there are none
	told []*Cache // caches that the leading rank asked for
	twin bool     // weights and rope belong to another model
}

// New builds a model of a complete configuration (see Config.Complete) on d. Weights are zero until Init or Load.
func New(d device.Device, c Config, m layer.Memory) (*Model, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if err := c.CheckSplit(m.Split.Parts()); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	freq, factor, _ := c.Frequencies()
	mod := over(newNetwork(d, c, m.Split, layer.NewRope(d, freq, c.Context, factor, c.RopeInterleaved)))
	whole := false
	defer func() {
		if !whole { // memory ran out
			mod.Free()
		}
	}()
	mod.Params.Alloc(d, m)
	mod.findShared()
	whole = true
	return mod, nil
}

// over is a model over a network, with empty memory for passes.
func over(n network) *Model {
	return &Model{network: n, workspace: workspace{arena: tensor.NewArena(n.dev)}}
}

// Free releases the model's memory; the model cannot be used afterwards.
func (m *Model) Free() {
	m.workspace.free()
	m.lams.free(m.dev)
	if !m.twin {
		m.Params.Free(m.dev)
		m.rope.Free(m.dev)
	}
	for _, b := range m.blocks {
		b.Attn.Free(m.dev)
	}
}
