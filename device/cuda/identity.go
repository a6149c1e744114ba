package cuda

import (
	"fmt"

	"antiphase/device"
)

var _ device.Identified = (*Device)(nil)

// Identity names the model and the libraries: cuBLASLt chooses its kernels by both, and NVRTC builds ours.
func (d *Device) Identity() device.Identity {
	i := d.info
	return device.Identity{Device: i.Name, Precision: "bf16",
		Kernels: fmt.Sprintf("%s, %d SMs, cuBLASLt %d, NVRTC %d", i.Arch(), i.SMs, i.CublasLt, i.NVRTC)}
}

// Machine is the GPU's model.
func (d *Device) Machine() string { return d.info.Name }
