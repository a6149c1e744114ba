//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// context is the driver's entry points, the GPU's primary context and one stream in it.
type context struct {
	api  driverAPI
	info Info

	dev    int32
	handle uintptr // of the context
	stream uintptr
	events [2]uintptr // of Time
	out    [4]uint64  // for results of calls: the heap does not move

	recording bool // work goes into a graph
	chained   bool // the last work was a kernel that may start early (early_linux.go)
}

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
		"cuFuncSetAttribute": &a.funcSetAttribute, "cuFuncGetAttribute": &a.funcGetAttribute,
		"cuLaunchKernel": &a.launch, "cuLaunchKernelEx": &a.launchEx,
		"cuStreamBeginCapture_v2": &a.captureBegin, "cuStreamEndCapture": &a.captureEnd,
		"cuGraphInstantiateWithFlags": &a.graphInstantiate, "cuGraphLaunch": &a.graphLaunch,
		"cuGraphExecDestroy": &a.graphExecDestroy, "cuGraphDestroy": &a.graphDestroy,
	}
}

// find selects the device and reads its properties.
func (c *context) find(ordinal int) error {
	if err := c.check("cuInit", call(c.api.init, 0)); err != nil {
		return unavailable("%v", err)
	}
	_ = call(c.api.driverGetVersion, c.result(0))
	c.info.Driver = int(int32(c.out[0]))
	if err := c.check("cuDeviceGetCount", call(c.api.deviceGetCount, c.result(0))); err != nil {
		return unavailable("%v", err)
	}
	if n := int(int32(c.out[0])); ordinal < 0 || ordinal >= n {
		return unavailable("device %d was asked for, there are %d", ordinal, n)
	}
	if err := c.check("cuDeviceGet", call(c.api.deviceGet, c.result(0), uintptr(ordinal))); err != nil {
		return unavailable("%v", err)
	}
	c.dev = int32(c.out[0])
	var name [256]byte
	_ = call(c.api.deviceGetName, uintptr(unsafe.Pointer(&name[0])), 255, uintptr(c.dev))
	_ = call(c.api.deviceTotalMem, c.result(0), uintptr(c.dev))
	c.info.Memory = int(c.out[0])
	c.info.Name, c.info.Ordinal = cString(name[:]), ordinal
	c.info.SMs, c.info.Major, c.info.Minor = c.attribute(16), c.attribute(75), c.attribute(76)
	c.info.L2, c.info.Shared = c.attribute(38), c.attribute(97)
	return nil
}

// attribute reads one CUdevice_attribute.
func (c *context) attribute(which uintptr) int {
	c.out[0] = 0
	_ = call(c.api.deviceGetAttribute, c.result(0), which, uintptr(c.dev)) // an unknown attribute reads as 0
	return int(int32(c.out[0]))
}

// open creates the context, its stream and its events.
func (c *context) open() error {
	if err := c.check("cuDevicePrimaryCtxRetain", call(c.api.primaryRetain, c.result(0), uintptr(c.dev))); err != nil {
		return unavailable("%v", err)
	}
	c.handle = uintptr(c.out[0])
	defer c.enter()()
	// 1: not synchronised with the default stream.
	if err := c.check("cuStreamCreate", call(c.api.streamCreate, c.result(0), 1)); err != nil {
		return err
	}
	c.stream = uintptr(c.out[0])
	for i := range c.events {
		if err := c.check("cuEventCreate", call(c.api.eventCreate, c.result(0), 0)); err != nil {
			return err
		}
		c.events[i] = uintptr(c.out[0])
	}
	return nil
}

// close releases them. The context is destroyed with the last user of the process.
func (c *context) close() error {
	for _, e := range c.events {
		if e != 0 {
			_ = call(c.api.eventDestroy, e)
		}
	}
	_ = call(c.api.streamDestroy, c.stream)
	released := c.check("cuDevicePrimaryCtxRelease", call(c.api.primaryRelease, uintptr(c.dev)))
	c.handle = 0
	return released
}

// Sync waits for all work.
func (c *context) Sync() error {
	if c.recording {
		return errRecording
	}
	defer c.enter()()
	return c.check("wait for the GPU", fast(c.api.streamSync, c.stream))
}

// enter locks the goroutine to its thread and makes the context current there; the result undoes the lock. A context
// belongs to a thread and a goroutine may move to another at any call: only this function handles that.
func (c *context) enter() (leave func()) {
	c.chained = false // except for Launch, which sets it itself
	runtime.LockOSThread()
	_ = fast(c.api.ctxSetCurrent, c.handle) // fails only for a destroyed context, and then so does the next call
	return runtime.UnlockOSThread
}

// Info describes the GPU.
func (c *context) Info() Info { return c.info }

// result is the address of memory for a call's result.
func (c *context) result(i int) uintptr {
	c.out[i] = 0
	return uintptr(unsafe.Pointer(&c.out[i]))
}

// call calls a C function that returns an int; 0 is success everywhere in CUDA. What its arguments point to is kept
// alive and in place during the call, which costs an allocation.
//
//go:uintptrescapes
func call(fn uintptr, args ...uintptr) int32 { return fast(fn, args...) }

// fast is call for the steady step: it allocates nothing, so its arguments may point only to fields of a gpu, of its
// parts or of a plan, which are on the heap and outlive the call.
func fast(fn uintptr, args ...uintptr) int32 {
	a := callArgs.Get().(*[16]uintptr) // SyscallN's arguments escape, so they must not be the caller's
	n := copy(a[:], args)
	r, _, _ := purego.SyscallN(fn, a[:n]...)
	callArgs.Put(a)
	return int32(r)
}

var callArgs = sync.Pool{New: func() any { return new([16]uintptr) }}

// check describes a CUresult.
func (c *context) check(what string, code int32) error {
	if code == 0 {
		return nil
	}
	var name, text *byte
	_ = call(c.api.getErrorName, uintptr(code), uintptr(unsafe.Pointer(&name)))
	_ = call(c.api.getErrorString, uintptr(code), uintptr(unsafe.Pointer(&text)))
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
