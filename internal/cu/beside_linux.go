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
func (b *beside) stream(c *context) uintptr {
	if b.inside {
		return b.second
	}
	return c.stream
}

// open creates the stream and its events on first use.
func (b *beside) open(c *context) error {
	if b.second != 0 {
		return nil
	}
	for _, event := range []*uintptr{&b.fork, &b.join} {
		if err := c.check("cuEventCreate", call(c.api.eventCreate, c.result(0), 2)); err != nil { // 2: no timing
			return err
		}
		*event = uintptr(c.out[0])
	}
	if err := c.check("cuStreamCreate", call(c.api.streamCreate, c.result(0), 1)); err != nil {
		return err
	}
	b.second = uintptr(c.out[0])
	return nil
}

func (b *beside) close(c *context) {
	if b.second != 0 {
		_ = call(c.api.streamDestroy, b.second)
	}
	for _, event := range []uintptr{b.fork, b.join} {
		if event != 0 {
			_ = call(c.api.eventDestroy, event)
		}
	}
	*b = beside{}
}

// after makes later work of one stream wait for earlier work of another. A recording of the latter then includes the
// former.
func after(c *context, waits, works, event uintptr) error {
	if err := c.check("cuEventRecord", fast(c.api.eventRecord, event, works)); err != nil {
		return err
	}
	return c.check("cuStreamWaitEvent", fast(c.api.streamWait, waits, event, 0))
}

// Beside runs collectives on the second stream.
func (c *communicator) Beside(f func() error) error {
	b := &c.beside
	leave := c.ctx.enter()
	err := b.open(c.ctx)
	if err == nil {
		err = after(c.ctx, b.second, c.ctx.stream, b.fork)
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
	defer c.ctx.enter()()
	c.beside.begun = false
	return after(c.ctx, c.ctx.stream, c.beside.second, c.beside.join)
}
