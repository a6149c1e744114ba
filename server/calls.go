package server

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// state is a server's state.
type state int32

const (
	loading state = iota
	serving
	draining
)

// calls are the requests that compute, from loading to the end of the drain.
type calls struct {
	state atomic.Int32

	mu       sync.Mutex
	inFlight int
	idle     chan struct{} // closed when a draining server has none; nil before
	rest     rest

	// abort ends calls that outlive a drain.
	base  context.Context
	abort context.CancelCauseFunc
}

func newCalls() *calls {
	c := &calls{rest: newRest()}
	c.base, c.abort = context.WithCancelCause(context.Background())
	return c
}

// open ends the loading.
func (c *calls) open() { c.state.CompareAndSwap(int32(loading), int32(serving)) }

var errDraining = &apiError{Status: http.StatusServiceUnavailable, Type: typeUnavailable, Code: "shutting_down",
	Message: "the server is shutting down"}

// unavailable says why a server is not serving.
func (c *calls) unavailable() error {
	switch state(c.state.Load()) {
	case loading:
		return &apiError{Status: http.StatusServiceUnavailable, Type: typeUnavailable, Message: "Loading model"}
	case draining:
		return errDraining
	}
	return nil
}

// begin counts a call, and rejects it while the server loads or drains.
func (c *calls) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.unavailable(); err != nil {
		return err
	}
	c.inFlight++
	c.rest.busy()
	return nil
}

// end is the counterpart of begin.
func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight--; c.inFlight > 0 {
		return
	}
	c.rest.idle()
	if c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// deadline bounds a call by a limit, the client's connection and the end of a drain.
func (c *calls) deadline(r *http.Request, limit time.Duration) (context.Context, func()) {
	timed, end := context.WithTimeoutCause(r.Context(), limit, errDeadline)
	ctx, cancel := context.WithCancelCause(timed)
	stop := context.AfterFunc(c.base, func() { cancel(context.Cause(c.base)) })
	return ctx, func() {
		stop()
		cancel(nil)
		end()
	}
}

// drain rejects new calls, waits up to the limit for those in flight, aborts the rest and waits for them up to the
// grace. It returns how many it aborted.
func (c *calls) drain(limit, grace time.Duration) (aborted int) {
	c.state.Store(int32(draining))
	c.mu.Lock()
	var idle chan struct{}
	if c.inFlight > 0 {
		if c.idle == nil {
			c.idle = make(chan struct{})
		}
		idle = c.idle
	}
	c.mu.Unlock()
	if idle == nil {
		return 0
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-idle:
		return 0
	case <-timer.C:
	}
	c.mu.Lock()
	aborted = c.inFlight
	c.mu.Unlock()
	c.abort(errDraining)
	select {
	case <-idle:
	case <-time.After(grace):
	}
	return aborted
}
