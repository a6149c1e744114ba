package bench

import (
	"fmt"

	"antiphase/device"
	"antiphase/tensor"
)

// Ceiling is the best possible rate of a device, measured with every figure.
type Ceiling struct {
	Name string
	Unit string                  // of the rate: TFLOP/s or GB/s
	Run  func() (float64, error) // measures once and returns the rate
	Free func()                  // releases its memory; may be nil
}

// Units of rates.
const (
	UnitFLOPs = "TFLOP/s"
	UnitBytes = "GB/s"
)

// scale is the number of FLOPs or bytes per second in one unit.
func (c *Ceiling) scale() float64 {
	if c.Unit == UnitBytes {
		return 1e9
	}
	return 1e12
}

func (c *Ceiling) free() {
	if c.Free != nil {
		c.Free()
	}
}

// product is the given ceiling of products, or the device's own product of large square matrices: large enough to take
// a millisecond, because less does not fill a GPU.
func (c *Config) product() (*Ceiling, error) {
	if c.Product.Run != nil {
		return &c.Product, nil
	}
	for n := 1024; ; n *= 2 {
		p := c.productOf(n)
		for range 2 { // the first builds kernels
			if _, err := p.Run(); err != nil {
				return nil, err
			}
		}
		rate, err := p.Run()
		if err != nil {
			return nil, err
		}
		if cube := float64(n) * float64(n) * float64(n); 2*cube/(rate*1e12) > 1e-3 || n == 8192 {
			return p, nil
		}
		p.free()
	}
}

func (c *Config) productOf(n int) *Ceiling {
	d := c.Device
	act := d.Types().Act
	x, y, z := noisyAct(d, n, n), noisy(d, act, n, n), device.EmptyAct(d, n, n)
	return &Ceiling{
		Name: fmt.Sprintf("own product %d³ %s", n, act), Unit: UnitFLOPs,
		Run: func() (float64, error) {
			sec, err := elapsed(d, func() { d.MatMul(z, x, y, device.MatMul{TransB: true}) })
			return 2 * float64(n) * float64(n) * float64(n) / sec / 1e12, err
		},
		Free: func() { release(d, x, y, z) },
	}
}

// copyBytes is large compared with every cache.
const copyBytes = 256 << 20

// bandwidth is the given ceiling of bytes, or the device's own copy: each byte is read once and written once.
func (c *Config) bandwidth() *Ceiling {
	if c.Bandwidth.Run != nil {
		return &c.Bandwidth
	}
	d := c.Device
	const cols = 4096
	src := device.Empty(d, tensor.F32, copyBytes/4/cols, cols)
	dst := device.Empty(d, tensor.F32, copyBytes/4/cols, cols)
	return &Ceiling{
		Name: "own copy 256 MiB", Unit: UnitBytes,
		Run: func() (float64, error) {
			sec, err := elapsed(d, func() { d.Copy(dst, src) })
			return 2 * copyBytes / sec / 1e9, err
		},
		Free: func() { release(d, src, dst) },
	}
}
