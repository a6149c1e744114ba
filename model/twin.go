package model

import (
	"antiphase/layer"
	"antiphase/tensor"
)

// Twin returns a second model over the weights of m, with its own memory for passes and its own interventions. A pass of
// one may be interrupted between ops by passes of the other. Free the twin before m.
func Twin(m *Model) *Model {
	t := &Model{Config: m.Config, Params: layer.NewParamSet(), dev: m.dev, arena: tensor.NewArena(m.dev), rope: m.rope, lamBuf: make([]float32, len(m.lamBuf)),
		lead: m.lead, twin: true}
	t.Params.Split = m.Params.Split
	t.declare(m.rope)
	t.Params.Share(m.Params)
	t.findShared()
	return t
}
