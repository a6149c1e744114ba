//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"fmt"
	"unsafe"
)

// maxStruct bounds the parameter of LaunchStruct: the size every GPU supports.
const maxStruct = 4096

// tiler holds the arguments of cuTensorMapEncodeTiled and of a launch by struct, on the heap, where they do not move.
type tiler struct {
	encode  uintptr // cuTensorMapEncodeTiled, 0 before CUDA 12
	m       *TensorMap
	dims    [4]uint64
	strides [3]uint64
	box     [4]uint32
	steps   [4]uint32
	arg     [maxStruct]byte
	params  [1]uintptr
}

// open finds the entry point; without it there are no tensor maps.
func (t *tiler) open(cuda *lib) {
	if cuda.symbols(map[string]*uintptr{"cuTensorMapEncodeTiled": &t.encode}) != nil {
		return
	}
	// The driver requires 64- or 128-byte alignment, depending on its version.
	room := make([]byte, len(TensorMap{})+127)
	t.m = (*TensorMap)(unsafe.Pointer(&room[-uintptr(unsafe.Pointer(&room[0]))&127]))
	t.params[0] = uintptr(unsafe.Pointer(&t.arg[0]))
}

// TensorMap asks the driver.
func (k *kernels) TensorMap(m *TensorMap, t *Tiles) error {
	w := &k.tiler
	if w.encode == 0 {
		return fmt.Errorf("this driver makes no tensor maps: CUDA 12 does")
	}
	if err := t.Check(); err != nil {
		return err
	}
	defer k.enter()() // the driver requires a context although the map depends on none
	const bf16, rank, plain, swizzle64, swizzle128, l2Of128, zeros = 9, 4, 0, 2, 3, 2, 0
	for i := range t.Dims {
		w.dims[i], w.box[i], w.steps[i] = uint64(t.Dims[i]), uint32(t.Box[i]), 1
	}
	for i := range t.Strides {
		w.strides[i] = uint64(t.Strides[i])
	}
	swizzle := uintptr(swizzle128)
	if t.Box[0] == 32 {
		swizzle = swizzle64
	}
	code := fast(w.encode, uintptr(unsafe.Pointer(w.m)), bf16, rank, t.Addr, uintptr(unsafe.Pointer(&w.dims[0])),
		uintptr(unsafe.Pointer(&w.strides[0])), uintptr(unsafe.Pointer(&w.box[0])),
		uintptr(unsafe.Pointer(&w.steps[0])),
		plain, swizzle, l2Of128, zeros)
	*m = *w.m
	return k.check("cuTensorMapEncodeTiled", code)
}

// LaunchStruct starts a kernel that takes one struct.
func (k *kernels) LaunchStruct(f Func, grid, block Dim, shared int, arg []byte) error {
	if len(arg) > maxStruct {
		panic(fmt.Sprintf("cu: launch with a struct of %d bytes, at most %d", len(arg), maxStruct))
	}
	defer k.enter()()
	copy(k.tiler.arg[:], arg)
	return k.check("launch", fast(k.api.launch, uintptr(f),
		uintptr(grid.X), uintptr(grid.Y), uintptr(grid.Z), uintptr(block.X), uintptr(block.Y), uintptr(block.Z),
		uintptr(shared), k.stream, uintptr(unsafe.Pointer(&k.tiler.params[0])), 0))
}
