// Package server implements OpenAI's HTTP API over infer.
//
// A request passes the guards (guard.go: host, origin, key, size), is parsed field by field (fields.go, sampling.go),
// waits for admission (gate.go) and runs through the engine on its own goroutine (generate.go), which writes events as
// they come (sse.go) or one response at the end. One file per family of routes: chat.go, completions.go, tokenize.go,
// embeddings.go, models.go, health.go, attention.go, runs.go, metrics.go. The table of all routes is in routes.go;
// those not listed as public need a key.
//
// Nothing from a request is trusted: every number has a range, every list a length, every wait a deadline, no address
// is called on a request's behalf, and no file is opened except the metrics of runs, below one root.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
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

// state is a server's state.
type state int32

const (
	loading state = iota
	serving
	draining
)

// Server answers requests for one or more models.
type Server struct {
	cfg     Config
	handler http.Handler
	routes  []route
	metrics *metrics
	state   atomic.Int32
	crowded atomic.Bool  // connections are waiting for others to close
	bodies  atomic.Int64 // bytes reserved for large bodies

	mu       sync.Mutex
	models   []*Model
	inFlight int           // calls that compute
	idle     chan struct{} // closed when a draining server has none; nil before
	rest     rest

	// abort ends calls that outlive a drain.
	base  context.Context
	abort context.CancelCauseFunc
}

// New makes a server that returns 503 until it gets models with Ready.
func New(cfg Config) (*Server, error) {
	if err := cfg.Limits.complete(); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, rest: newRest()}
	s.base, s.abort = context.WithCancelCause(context.Background())
	s.metrics = newMetrics(s)
	s.handler = s.build()
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
		m.gate = newGate(m.Slots+m.Slots/4+1, s.cfg.Limits.Queue, s.queueTokens(m), s.cfg.Limits.Wait)
	}
	s.mu.Lock()
	s.models = models
	s.mu.Unlock()
	s.state.CompareAndSwap(int32(loading), int32(serving))
	return nil
}

// queueTokens is the maximum number of prompt tokens that wait for a model.
func (s *Server) queueTokens(m *Model) int {
	if n := s.cfg.Limits.QueueTokens; n > 0 {
		return n
	}
	return 4 * m.Context * m.Slots
}

// requestTokens is the maximum number of tokens of one request to a model.
func (s *Server) requestTokens(m *Model) int {
	if n := s.cfg.Limits.RequestTokens; n > 0 {
		return n
	}
	return max(m.Context, min(64*m.Context, 1<<18))
}

// list are the models, the default one first.
func (s *Server) list() []*Model {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.models
}

// find is the model of a request; an empty name means the first.
func (s *Server) find(name string) (*Model, error) {
	list := s.list()
	for _, m := range list {
		if m.ID == name || name == "" {
			return m, nil
		}
	}
	names := ""
	for i, m := range list {
		if i > 0 {
			names += ", "
		}
		names += m.ID
	}
	return nil, &apiError{Status: http.StatusNotFound, Type: typeInvalid, Param: "model", Code: "model_not_found",
		Message: fmt.Sprintf("the model %.100q does not exist; there are: %s", name, names)}
}

// begin counts a call that computes, and rejects it while the server loads or drains.
func (s *Server) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.unavailable(); err != nil {
		return err
	}
	s.inFlight++
	s.rest.busy()
	return nil
}

// end is the counterpart of begin.
func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight--; s.inFlight > 0 {
		return
	}
	s.rest.idle()
	if s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// unavailable says why a server is not serving.
func (s *Server) unavailable() error {
	switch state(s.state.Load()) {
	case loading:
		return &apiError{Status: http.StatusServiceUnavailable, Type: typeUnavailable, Message: "Loading model"}
	case draining:
		return errDraining
	}
	return nil
}

var errDraining = &apiError{Status: http.StatusServiceUnavailable, Type: typeUnavailable, Code: "shutting_down", Message: "the server is shutting down"}

// Drain rejects new calls, waits up to the limit for those in flight and aborts the rest, which see an error. It
// returns how many it aborted.
func (s *Server) Drain(limit time.Duration) (aborted int) {
	s.state.Store(int32(draining))
	s.mu.Lock()
	var idle chan struct{}
	if s.inFlight > 0 {
		if s.idle == nil {
			s.idle = make(chan struct{})
		}
		idle = s.idle
	}
	s.mu.Unlock()
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
	s.mu.Lock()
	aborted = s.inFlight
	s.mu.Unlock()
	s.abort(errDraining)
	select {
	case <-idle:
	case <-time.After(s.cfg.Limits.WriteTimeout + time.Second): // a step, and a reader that does not read
	}
	return aborted
}
