package cuda

import (
	"fmt"

	"antiphase/device"
	"antiphase/tensor"
)

var _ device.Identified = (*Device)(nil)

// Identity names the model and the libraries: cuBLASLt selects its kernels by both, and NVRTC compiles ours.
func (d *Device) Identity() device.Identity {
	i := d.info
	return device.Identity{Device: i.Name, Precision: d.precision(),
		Kernels: fmt.Sprintf("%s, %d SMs, cuBLASLt %d, NVRTC %d", i.Arch(), i.SMs, i.CublasLt, i.NVRTC)}
}

// precision is the precision of results.
func (d *Device) precision() string {
	if d.types.Cache == tensor.I8 {
		return "bf16, int8 cache"
	}
	return "bf16"
}

// Machine is the GPU's model.
func (d *Device) Machine() string { return d.info.Name }
