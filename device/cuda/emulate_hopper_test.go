//go:build linux && amd64

package cuda

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"github.com/ebitengine/purego"

	"antiphase/internal/cu"
)

var _ cu.Tiler = (*emulator)(nil)

// TensorMap fills the emulation's own map, see testdata/hopper.cuh.
func (e *emulator) TensorMap(m *cu.TensorMap, t *cu.Tiles) error {
	words := []uint64{0x70616d726f736e65, uint64(t.Addr)}
	for _, n := range slices.Concat(t.Dims[:], t.Strides[:], t.Box[:]) {
		words = append(words, uint64(n))
	}
	*m = cu.TensorMap{}
	for i, w := range words {
		binary.LittleEndian.PutUint64(m[8*i:], w)
	}
	return t.Check()
}

func (e *emulator) LaunchStruct(f cu.Func, grid, block cu.Dim, shared int, arg []byte) error {
	if shared > e.Info().Shared {
		return fmt.Errorf("%d bytes of shared memory", shared)
	}
	room := make([]byte, len(arg)+mapAlign-1)
	arg = append(room[-uintptr(unsafe.Pointer(&room[0]))&(mapAlign-1):][:0], arg...)
	if e.graph != nil {
		e.later(func() error { return e.LaunchStruct(f, grid, block, shared, arg) })
		return nil
	}
	e.args[0] = unsafe.Pointer(&arg[0])
	k := e.funcs[f-1]
	purego.SyscallN(k.launch, k.entry, uintptr(grid.X), uintptr(grid.Y), uintptr(grid.Z),
		uintptr(block.X), uintptr(block.Y), uintptr(block.Z), uintptr(unsafe.Pointer(&e.args[0])))
	return nil
}
