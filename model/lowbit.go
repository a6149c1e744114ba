package model

import (
	"fmt"

	"antiphase/layer"
)

// SetLowbit makes attention of all layers use low precision until it is set again; the zero value is exact.
func (m *Model) SetLowbit(q layer.Lowbit) error {
	m.version++
	for _, b := range m.blocks {
		if err := b.Attn.SetLowbit(q); err != nil {
			return fmt.Errorf("model: %w", err)
		}
	}
	return nil
}
