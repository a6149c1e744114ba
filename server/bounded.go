package server

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// bounded accepts at most n connections at a time; the next waits in the kernel's queue. Clients that keep connections they do not use must not keep
// others out: while somebody waits, answers say that their connection will be closed (crowded), and connections that have been idle for
// a while are. One that has just become idle is left alone, since its client may be about to use it.
type bounded struct {
	net.Listener
	room chan struct{} // one entry per open connection
	done chan struct{}
	once sync.Once

	crowded *atomic.Bool // Accept waits for room

	mu   sync.Mutex
	idle map[net.Conn]time.Time // since when
}

const (
	idleEnough = time.Second           // before a connection is closed for another
	lookAgain  = 50 * time.Millisecond // for connections to close
)

func newBounded(l net.Listener, n int, crowded *atomic.Bool) *bounded {
	return &bounded{Listener: l, room: make(chan struct{}, n), done: make(chan struct{}), crowded: crowded, idle: map[net.Conn]time.Time{}}
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
	return &boundedConn{Conn: c, leave: sync.OnceFunc(func() { <-l.room })}, nil
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
		l.evict()
		select {
		case l.room <- struct{}{}:
			return nil
		case <-l.done:
			return net.ErrClosed
		case <-time.After(lookAgain):
		}
	}
}

// evict closes connections that have been idle for a while.
func (l *bounded) evict() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c, since := range l.idle {
		if time.Since(since) > idleEnough {
			delete(l.idle, c)
			c.Close()
		}
	}
}

// turn is the server's hook: it keeps the list of idle connections.
func (l *bounded) turn(c net.Conn, s http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s == http.StateIdle {
		l.idle[c] = time.Now()
	} else {
		delete(l.idle, c)
	}
}

// Close implements net.Listener.
func (l *bounded) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

type boundedConn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
