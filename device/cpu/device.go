// Package cpu is the Device on the host's CPU: every op is a parallel loop over tiles, computing in float32. Weights
// and activations are float32 or, by Options.Precision, bfloat16; products take the latter, or int8 weights, as
// operands.
//
// A method checks shapes, fills its task (a struct in the Device, so that a step allocates nothing) and distributes the
// tiles to a fixed pool of workers; the tile function does the work with internal/simd. However tiles are divided, each
// output element is one chain of operations in a fixed order, or partial sums divided by shape alone: results do not
// depend on the number of workers. Work is finished when a method returns; Sync only reports faults.
package cpu

import (
	"fmt"
	"unsafe"

	"antiphase/device"
	"antiphase/device/cpu/attn"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// Options configure the device.
type Options struct {
	Threads   int       // workers; 0 means GOMAXPROCS
	Precision Precision // of products; default float32
}

// Device is the host's processor. It is used by one goroutine at a time. Its ops are grouped by what they work on; all
// groups share one machine.
type Device struct {
	*machine
	elementwise
	rowOps
	products
	attention
}

var _ device.Device = (*Device)(nil)

// The groups of ops. Each holds the arguments of those that are running, one struct per op.
type (
	// elementwise ops treat all elements alike.
	elementwise struct {
		*machine
		zero            zeroTask
		copy            copyTask
		add             addTask
		bias            biasTask
		biasBackward    biasBackwardTask
		swiglu          swigluTask
		swigluBackward  swigluBackwardTask
		sigmoid         sigmoidTask
		sigmoidBackward sigmoidBackwardTask
		sumSquares      sumSquaresTask
		adamw           adamwTask
	}

	// rowOps treat rows of a matrix, each by its id, position or statistic.
	rowOps struct {
		*machine
		embed           embedTask
		embedBackward   embedBackwardTask
		rmsnorm         rmsnormTask
		rmsnormBackward rmsnormBackwardTask
		rope            ropeTask
	}

	// products are MatMul, by precision and shape, and Classify, which is made of them.
	products struct {
		*machine
		matmul         gemm
		matmulBF16     gemmBF16
		matmulGrad     gemmGrad
		matmulFew      gemmFew
		matmulInt8     gemmInt8
		classify       classifyTask
		classifyBlocks classifyBF16
		classifyGrad   classifyGrad

		logits               region // Classify's chunk
		maxPacked, maxLogits int    // see the constants; tests make them small
	}

	// attention ops are attn.Engine's, and the small ones around it.
	attention struct {
		*machine
		attn          *attn.Engine
		probs         probsTask
		subtractHeads subtractHeadsTask
	}
)

// New starts a device.
func New(o Options) *Device {
	m := newMachine(o)
	return &Device{
		machine: m, elementwise: elementwise{machine: m}, rowOps: rowOps{machine: m},
		products:  products{machine: m, maxPacked: maxPacked, maxLogits: maxLogits},
		attention: attention{machine: m, attn: attn.New(&lender{machine: m}, o.Precision != FP32)},
	}
}

// Name describes the device.
func (d *Device) Name() string {
	return fmt.Sprintf("cpu: %d threads, %s, %s", len(d.workers), simd.Name(), d.precision)
}

// Close stops the workers and frees the device's own memory.
func (d *Device) Close() error {
	d.pool.close()
	d.shared.free(&d.memory)
	d.logits.free(&d.memory)
	d.freeWeights()
	return nil
}

// Wrote marks packed copies of t as stale.
func (d *Device) Wrote(t tensor.Tensor) { d.touch(t) }

// f32 is the memory of a float32 tensor, nil for an absent one.
func f32(t tensor.Tensor) []float32 {
	if !t.Ok() {
		return nil
	}
	return tensor.Host[float32](t)
}

// i32 is the memory of an int32 tensor.
func i32(t tensor.Tensor) []int32 { return tensor.Host[int32](t) }

// aligned takes page-aligned memory of n bytes from the Go heap.
func aligned(n int) []byte {
	const page = 4096
	raw := make([]byte, n+page)
	skip := int(-uintptr(unsafe.Pointer(&raw[0])) & (page - 1))
	return raw[skip : skip+n : skip+n]
}
