package cuda

import (
	"antiphase/device"
	"antiphase/internal/cu"
)

// graph is recorded work: Launch replays all of it with one call, on the same addresses.
type graph struct {
	d *Device
	g cu.Graph
}

// Record captures what f starts, without running it. f must have run once before, so that kernels, plans and scratch
// memory exist, and must not read, write or wait.
func (d *Device) Record(f func()) (device.Replay, error) {
	d.flush()
	before := d.err
	d.err = nil
	d.fresh.clear() // the first kernel of a recording does not start early, nor does the first one after it
	g, err := d.drv.Record(func() {
		defer d.flush() // also after a panic: what f started belongs to the recording
		f()
	})
	if err == nil && d.err != nil {
		err = d.err
		_ = g.Free() // it lacks the launch that failed
	}
	d.err = before // work that could not be recorded will run, and report then
	if err != nil {
		return nil, err
	}
	d.graphs++
	return &graph{d, g}, nil
}

// Launch replays the graph; faults surface in Sync.
func (g *graph) Launch() {
	g.d.flush()
	g.d.fail(g.g.Launch())
}

// Free releases the graph.
func (g *graph) Free() error {
	g.d.graphs--
	return g.g.Free()
}

// Time runs f and returns the milliseconds that the GPU spent on it.
func (d *Device) Time(f func()) (float64, error) {
	return d.now().Time(func() { f(); d.flush() })
}
