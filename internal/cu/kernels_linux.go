//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"fmt"
	"time"
	"unsafe"
)

// kernels are the loaded kernels and the arguments of the current launch.
type kernels struct {
	*context
	rtc      *nvrtc
	progress func(string)
	modules  []uintptr

	params [maxParams]uintptr // cuLaunchKernel's array: params[i] points to slots[i]
	slots  [maxParams]uint64
	early  early // kernels that may start early
	tiler  tiler // tensor maps and arguments by struct
}

// maxParams bounds the parameters of a kernel.
const maxParams = 48

func (k *kernels) open() {
	for i := range k.params {
		k.params[i] = uintptr(unsafe.Pointer(&k.slots[i]))
	}
}

func (k *kernels) close() {
	for _, m := range k.modules {
		_ = call(k.api.moduleUnload, m)
	}
}

// Load compiles a unit, or finds it in the cache, and loads it.
func (k *kernels) Load(s Source) (uintptr, error) {
	defer k.enter()()
	key := cubinKey(s, k.info.Arch(), k.rtc.version)
	cubin, ok := readCubin(key)
	if !ok {
		began := time.Now()
		var err error
		if cubin, err = k.rtc.compile(s, k.info.Arch()); err != nil {
			return 0, err
		}
		writeCubin(key, cubin)
		k.progress(fmt.Sprintf("built kernel %s for %s in %d ms, %d KiB", s.Name, k.info.Arch(),
			time.Since(began).Milliseconds(), len(cubin)>>10))
	}
	if err := k.check("load kernel "+s.Name,
		call(k.api.moduleLoad, k.result(0), uintptr(unsafe.Pointer(&cubin[0])))); err != nil {
		return 0, err
	}
	m := uintptr(k.out[0])
	k.modules = append(k.modules, m)
	return m, nil
}

// Func finds a kernel.
func (k *kernels) Func(module uintptr, name string) (Func, error) {
	defer k.enter()()
	err := k.check("find kernel "+name,
		call(k.api.moduleFunc, k.result(0), module, uintptr(unsafe.Pointer(zeroEnded(name)))))
	return Func(k.out[0]), err
}

// Reserve lets a kernel use more than the default dynamic shared memory. The split of an SM into L1 and shared memory
// can change only while it is idle, and follows the preference of its first kernel. A kernel that may start early
// prefers the largest shared memory, otherwise the next one would not fit next to it.
func (k *kernels) Reserve(f Func, shared int) error {
	defer k.enter()()
	const maxDynamicShared, preferredShared, all = 8, 9, 100 // the last in percent
	if k.early.funcs[f] {
		if err := k.check("the share of shared memory",
			call(k.api.funcSetAttribute, uintptr(f), preferredShared, all)); err != nil {
			return err
		}
	}
	return k.check(fmt.Sprintf("%d bytes of shared memory", shared),
		call(k.api.funcSetAttribute, uintptr(f), maxDynamicShared, uintptr(shared)))
}

// Usage queries the driver; unknown values read as 0.
func (k *kernels) Usage(f Func) Usage {
	defer k.enter()()
	read := func(attribute uintptr) int {
		_ = call(k.api.funcGetAttribute, k.result(0), attribute, uintptr(f))
		return int(int32(k.out[0]))
	}
	const static, local, registers = 1, 3, 4
	return Usage{Registers: read(registers), Local: read(local), Shared: read(static)}
}

// Launch starts a kernel.
func (k *kernels) Launch(f Func, grid, block Dim, shared int, args []uint64) error {
	if len(args) > maxParams {
		panic(fmt.Sprintf("cu: launch with %d arguments, at most %d", len(args), maxParams))
	}
	chained := k.chained
	defer k.enter()()
	copy(k.slots[:], args)
	if k.early.funcs[f] {
		k.chained = true
		if chained {
			return k.check("launch", k.launchEarly(f, grid, block, shared))
		}
	}
	return k.check("launch", fast(k.api.launch, uintptr(f),
		uintptr(grid.X), uintptr(grid.Y), uintptr(grid.Z), uintptr(block.X), uintptr(block.Y), uintptr(block.Z),
		uintptr(shared), k.stream, uintptr(unsafe.Pointer(&k.params[0])), 0))
}
