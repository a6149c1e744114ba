package cuda

import (
	"encoding/binary"
	"fmt"

	"antiphase/device"
	"antiphase/internal/cu"
	"antiphase/tensor"
)

// machine is the GPU and the state that all work on it shares: kernels, scratch memory, faults.
type machine struct {
	drv   cu.Driver
	info  cu.Info
	types device.Types
	wgmma bool // attention uses Hopper kernels, where there are any

	funcs   []loaded          // indexed by kernel
	modules map[string]module // by unit and options
	replace map[string]string // kernel files that a test uses instead of the embedded ones
	args    [maxArgs]uint64   // of the current launch, so that a launch allocates nothing
	mapOf   cu.Tiles          // of the current tensor map, for the same reason

	err   error   // first fault since the last Sync
	fault uintptr // shared memory: code, value, bound of the first fault of a kernel
	told  []byte  // the same memory on the host
	room  scratch
	fresh fresh // outputs of kernels that may still be running
}

func newMachine(drv cu.Driver) (*machine, error) {
	info := drv.Info()
	if info.Major < 8 {
		return nil, fmt.Errorf("%w: %s has compute capability %d.%d, bf16 matrix units begin with 8.0", ErrUnavailable,
			info.Name, info.Major, info.Minor)
	}
	fault, told, err := drv.Shared(16)
	if err != nil {
		return nil, err
	}
	return &machine{
		drv: drv, info: info, fault: fault, told: told,
		types:   device.Types{Act: tensor.BF16, Stat: tensor.F32, Cache: tensor.BF16},
		funcs:   make([]loaded, len(registry)),
		modules: map[string]module{},
	}, nil
}

// Info describes the GPU and its libraries.
func (d *machine) Info() cu.Info { return d.info }

// Types are bf16 for weights and activations, fp32 for statistics.
func (d *machine) Types() device.Types { return d.types }

// fail keeps the first fault for Sync.
func (d *machine) fail(err error) {
	if err != nil && d.err == nil {
		d.err = err
	}
}

// reported passes on the fault that a kernel has reported, if any. All work must be done.
func (d *machine) reported() {
	if code := d.told[0]; code != 0 {
		value, bound := int32(binary.LittleEndian.Uint32(d.told[4:])), int32(binary.LittleEndian.Uint32(d.told[8:]))
		d.fail(fault(int(code), value, bound))
		clear(d.told)
	}
}

// faults describe the kernels' fault codes (prelude.cuh): the wrong value, then its bound.
var faults = [...]string{
	1: "Embed: id %d outside a table of %d rows",
	2: "EmbedBackward: id %d outside a table of %d rows",
	3: "Rope: position %d outside a table of %d",
	4: "Classify: target %d outside %d classes",
	5: "cache: position %d outside %d",
}

func fault(code int, value, bound int32) error {
	if code >= len(faults) || faults[code] == "" {
		return fmt.Errorf("cuda: fault %d with %d and %d", code, value, bound)
	}
	return fmt.Errorf("cuda: "+faults[code], value, bound)
}
