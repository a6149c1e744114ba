package server

import (
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A drain waits for every call in flight, and memory is given back after the last one only.
func TestCallsInFlight(t *testing.T) {
	c := newCalls()
	c.open()
	for range 3 {
		if err := c.begin(); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan int, 1)
	go func() { done <- c.drain(time.Hour, time.Hour) }()
	waits := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.idle != nil
	}
	until(t, "the drain", waits)
	for left := 2; left >= 0; left-- {
		if c.rest.timer != nil {
			t.Errorf("memory is to be given back with %d calls in flight", left+1)
		}
		if c.end(); waits() != (left > 0) || c.inFlight != left {
			t.Errorf("%d of 3 calls are left, %d are counted, waits: %v", left, c.inFlight, waits())
		}
	}
	if n := <-done; n != 0 || c.rest.timer == nil {
		t.Errorf("%d calls were aborted", n)
	}
	if c.rest.busy(); c.rest.timer.Stop() {
		t.Error("memory is to be given back while a call runs")
	}
	if err := c.begin(); err == nil {
		t.Error("a call begins after the drain")
	}
}

// A connection is being answered from when its request has been read: at once if it has no body.
func TestConnectionsThatAreAnswered(t *testing.T) {
	l := newBounded(nil, 1, new(atomic.Bool))
	for _, body := range []string{"", "{}"} {
		conn := &boundedConn{l: l, phase: arrives}
		q := httptest.NewRequest("POST", "/", strings.NewReader(body))
		limits := DefaultLimits()
		w := newRecorder(httptest.NewRecorder(), q.WithContext(l.keep(q.Context(), conn)), &limits)
		if (conn.phase == serves) != (body == "") || w.unread == (body == "") {
			t.Errorf("%q: phase %d at first, unread %v", body, conn.phase, w.unread)
		}
		if w.arrived(); conn.phase != serves || w.unread || conn.since.IsZero() {
			t.Errorf("%q: phase %d in the end, unread %v", body, conn.phase, w.unread)
		}
	}
}
