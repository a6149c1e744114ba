//go:build (amd64 || arm64) && !nogpu

package cu

// beside is a second stream for collectives that overlap computation, with an event for each direction.
type beside struct {
	second     uintptr // 0 until it is used
	fork, join uintptr
	inside     bool // collectives go to the second stream
	begun      bool // some went there since the last Join
}

// stream is where the next collective goes.
func (b *beside) stream(g *gpu) uintptr {
	if b.inside {
		return b.second
	}
	return g.stream
}

// open creates the stream and its events on first use.
func (b *beside) open(g *gpu) error {
	if b.second != 0 {
		return nil
	}
	for _, event := range []*uintptr{&b.fork, &b.join} {
		if err := g.check("cuEventCreate", call(g.api.eventCreate, g.result(0), 2)); err != nil { // 2: no timing
			return err
		}
		*event = uintptr(g.out[0])
	}
	if err := g.check("cuStreamCreate", call(g.api.streamCreate, g.result(0), 1)); err != nil {
		return err
	}
	b.second = uintptr(g.out[0])
	return nil
}

func (b *beside) close(g *gpu) {
	if b.second != 0 {
		_ = call(g.api.streamDestroy, b.second)
	}
	for _, event := range []uintptr{b.fork, b.join} {
		if event != 0 {
			_ = call(g.api.eventDestroy, event)
		}
	}
	*b = beside{}
}

// after makes later work of one stream wait for earlier work of another. A recording of the latter then includes the
// former.
func after(g *gpu, waits, works, event uintptr) error {
	if err := g.check("cuEventRecord", fast(g.api.eventRecord, event, works)); err != nil {
		return err
	}
	return g.check("cuStreamWaitEvent", fast(g.api.streamWait, waits, event, 0))
}

// Beside runs collectives on the second stream.
func (c *communicator) Beside(f func() error) error {
	b := &c.beside
	leave := c.g.enter()
	err := b.open(c.g)
	if err == nil {
		err = after(c.g, b.second, c.g.stream, b.fork)
	}
	leave()
	if err != nil {
		return err
	}
	b.inside, b.begun = true, true
	defer func() { b.inside = false }()
	return f()
}

// Join lets the stream wait for the second one.
func (c *communicator) Join() error {
	if !c.beside.begun {
		return nil
	}
	defer c.g.enter()()
	c.beside.begun = false
	return after(c.g, c.g.stream, c.beside.second, c.beside.join)
}
