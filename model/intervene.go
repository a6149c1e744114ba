package model

import (
	"fmt"

	"antiphase/layer"
)

// Intervene makes all passes of the model apply interventions, until it is called again: losses, logits, decoding and the maps of
// Inspect see the same change. Without any, or with some that change nothing, passes are the plain ones to the bit. Keys and
// values that a cache holds from before are those of the other computation: their owner must drop them.
//
// A knocked-out head and a factor on λ cost next to nothing; another second map is computed on the host, on any device.
func (m *Model) Intervene(list ...layer.Intervention) error {
	arch, err := layer.LookupArch(m.Config.Arch)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	for _, v := range list {
		if err := layer.CheckIntervention(v, arch, m.Config.Layers, m.Config.Heads); err != nil {
			return fmt.Errorf("model: %w", err)
		}
	}
	m.version++
	for _, b := range m.blocks {
		if err := b.Attn.Intervene(list); err != nil {
			return fmt.Errorf("model: %w", err)
		}
	}
	return nil
}

// ByHost says that a pass reads and writes device memory on its way, which a recording cannot.
func (m *Model) ByHost() bool {
	for _, b := range m.blocks {
		if b.Attn.ByHost() {
			return true
		}
	}
	return false
}
