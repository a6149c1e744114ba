package cuda

import "antiphase/internal/cu"

// queue puts all work on the machine's one stream, in order. An op of few rows may wait in it for the next (held.go).
type queue struct {
	*machine
	held    held // an op that may be fused with the next
	unfused bool // nothing is held; for tests
}

// launch runs what is held, then a kernel with these arguments (see start).
func (d *queue) launch(k kernel, grid, block cu.Dim, shared int, args ...uint64) {
	d.flush()
	d.start(k, grid, block, shared, args...)
}

// launchStruct is launch for a kernel that takes one struct.
func (d *queue) launchStruct(k kernel, grid, block cu.Dim, shared int, arg []byte) {
	d.flush()
	d.startStruct(k, grid, block, shared, arg)
}

// now returns the driver after all earlier work has been queued.
func (d *queue) now() cu.Driver {
	d.flush()
	return d.drv
}

// Stream returns the driver after all earlier work has been queued: work given to it directly, such as a collective,
// then runs in order with the ops.
func (d *queue) Stream() cu.Driver {
	drv := d.now()
	d.fresh.clear()
	return drv
}
