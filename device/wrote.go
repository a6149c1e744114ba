package device

import "antiphase/tensor"

// Keeper is a device that caches data derived from memory, such as packed weights, and must be told of writes other
// than its own ops'.
type Keeper interface {
	// Wrote reports that t has new contents.
	Wrote(t tensor.Tensor)
}

// Wrote tells d, if it is a Keeper, that a collective has written t.
func Wrote(d Device, t tensor.Tensor) {
	if k, ok := d.(Keeper); ok {
		k.Wrote(t)
	}
}
