package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// bounded accepts at most n connections at a time; the next waits in the kernel's queue. Clients with unused
// connections must not keep others out: while one waits, responses announce that their connection will be closed
// (crowded), idle connections are closed after a while, and if there are none, the one whose request has been arriving
// for longest. So a flood of incomplete requests costs its senders their connections, and probes are still answered. A
// connection that has just become idle or begun to send is left alone, and one whose request is being answered always
// is.
type bounded struct {
	net.Listener
	room chan struct{} // one entry per open connection
	done chan struct{}
	once sync.Once

	crowded *atomic.Bool // Accept waits for room

	mu   sync.Mutex
	open map[*boundedConn]struct{}
}

// phase is the state of a connection.
type phase uint8

const (
	arrives phase = iota // a request is awaited or being read
	serves               // it has been read and is being answered
	idles                // between requests
)

const (
	patience  = time.Second           // before a connection is closed for another
	lookAgain = 50 * time.Millisecond // for connections to close
)

func newBounded(l net.Listener, n int, crowded *atomic.Bool) *bounded {
	return &bounded{Listener: l, room: make(chan struct{}, n), done: make(chan struct{}), crowded: crowded,
		open: map[*boundedConn]struct{}{}}
}

// Accept implements net.Listener.
func (l *bounded) Accept() (net.Conn, error) {
	if err := l.enter(); err != nil {
		return nil, err
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	b := &boundedConn{Conn: c, l: l, since: time.Now()}
	l.mu.Lock()
	l.open[b] = struct{}{}
	l.mu.Unlock()
	return b, nil
}

// enter waits for room.
func (l *bounded) enter() error {
	select {
	case l.room <- struct{}{}:
		return nil
	default:
	}
	l.crowded.Store(true)
	defer l.crowded.Store(false)
	for {
		for _, c := range l.dispensable() {
			c.Close()
		}
		select {
		case l.room <- struct{}{}:
			return nil
		case <-l.done:
			return net.ErrClosed
		case <-time.After(lookAgain):
		}
	}
}

// dispensable are the connections to close for another: idle ones, or else the one that has been arriving for longest.
func (l *bounded) dispensable() (list []*boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var oldest *boundedConn
	for c := range l.open {
		switch {
		case c.phase == serves || time.Since(c.since) <= patience:
		case c.phase == idles:
			list = append(list, c)
		case oldest == nil || c.since.Before(oldest.since):
			oldest = c
		}
	}
	if list == nil && oldest != nil {
		list = append(list, oldest)
	}
	return list
}

// turn is net/http's hook for a connection's state.
func (l *bounded) turn(c net.Conn, s http.ConnState) {
	b, ok := c.(*boundedConn)
	switch {
	case !ok:
	case s == http.StateIdle:
		b.enter(idles)
	case s == http.StateActive:
		b.enter(arrives)
	}
}

// keep is net/http's hook for a connection's context, through which requests find their connection.
func (l *bounded) keep(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, keyConn, c)
}

// Close implements net.Listener.
func (l *bounded) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

type boundedConn struct {
	net.Conn
	l    *bounded
	once sync.Once

	// Under the listener's lock.
	phase phase
	since time.Time
}

// enter begins a phase.
func (c *boundedConn) enter(p phase) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.phase, c.since = p, time.Now()
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.l.mu.Lock()
		delete(c.l.open, c)
		c.l.mu.Unlock()
		<-c.l.room
	})
	return err
}
