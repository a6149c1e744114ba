//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"fmt"
	"math"
	"time"
	"unsafe"
)

// Load compiles a unit, or finds it in the cache, and loads it.
func (g *gpu) Load(s Source) (uintptr, error) {
	defer g.enter()()
	key := cubinKey(s, g.info.Arch(), g.rtc.version)
	cubin, ok := readCubin(key)
	if !ok {
		began := time.Now()
		var err error
		if cubin, err = g.rtc.compile(s, g.info.Arch()); err != nil {
			return 0, err
		}
		writeCubin(key, cubin)
		g.progress(fmt.Sprintf("built kernel %s for %s in %d ms, %d KiB", s.Name, g.info.Arch(), time.Since(began).Milliseconds(), len(cubin)>>10))
	}
	if err := g.check("load kernel "+s.Name, call(g.api.moduleLoad, g.result(0), uintptr(unsafe.Pointer(&cubin[0])))); err != nil {
		return 0, err
	}
	m := uintptr(g.out[0])
	g.modules = append(g.modules, m)
	return m, nil
}

// Func finds a kernel.
func (g *gpu) Func(module uintptr, name string) (Func, error) {
	defer g.enter()()
	err := g.check("find kernel "+name, call(g.api.moduleFunc, g.result(0), module, uintptr(unsafe.Pointer(zeroEnded(name)))))
	return Func(g.out[0]), err
}

// Reserve lets a kernel use more than the default dynamic shared memory. The split of an SM into L1 and shared memory
// can change only while it is idle, and follows the preference of its first kernel. A kernel that may start early
// prefers the largest shared memory, otherwise the next one would not fit next to it.
func (g *gpu) Reserve(f Func, shared int) error {
	defer g.enter()()
	const maxDynamicShared, preferredShared, all = 8, 9, 100 // the last in percent
	if g.early.funcs[f] {
		if err := g.check("the share of shared memory", call(g.api.funcSetAttribute, uintptr(f), preferredShared, all)); err != nil {
			return err
		}
	}
	return g.check(fmt.Sprintf("%d bytes of shared memory", shared), call(g.api.funcSetAttribute, uintptr(f), maxDynamicShared, uintptr(shared)))
}

// Usage queries the driver; unknown values read as 0.
func (g *gpu) Usage(f Func) Usage {
	defer g.enter()()
	read := func(attribute uintptr) int {
		_ = call(g.api.funcGetAttribute, g.result(0), attribute, uintptr(f))
		return int(int32(g.out[0]))
	}
	const static, local, registers = 1, 3, 4
	return Usage{Registers: read(registers), Local: read(local), Shared: read(static)}
}

// Launch starts a kernel.
func (g *gpu) Launch(f Func, grid, block Dim, shared int, args []uint64) error {
	if len(args) > maxParams {
		panic(fmt.Sprintf("cu: launch with %d arguments, at most %d", len(args), maxParams))
	}
	chained := g.early.chained
	defer g.enter()()
	copy(g.slots[:], args)
	if g.early.funcs[f] {
		g.early.chained = true
		if chained {
			return g.check("launch", g.launchEarly(f, grid, block, shared))
		}
	}
	return g.check("launch", fast(g.api.launch, uintptr(f),
		uintptr(grid.X), uintptr(grid.Y), uintptr(grid.Z), uintptr(block.X), uintptr(block.Y), uintptr(block.Z),
		uintptr(shared), g.stream, uintptr(unsafe.Pointer(&g.params[0])), 0))
}

// graph is an instantiated CUDA graph.
type graph struct {
	g    *gpu
	exec uintptr
}

// Record captures what f starts as a graph.
func (g *gpu) Record(f func()) (Graph, error) {
	defer g.enter()()
	recorded, err := g.capture(f)
	if err != nil {
		return nil, err
	}
	defer func() { _ = call(g.api.graphDestroy, recorded) }()
	if err := g.check("make a graph", call(g.api.graphInstantiate, g.result(0), recorded, 0)); err != nil {
		return nil, err
	}
	return &graph{g, uintptr(g.out[0])}, nil
}

// capture is the recording itself, which ends with f, also after a panic. It is relaxed: f may build kernels or grow
// memory, though it should not have to.
func (g *gpu) capture(f func()) (recorded uintptr, err error) {
	const relaxed = 2
	if err := g.check("begin a graph", call(g.api.captureBegin, g.stream, relaxed)); err != nil {
		return 0, err
	}
	g.recording = true
	defer func() {
		g.recording, g.early.chained = false, false
		err = g.check("end a graph", call(g.api.captureEnd, g.stream, g.result(0)))
		recorded = uintptr(g.out[0])
	}()
	f()
	return 0, nil
}

// Launch replays the graph.
func (r *graph) Launch() error {
	defer r.g.enter()()
	return r.g.check("launch a graph", fast(r.g.api.graphLaunch, r.exec, r.g.stream))
}

// Free releases the graph.
func (r *graph) Free() error {
	defer r.g.enter()()
	return r.g.check("free a graph", call(r.g.api.graphExecDestroy, r.exec))
}

// Time measures f with events on the stream.
func (g *gpu) Time(f func()) (float64, error) {
	defer g.enter()()
	if err := g.check("cuEventRecord", fast(g.api.eventRecord, g.events[0], g.stream)); err != nil {
		return 0, err
	}
	f()
	if err := g.check("cuEventRecord", fast(g.api.eventRecord, g.events[1], g.stream)); err != nil {
		return 0, err
	}
	if err := g.check("wait for the GPU", fast(g.api.eventSync, g.events[1])); err != nil {
		return 0, err
	}
	err := g.check("cuEventElapsedTime", call(g.api.eventElapsed, g.result(0), g.events[0], g.events[1]))
	return float64(math.Float32frombits(uint32(g.out[0]))), err
}
