package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// events writes a stream of server-sent events. Nothing is sent before the first event or ping, so that a request that
// fails early still gets its status. Every write has a deadline (recorder.go): a client that does not read is dropped.
type events struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	ping time.Duration

	mu      sync.Mutex
	text    bytes.Buffer // the event being written
	json    *json.Encoder
	timer   *time.Timer
	started bool
	waiting bool // something was written and not flushed
	closed  bool
	err     error
}

// newEvents sends pings while the stream is idle. Close must be called.
func newEvents(w http.ResponseWriter, l *Limits) *events {
	e := &events{w: w, rc: http.NewResponseController(w), ping: l.Ping}
	e.json = json.NewEncoder(&e.text)
	e.mu.Lock() // a ping may be due before the timer is stored
	defer e.mu.Unlock()
	e.timer = time.AfterFunc(l.Ping, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if !e.closed {
			e.write([]byte(": ping\n\n"))
			e.push()
		}
	})
	return e
}

// send writes one event. It is sent when flush is called, or the buffer is full.
func (e *events) send(v any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.text.Reset()
	e.text.WriteString("data: ")
	if err := e.json.Encode(v); err != nil { // ends the line
		return err
	}
	e.text.WriteByte('\n')
	e.write(e.text.Bytes())
	return e.err
}

// raw writes one event's data.
func (e *events) raw(data string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.write([]byte("data: " + data + "\n\n"))
	return e.err
}

func (e *events) write(text []byte) {
	if e.err != nil {
		return
	}
	e.waiting = true
	if !e.started {
		h := e.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		e.w.WriteHeader(http.StatusOK)
		e.started = true
	}
	if _, err := e.w.Write(text); err != nil {
		e.err = errSlow
	}
}

// flush sends what was written.
func (e *events) flush() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.push()
	return e.err
}

func (e *events) push() {
	if e.err != nil || !e.waiting {
		return
	}
	if err := e.rc.Flush(); err != nil {
		e.err = errSlow
	}
	e.waiting = false
	e.timer.Reset(e.ping)
}

// begun reports whether the status was sent.
func (e *events) begun() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.started
}

// close sends the rest and ends the pings.
func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.push()
	e.closed = true
	e.timer.Stop()
}
