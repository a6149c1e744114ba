package bench

import (
	"antiphase/device"
	"antiphase/tensor"
)

// counter is a device that counts the memory its users hold. Of a device's optional interfaces it forwards only
// recording, see count.
type counter struct {
	device.Device
	used, peak int
}

// counted is a counter, recording or not.
type counted interface {
	device.Device
	memory() int
}

// recorder is a counter over a device that records its steps.
type recorder struct {
	*counter
	device.Recorder
}

// count wraps d so that steps on it run exactly as without.
func count(d device.Device) counted {
	c := &counter{Device: d}
	if r, ok := d.(device.Recorder); ok {
		return &recorder{c, r}
	}
	return c
}

// memory is the peak, including what the device holds for its ops if it can tell.
func (c *counter) memory() int {
	if s, ok := c.Device.(interface{ Scratch() int }); ok {
		return c.peak + s.Scratch()
	}
	return c.peak
}

// Alloc counts allocated bytes.
func (c *counter) Alloc(bytes int) *tensor.Buffer {
	b := c.Device.Alloc(bytes)
	c.used += b.Size
	c.peak = max(c.peak, c.used)
	return b
}

// Free counts freed bytes.
func (c *counter) Free(b *tensor.Buffer) {
	c.used -= b.Size
	c.Device.Free(b)
}
