//go:build (amd64 || arm64) && !nogpu

package cu

import "unsafe"

// early holds the kernels that may start while the previous one still runs, and cuLaunchKernelEx's arguments.
type early struct {
	funcs  map[Func]bool
	config launchConfig
	attr   launchAttribute
}

// launchConfig is CUlaunchConfig.
type launchConfig struct {
	dims   [7]uint32 // grid, block, bytes of dynamic shared memory
	_      uint32
	stream uintptr
	attrs  uintptr
	count  uint32
	_      uint32
}

// launchAttribute is CUlaunchAttribute: a number and a union of 64 bytes.
type launchAttribute struct {
	id    uint32
	_     uint32
	value [16]uint32
}

// Early lets a kernel start early: needs Hopper or later, and CUDA 12.3 or later, which can record it.
func (k *kernels) Early(f Func) {
	if k.info.Major < 9 || k.info.Driver < 12030 {
		return
	}
	if k.early.funcs == nil {
		k.early.funcs = map[Func]bool{}
	}
	k.early.funcs[f] = true
}

// launchEarly starts a kernel with arguments in slots. A graph being recorded gets a programmatic edge.
func (k *kernels) launchEarly(f Func, grid, block Dim, shared int) int32 {
	const programmaticStreamSerialization = 6
	e := &k.early
	e.attr.id, e.attr.value[0] = programmaticStreamSerialization, 1
	e.config.dims = [7]uint32{uint32(grid.X), uint32(grid.Y), uint32(grid.Z), uint32(block.X), uint32(block.Y),
		uint32(block.Z), uint32(shared)}
	e.config.stream, e.config.attrs, e.config.count = k.stream, uintptr(unsafe.Pointer(&e.attr)), 1
	return fast(k.api.launchEx, uintptr(unsafe.Pointer(&e.config)), uintptr(f),
		uintptr(unsafe.Pointer(&k.params[0])), 0)
}
