//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// gpu is the Driver of one NVIDIA GPU: its primary context, one stream, and their resources.
type gpu struct {
	api  driverAPI
	rtc  *nvrtc
	lt   *cublasLt
	info Info

	dev      int32
	ctx      uintptr
	stream   uintptr
	progress func(string)

	params [maxParams]uintptr // cuLaunchKernel's array: params[i] points to slots[i]
	slots  [maxParams]uint64
	desc2D [16]uint64 // CUDA_MEMCPY2D of the current copy
	out    [4]uint64  // for results of calls: the heap does not move
	early  early      // kernels that may start early
	tiler  tiler      // tensor maps and arguments by struct

	pool      pool
	stage     staging
	shared    []uintptr
	modules   []uintptr
	events    [2]uintptr
	recording bool // work goes into a graph
}

// maxParams bounds the parameters of a kernel.
const maxParams = 48

// driverAPI holds libcuda's entry points.
type driverAPI struct {
	init, driverGetVersion, deviceGetCount, deviceGet, deviceGetName, deviceTotalMem, deviceGetAttribute uintptr
	primaryRetain, primaryRelease, ctxSetCurrent, getErrorName, getErrorString                           uintptr
	memAlloc, memFree, memInfo, memAllocHost, memFreeHost, htod, dtoh, dtod, copy2D, memset, memset2D    uintptr
	streamCreate, streamDestroy, streamSync, streamWait                                                  uintptr
	eventCreate, eventDestroy, eventRecord, eventSync, eventElapsed                                      uintptr
	moduleLoad, moduleUnload, moduleFunc, funcSetAttribute, funcGetAttribute, launch, launchEx           uintptr
	captureBegin, captureEnd, graphInstantiate, graphLaunch, graphExecDestroy, graphDestroy              uintptr
}

func (a *driverAPI) table() map[string]*uintptr {
	return map[string]*uintptr{
		"cuInit": &a.init, "cuDriverGetVersion": &a.driverGetVersion,
		"cuDeviceGetCount": &a.deviceGetCount, "cuDeviceGet": &a.deviceGet, "cuDeviceGetName": &a.deviceGetName,
		"cuDeviceTotalMem_v2": &a.deviceTotalMem, "cuDeviceGetAttribute": &a.deviceGetAttribute,
		"cuDevicePrimaryCtxRetain": &a.primaryRetain, "cuDevicePrimaryCtxRelease_v2": &a.primaryRelease,
		"cuCtxSetCurrent": &a.ctxSetCurrent, "cuGetErrorName": &a.getErrorName, "cuGetErrorString": &a.getErrorString,
		"cuMemAlloc_v2": &a.memAlloc, "cuMemFree_v2": &a.memFree, "cuMemGetInfo_v2": &a.memInfo,
		"cuMemAllocHost_v2": &a.memAllocHost, "cuMemFreeHost": &a.memFreeHost,
		"cuMemcpyHtoDAsync_v2": &a.htod, "cuMemcpyDtoHAsync_v2": &a.dtoh, "cuMemcpyDtoDAsync_v2": &a.dtod,
		"cuMemcpy2DAsync_v2": &a.copy2D, "cuMemsetD8Async": &a.memset, "cuMemsetD2D8Async": &a.memset2D,
		"cuStreamCreate": &a.streamCreate, "cuStreamDestroy_v2": &a.streamDestroy, "cuStreamSynchronize": &a.streamSync,
		"cuStreamWaitEvent": &a.streamWait,
		"cuEventCreate":     &a.eventCreate, "cuEventDestroy_v2": &a.eventDestroy, "cuEventRecord": &a.eventRecord,
		"cuEventSynchronize": &a.eventSync, "cuEventElapsedTime": &a.eventElapsed,
		"cuModuleLoadData": &a.moduleLoad, "cuModuleUnload": &a.moduleUnload, "cuModuleGetFunction": &a.moduleFunc,
		"cuFuncSetAttribute": &a.funcSetAttribute, "cuFuncGetAttribute": &a.funcGetAttribute, "cuLaunchKernel": &a.launch, "cuLaunchKernelEx": &a.launchEx,
		"cuStreamBeginCapture_v2": &a.captureBegin, "cuStreamEndCapture": &a.captureEnd,
		"cuGraphInstantiateWithFlags": &a.graphInstantiate, "cuGraphLaunch": &a.graphLaunch,
		"cuGraphExecDestroy": &a.graphExecDestroy, "cuGraphDestroy": &a.graphDestroy,
	}
}

// Open opens GPU number ordinal. progress is called for each kernel that must be built; it may be nil.
func Open(ordinal int, progress func(string)) (Driver, error) {
	cuda, err := openLib("libcuda.so.1", "libcuda.so")
	if err != nil {
		return nil, unavailable("no NVIDIA driver: %v", err)
	}
	if progress == nil {
		progress = func(string) {}
	}
	g := &gpu{progress: progress}
	if err := cuda.symbols(g.api.table()); err != nil {
		return nil, unavailable("the NVIDIA driver is too old: %v", err)
	}
	g.tiler.open(cuda)
	if err := g.find(ordinal); err != nil {
		return nil, err
	}
	if g.rtc, err = openNVRTC(); err != nil {
		return nil, unavailable("no kernel compiler (NVRTC): %v; ANTIPHASE_CUDA_PATH may name its folder", err)
	}
	g.info.NVRTC, g.rtc.note = g.rtc.version, progress
	if err := g.start(); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// find selects the device and reads its properties.
func (g *gpu) find(ordinal int) error {
	if err := g.check("cuInit", call(g.api.init, 0)); err != nil {
		return unavailable("%v", err)
	}
	_ = call(g.api.driverGetVersion, g.result(0))
	g.info.Driver = int(int32(g.out[0]))
	if err := g.check("cuDeviceGetCount", call(g.api.deviceGetCount, g.result(0))); err != nil {
		return unavailable("%v", err)
	}
	if n := int(int32(g.out[0])); ordinal < 0 || ordinal >= n {
		return unavailable("device %d was asked for, there are %d", ordinal, n)
	}
	if err := g.check("cuDeviceGet", call(g.api.deviceGet, g.result(0), uintptr(ordinal))); err != nil {
		return unavailable("%v", err)
	}
	g.dev = int32(g.out[0])
	var name [256]byte
	_ = call(g.api.deviceGetName, uintptr(unsafe.Pointer(&name[0])), 255, uintptr(g.dev))
	_ = call(g.api.deviceTotalMem, g.result(0), uintptr(g.dev))
	g.info.Memory = int(g.out[0])
	g.info.Name, g.info.Ordinal = cString(name[:]), ordinal
	g.info.SMs, g.info.Major, g.info.Minor = g.attribute(16), g.attribute(75), g.attribute(76)
	g.info.L2, g.info.Shared = g.attribute(38), g.attribute(97)
	return nil
}

// attribute reads one CUdevice_attribute.
func (g *gpu) attribute(which uintptr) int {
	g.out[0] = 0
	_ = call(g.api.deviceGetAttribute, g.result(0), which, uintptr(g.dev)) // an unknown attribute reads as 0
	return int(int32(g.out[0]))
}

// start creates the context, the stream and the resources of every step.
func (g *gpu) start() error {
	if err := g.check("cuDevicePrimaryCtxRetain", call(g.api.primaryRetain, g.result(0), uintptr(g.dev))); err != nil {
		return unavailable("%v", err)
	}
	g.ctx = uintptr(g.out[0])
	defer g.enter()()
	if err := g.check("cuStreamCreate", call(g.api.streamCreate, g.result(0), 1)); err != nil { // 1: not synchronised with the default stream
		return err
	}
	g.stream = uintptr(g.out[0])
	for i := range g.events {
		if err := g.check("cuEventCreate", call(g.api.eventCreate, g.result(0), 0)); err != nil {
			return err
		}
		g.events[i] = uintptr(g.out[0])
	}
	for i := range g.params {
		g.params[i] = uintptr(unsafe.Pointer(&g.slots[i]))
	}
	if err := g.stage.open(g); err != nil {
		return err
	}
	var err error
	g.lt, err = openCublasLt(g)
	if err != nil {
		g.progress("cuBLASLt: " + err.Error() + "; products run on the built-in kernel")
		return nil
	}
	g.info.CublasLt = g.lt.version
	return nil
}

// enter locks the goroutine to its thread and makes the context current there; the result undoes the lock. A context
// belongs to a thread and a goroutine may move to another at any call: only this function handles that.
func (g *gpu) enter() (leave func()) {
	g.early.chained = false // except for Launch, which sets it itself
	runtime.LockOSThread()
	_ = fast(g.api.ctxSetCurrent, g.ctx) // fails only for a destroyed context, and then so does the next call
	return runtime.UnlockOSThread
}

// Info describes the GPU.
func (g *gpu) Info() Info { return g.info }

// result is the address of memory for a call's result.
func (g *gpu) result(i int) uintptr {
	g.out[i] = 0
	return uintptr(unsafe.Pointer(&g.out[i]))
}

// call calls a C function that returns an int; 0 is success everywhere in CUDA. What its arguments point to is kept
// alive and in place during the call, which costs an allocation.
//
//go:uintptrescapes
func call(fn uintptr, args ...uintptr) int32 { return fast(fn, args...) }

// fast is call for the steady step: it allocates nothing, so its arguments may point only to fields of a gpu or a plan,
// which are on the heap and outlive the call.
func fast(fn uintptr, args ...uintptr) int32 {
	a := callArgs.Get().(*[16]uintptr) // SyscallN's arguments escape, so they must not be the caller's
	n := copy(a[:], args)
	r, _, _ := purego.SyscallN(fn, a[:n]...)
	callArgs.Put(a)
	return int32(r)
}

var callArgs = sync.Pool{New: func() any { return new([16]uintptr) }}

// check describes a CUresult.
func (g *gpu) check(what string, code int32) error {
	if code == 0 {
		return nil
	}
	var name, text *byte
	_ = call(g.api.getErrorName, uintptr(code), uintptr(unsafe.Pointer(&name)))
	_ = call(g.api.getErrorString, uintptr(code), uintptr(unsafe.Pointer(&text)))
	return fmt.Errorf("%s: %s (%s, code %d)", what, goString(text), goString(name), code)
}

// goString copies a C string.
func goString(p *byte) string {
	if p == nil {
		return "unknown"
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// cString truncates bytes at the first 0.
func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// zeroEnded is s as a C string.
func zeroEnded(s string) *byte {
	b := append([]byte(s), 0)
	return &b[0]
}

// Sync waits for all work.
func (g *gpu) Sync() error {
	if g.recording {
		return errRecording
	}
	defer g.enter()()
	return g.check("wait for the GPU", fast(g.api.streamSync, g.stream))
}

// Close releases everything. The context is destroyed with the last user of the process.
func (g *gpu) Close() error {
	if g.ctx == 0 {
		return nil
	}
	defer g.enter()()
	err := g.check("cuStreamSynchronize", fast(g.api.streamSync, g.stream))
	if g.lt != nil {
		g.lt.close()
	}
	g.stage.close(g)
	g.pool.close(g)
	for _, p := range g.shared {
		_ = call(g.api.memFreeHost, p)
	}
	for _, m := range g.modules {
		_ = call(g.api.moduleUnload, m)
	}
	for _, e := range g.events {
		if e != 0 {
			_ = call(g.api.eventDestroy, e)
		}
	}
	_ = call(g.api.streamDestroy, g.stream)
	released := g.check("cuDevicePrimaryCtxRelease", call(g.api.primaryRelease, uintptr(g.dev)))
	g.ctx = 0
	return errors.Join(err, released)
}
