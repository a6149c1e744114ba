// Package cuda is the Device on an NVIDIA GPU: bf16 weights and activations, fp32 sums, statistics and master weights.
//
// A method checks shapes, computes the launch geometry from them alone and launches kernels of kernels/STEM.cu, or
// cuBLASLt for large products. An op of few rows may wait for the next op and run in one kernel with it (held.go). All
// work runs in order on one stream. A method returns at once; Sync waits and returns the first fault (an id outside its
// table, an error of the driver). Scratch memory is one buffer that grows to the largest need, so a steady step
// allocates nothing, on the host or on the GPU, and Record turns it into one graph. Sums have a fixed order.
package cuda

import (
	"errors"
	"fmt"
	"os"

	"antiphase/device"
	"antiphase/internal/cu"
	"antiphase/tensor"
)

// ErrUnavailable is wrapped by Open's error if there is no usable GPU, driver or compiler.
var ErrUnavailable = cu.ErrUnavailable

// Options configure Open.
type Options struct {
	Progress  func(line string) // called for each kernel that is built; may be nil
	ByteCache bool              // int8 key/value caches, see device.Cache: half the memory, different results
}

// Device is one GPU. It is used by one goroutine at a time. Its own methods are memory, recording and identity; ops are
// grouped by what they work on, and all groups share one queue.
type Device struct {
	*queue
	elementwise
	rowOps
	products
	attention

	graphs int // number alive: they hold addresses of the scratch memory
}

// The groups of ops. Each holds the arguments of its current launch, so that a launch allocates nothing.
type (
	// elementwise ops treat all elements alike.
	elementwise struct{ *queue }

	// rowOps treat rows of a matrix, each by its id, position or statistic.
	rowOps struct{ *queue }

	// products are MatMul, by number of rows, and Classify, which is made of them.
	products struct {
		*queue
		product cu.Product

		logits    scratch       // Classify's chunk, held while its products use the scratch memory
		chunk     tensor.Buffer // the same memory as a buffer, for products
		maxLogits int           // see the constants; tests make them small
		ringLeast int
	}

	// attention ops are one engine for each pass over one or two maps, and the small ops around it.
	attention struct {
		*queue
		forwardAttention
		backwardAttention
		cachedAttention
	}

	forwardAttention struct {
		*queue
		forward forwardArgs
		tickets uintptr // of blocks that stay
	}

	backwardAttention struct {
		*queue
		backward backwardArgs
		queries  queriesArgs
	}

	// cachedAttention is that of single rows to a paged cache.
	cachedAttention struct{ *queue }
)

var (
	_ device.Device   = (*Device)(nil)
	_ device.Recorder = (*Device)(nil)
	_ device.Pager    = (*Device)(nil)
	_ device.Ahead    = (*Device)(nil)
)

// Open opens GPU number ordinal.
func Open(ordinal int, opt Options) (*Device, error) {
	drv, err := cu.Open(ordinal, opt.Progress)
	if err != nil {
		return nil, err
	}
	d, err := newDevice(drv)
	if err == nil {
		err = d.chooseAttention(os.Getenv("ANTIPHASE_ATTENTION"))
		if opt.ByteCache {
			d.types.Cache = tensor.I8
		}
	}
	if err != nil {
		return nil, errors.Join(err, drv.Close())
	}
	return d, nil
}

// newDevice makes a device of a driver, and owns the driver.
func newDevice(drv cu.Driver) (*Device, error) {
	m, err := newMachine(drv)
	if err != nil {
		return nil, err
	}
	q := &queue{machine: m}
	return &Device{
		queue: q, elementwise: elementwise{q}, rowOps: rowOps{q},
		products: products{queue: q, maxLogits: maxLogits, ringLeast: ringLeast},
		attention: attention{queue: q, forwardAttention: forwardAttention{queue: q},
			backwardAttention: backwardAttention{queue: q}, cachedAttention: cachedAttention{queue: q}},
	}, nil
}

// Name describes the device.
func (d *Device) Name() string {
	return fmt.Sprintf("cuda:%d: %s, %s, %d SMs, %s", d.info.Ordinal, d.info.Name, d.info.Arch(), d.info.SMs,
		d.precision())
}

// Sync waits for all work and returns the first fault since the last call.
func (d *Device) Sync() error {
	d.fail(d.now().Sync())
	d.fresh.clear()
	d.reported()
	err := d.err
	d.err = nil
	if d.graphs == 0 {
		d.fail(d.room.drop(d.drv))
		d.fail(d.logits.drop(d.drv))
	}
	return err
}

// Close frees what the device holds of its own.
func (d *Device) Close() error { return d.drv.Close() }

// ChunkRows is the number of rows of one sequence at and above which they should be computed together: a block of
// Attention reads each key once for 64 rows or more, AttentionCached once for each row.
func (d *Device) ChunkRows() int { return 32 }
