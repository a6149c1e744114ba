package device

import "antiphase/tensor"

// Keeper is a device that keeps something made of the contents of memory, such as packed weights, and so must hear of writes that
// are not its own ops'.
type Keeper interface {
	// Wrote says that t has new contents.
	Wrote(t tensor.Tensor)
}

// Wrote tells d, where it keeps something, that a collective has written t.
func Wrote(d Device, t tensor.Tensor) {
	if k, ok := d.(Keeper); ok {
		k.Wrote(t)
	}
}
