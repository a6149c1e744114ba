package server

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"antiphase/internal/fault"
)

// Serve serves a listener until ctx ends, then drains: probes and new calls get 503 while calls in flight finish or are
// aborted, and only then the listener closes. It returns nil after a drain.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	lim := &s.cfg.Limits
	bounded := newBounded(l, lim.Connections, &s.crowded)
	srv := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: lim.HeaderTimeout, IdleTimeout: lim.IdleTimeout,
		MaxHeaderBytes: lim.Header,
		ConnState:      bounded.turn, ConnContext: bounded.keep,
		ErrorLog: log.New(io.Discard, "", 0), // a client's broken handshake is not our error
	}
	failed := make(chan error, 1)
	go func() {
		defer fault.Guard()()
		failed <- srv.Serve(bounded)
	}()
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
		_ = srv.Close() // connections that did not end
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
