// Package server implements OpenAI's HTTP API over infer.
//
// A request passes the guard (guard.go: host, origin, key), is read within limits (body.go) and parsed field by field
// (fields.go) into a form for its model (form.go), waits for admission (gate.go) and runs through the engine on its own
// goroutine (generate.go), which writes events as they come (sse.go) or one response at the end. Each family of routes
// is a type over what all share (core.go), in a file of its own: chat.go, completions.go, tokenize.go, embeddings.go,
// models.go, health.go, attention.go, runs.go, metrics.go. The table of all routes is in routes.go; those not listed as
// public need a key.
//
// Nothing from a request is trusted: every number has a range, every list a length, every wait a deadline, no address
// is called on a request's behalf, and no file is opened except the metrics of runs, below one root.
package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// Config configures a server. The zero value serves loopback without a key.
type Config struct {
	Limits  Limits
	Keys    *Keys    // who may call; nil allows everyone
	Hosts   []string // names that the Host header may have, without port; nil allows all
	Origins []string // additional web origins, such as https://app.example
	Version string
	Commit  string
	Log     *slog.Logger // one line per request; nil logs nothing
	// Runs is a folder of runs whose curves are shown; nil: none.
	Runs *os.Root
	// Page serves GET / and everything below /ui/; both are public. Without one, GET / lists the routes.
	Page http.Handler
}

// Server answers requests for one or more models.
type Server struct {
	core
	router  *router
	handler http.Handler
	crowded atomic.Bool // connections are waiting for others to close
}

// New makes a server that returns 503 until it gets models with Ready.
func New(cfg Config) (*Server, error) {
	if err := cfg.Limits.complete(); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if err := checkNames(cfg.Hosts, cfg.Origins); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{core: core{cfg: cfg, calls: newCalls()}}
	s.metrics = newMetrics(&s.models)
	s.router = newRouter(&s.core)
	s.handler = &guard{core: &s.core, router: s.router, mux: s.router.mux(), crowded: &s.crowded}
	return s, nil
}

// Handler is the whole API.
func (s *Server) Handler() http.Handler { return s.handler }

// Ready starts serving models. Their ids must differ.
func (s *Server) Ready(models ...*Model) error {
	if len(models) == 0 {
		return errors.New("server: no models")
	}
	seen := map[string]bool{}
	for _, m := range models {
		if seen[m.ID] {
			return fmt.Errorf("server: two models are called %q; give one of them another name", m.ID)
		}
		seen[m.ID] = true
		l := &s.cfg.Limits
		m.gate = newGate(m.Slots+m.Slots/4+1, l.Queue, l.queueTokens(m), l.Wait)
	}
	s.models.set(models)
	s.calls.open()
	return nil
}

// Drain rejects new calls, waits up to the limit for those in flight and aborts the rest, which see an error. It
// returns how many it aborted.
func (s *Server) Drain(limit time.Duration) (aborted int) {
	// The grace is for a step, and for a reader that does not read.
	return s.calls.drain(limit, s.cfg.Limits.WriteTimeout+time.Second)
}
