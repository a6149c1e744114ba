package server

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Serve answers on a listener until ctx ends, then drains: probes and new calls get 503 while calls under way finish or are
// aborted, and only then the listener closes. It returns nil after a drain.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	lim := &s.cfg.Limits
	srv := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: lim.HeaderTimeout, IdleTimeout: lim.IdleTimeout, MaxHeaderBytes: lim.Header,
		ErrorLog: log.New(io.Discard, "", 0), // a client's broken handshake is not our error
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(limited(l, lim.Connections)) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	if n := s.Drain(lim.Drain); n > 0 {
		s.cfg.Log.Warn("calls aborted at shutdown", "calls", n)
	}
	stop, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := srv.Shutdown(stop); err != nil {
		_ = srv.Close() // connections that would not end
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// limited accepts at most n connections at a time; the others wait in the kernel's queue.
func limited(l net.Listener, n int) net.Listener {
	return &limitListener{Listener: l, room: make(chan struct{}, n), done: make(chan struct{})}
}

type limitListener struct {
	net.Listener
	room chan struct{}
	done chan struct{}
	once sync.Once
}

// Accept implements net.Listener.
func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &limitConn{Conn: c, leave: sync.OnceFunc(func() { <-l.room })}, nil
}

// Close implements net.Listener.
func (l *limitListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

type limitConn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *limitConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
