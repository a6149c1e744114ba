//go:build (amd64 || arm64) && !nogpu

package cu

import "math"

// graph is an instantiated CUDA graph.
type graph struct {
	ctx  *context
	exec uintptr
}

// Record captures what f starts as a graph.
func (c *context) Record(f func()) (Graph, error) {
	defer c.enter()()
	recorded, err := c.capture(f)
	if err != nil {
		return nil, err
	}
	defer func() { _ = call(c.api.graphDestroy, recorded) }()
	if err := c.check("make a graph", call(c.api.graphInstantiate, c.result(0), recorded, 0)); err != nil {
		return nil, err
	}
	return &graph{c, uintptr(c.out[0])}, nil
}

// capture is the recording itself, which ends with f, also after a panic. It is relaxed: f may build kernels or grow
// memory, though it should not have to.
func (c *context) capture(f func()) (recorded uintptr, err error) {
	const relaxed = 2
	if err := c.check("begin a graph", call(c.api.captureBegin, c.stream, relaxed)); err != nil {
		return 0, err
	}
	c.recording = true
	defer func() {
		c.recording, c.chained = false, false
		err = c.check("end a graph", call(c.api.captureEnd, c.stream, c.result(0)))
		recorded = uintptr(c.out[0])
	}()
	f()
	return 0, nil
}

// Launch replays the graph.
func (r *graph) Launch() error {
	defer r.ctx.enter()()
	return r.ctx.check("launch a graph", fast(r.ctx.api.graphLaunch, r.exec, r.ctx.stream))
}

// Free releases the graph.
func (r *graph) Free() error {
	defer r.ctx.enter()()
	return r.ctx.check("free a graph", call(r.ctx.api.graphExecDestroy, r.exec))
}

// Time measures f with events on the stream.
func (c *context) Time(f func()) (float64, error) {
	defer c.enter()()
	if err := c.check("cuEventRecord", fast(c.api.eventRecord, c.events[0], c.stream)); err != nil {
		return 0, err
	}
	f()
	if err := c.check("cuEventRecord", fast(c.api.eventRecord, c.events[1], c.stream)); err != nil {
		return 0, err
	}
	if err := c.check("wait for the GPU", fast(c.api.eventSync, c.events[1])); err != nil {
		return 0, err
	}
	err := c.check("cuEventElapsedTime", call(c.api.eventElapsed, c.result(0), c.events[0], c.events[1]))
	return float64(math.Float32frombits(uint32(c.out[0]))), err
}
