package cuda

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"antiphase/internal/cu"
	"antiphase/tensor"
)

// maxArgs bounds the parameters of a kernel.
const maxArgs = 48

// loaded is a ready kernel, and the dynamic shared memory it may use.
type loaded struct {
	fn     cu.Func
	shared int
}

// module is a loaded unit, or the error that prevented loading: it is not retried.
type module struct {
	handle uintptr
	err    error
}

// start launches a kernel, building it at its first use. Arguments are made by ptr, i32 and f32, one for each
// parameter. It does not run what is held: only the queue calls it.
func (d *machine) start(k kernel, grid, block cu.Dim, shared int, args ...uint64) {
	fn, ok := d.ready(k, shared)
	if !ok {
		return
	}
	n := copy(d.args[:], args)
	if err := d.drv.Launch(fn, grid, block, shared, d.args[:n]); err != nil {
		d.fail(fmt.Errorf("cuda: kernel %s: %w", registry[k].name, err))
	}
}

// ready builds a kernel at its first use and reserves its shared memory. It is false after a fault until Sync has
// reported it, because inputs of the kernel, such as a tensor map, may be missing.
func (d *machine) ready(k kernel, shared int) (cu.Func, bool) {
	if d.err != nil {
		return 0, false
	}
	f := &d.funcs[k]
	if f.fn == 0 {
		if err := d.load(k); err != nil {
			d.fail(err)
			return 0, false
		}
	}
	if shared > f.shared {
		if err := d.drv.Reserve(f.fn, shared); err != nil {
			d.fail(err)
			return 0, false
		}
		f.shared = shared
	}
	if !registry[k].early {
		d.fresh.clear()
	}
	return f.fn, true
}

// startStruct is start for a kernel that takes one struct.
func (d *machine) startStruct(k kernel, grid, block cu.Dim, shared int, arg []byte) {
	fn, ok := d.ready(k, shared)
	if !ok {
		return
	}
	if err := d.drv.(cu.Tiler).LaunchStruct(fn, grid, block, shared, arg); err != nil {
		d.fail(fmt.Errorf("cuda: kernel %s: %w", registry[k].name, err))
	}
}

// load builds the kernel's unit, unless another kernel has already, and finds the kernel in it.
func (d *machine) load(k kernel) error {
	r := registry[k]
	key := r.unit + " " + r.options
	m, ok := d.modules[key]
	if !ok {
		s, err := source(r.unit, r.options, d.replace)
		if err == nil {
			m.handle, err = d.drv.Load(s)
		}
		m.err = err
		d.modules[key] = m
	}
	if m.err != nil {
		return m.err
	}
	fn, err := d.drv.Func(m.handle, r.name)
	if err != nil {
		return fmt.Errorf("cuda: kernel %s of %s.cu: %w", r.name, r.unit, err)
	}
	if e, ok := d.drv.(cu.EarlyStarter); ok && r.early {
		e.Early(fn)
	}
	d.funcs[k] = loaded{fn, defaultShared}
	if r.early {
		d.funcs[k].shared = 0 // the driver must be told of any: see cu.Driver's Reserve
	}
	return nil
}

// defaultShared is the shared memory available without a request.
const defaultShared = 48 << 10

// Build compiles every kernel now instead of at its first use, and reports every unit that does not compile.
func (d *machine) Build() error {
	var all []error
	for k := range registry {
		if d.funcs[k].fn != 0 || registry[k].hopper && d.info.Major != 9 {
			continue
		}
		if err := d.load(kernel(k)); err != nil &&
			!slices.ContainsFunc(all, func(e error) bool { return e.Error() == err.Error() }) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// ---- helpers of launchers ----

// ptr is the address of t's first element as an argument, 0 if t is absent.
func ptr(t tensor.Tensor) uint64 {
	if t.Buf == nil {
		return 0
	}
	return uint64(t.Buf.Addr) + uint64(t.Off)
}

// i32 is an integer argument; it is also valid for i64 parameters.
func i32(x int) uint64 { return uint64(int64(x)) }

// f32 is a float argument.
func f32(x float64) uint64 { return uint64(math.Float32bits(float32(x))) }

// flag is a bool as an int argument.
func flag(x bool) uint64 {
	if x {
		return 1
	}
	return 0
}

// faultPtr is the argument of kernels that report out-of-range values.
func (d *machine) faultPtr() uint64 { return uint64(d.fault) }

// dim1, dim2 and dim3 are extents.
func dim1(x int) cu.Dim       { return cu.Dim{X: x, Y: 1, Z: 1} }
func dim2(x, y int) cu.Dim    { return cu.Dim{X: x, Y: y, Z: 1} }
func dim3(x, y, z int) cu.Dim { return cu.Dim{X: x, Y: y, Z: z} }

// ceil is n/m rounded up.
func ceil(n, m int) int { return (n + m - 1) / m }
