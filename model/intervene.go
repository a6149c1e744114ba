package model

import (
	"fmt"

	"antiphase/layer"
)

// Intervene makes all passes of the model apply interventions until it is called again: losses, logits, decoding and
// the maps of Inspect. An empty list, or one that changes nothing, gives bit-identical plain passes. Keys and values
// already in a cache belong to the previous computation; their owner must drop them.
//
// Disabling a head or scaling λ is nearly free; a replaced second map is computed on the host, for any device.
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

// ByHost reports whether a pass reads or writes device memory from the host, which cannot be recorded.
func (n *network) ByHost() bool {
	for _, b := range n.blocks {
		if b.Attn.ByHost() {
			return true
		}
	}
	return false
}
