package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"regexp"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"
)

type contextKey int

const (
	keyID contextKey = iota
	keyWho
	keyConn
)

// requestID is the id that the client gave or the server drew.
func requestID(r *http.Request) string {
	id, _ := r.Context().Value(keyID).(string)
	return id
}

// caller is the identity found by authorize.
func caller(r *http.Request) string {
	who, _ := r.Context().Value(keyWho).(string)
	return who
}

// newID is a random id in OpenAI's format.
func newID(prefix string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}

var idHeader = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// guard wraps all routes with the checks that every request passes.
type guard struct {
	*core
	router  *router
	mux     *http.ServeMux
	crowded *atomic.Bool
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	id := r.Header.Get("X-Request-Id")
	if !idHeader.MatchString(id) {
		id = newID("req_")
	}
	r = r.WithContext(context.WithValue(r.Context(), keyID, id))
	rec := newRecorder(w, r, &g.cfg.Limits)
	h := rec.Header()
	h.Set("X-Request-Id", id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if g.crowded.Load() {
		h.Set("Connection", "close")
	}
	_, pattern := g.mux.Handler(r)
	who := ""
	defer func() {
		if p := recover(); p != nil {
			g.panicked(rec, r, p)
		}
		g.bodies.Add(-rec.held)
		g.done(rec, r, pattern, who, begin)
	}()
	if err := g.check(rec, r); err != nil {
		g.fail(rec, r, err)
		return
	}
	if r.Method == http.MethodOptions && r.Header.Get("Origin") != "" {
		preflight(rec)
		return
	}
	if !g.router.public(pattern) {
		var err error
		if who, err = g.authorize(r); err != nil {
			g.fail(rec, r, err)
			return
		}
	}
	g.mux.ServeHTTP(rec, r.WithContext(context.WithValue(r.Context(), keyWho, who)))
}

// panicked responds for a handler that did not. The engine recovers by itself (infer).
func (g *guard) panicked(w *recorder, r *http.Request, p any) {
	g.cfg.Log.Error("panic", "id", requestID(r), "panic", p, "stack", string(debug.Stack()))
	if w.status == 0 {
		g.fail(w, r, errors.New("panic"))
	}
}

// done counts and logs a request. Labels never contain what a client wrote.
func (g *guard) done(w *recorder, r *http.Request, pattern, who string, begin time.Time) {
	status := w.status
	if status == 0 {
		status = statusGone
	}
	if pattern == "" || pattern == "/" {
		pattern = "other"
	}
	g.metrics.request(pattern, status)
	g.cfg.Log.Info("request", "id", requestID(r), "route", pattern, "status", status, "who", who, "ms",
		time.Since(begin).Milliseconds(), "remote", r.RemoteAddr)
}

// check rejects foreign hosts and origins, and unsupported kinds of bodies.
func (g *guard) check(w http.ResponseWriter, r *http.Request) error {
	if !g.hostAllowed(r.Host) {
		return &apiError{Status: http.StatusForbidden, Type: typePermission, Code: "host_not_allowed",
			Message: "the Host header names another server; --allow-host permits it"}
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if !g.originAllowed(origin, r.Host) {
			return &apiError{Status: http.StatusForbidden, Type: typePermission, Code: "origin_not_allowed",
				Message: "pages of other origins may not call this server; --allow-origin permits one"}
		}
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Vary", "Origin")
	}
	if r.Header.Get("Content-Encoding") != "" {
		return &apiError{Status: http.StatusUnsupportedMediaType, Type: typeInvalid,
			Message: "compressed request bodies are not read"}
	}
	return nil
}

// hostAllowed protects against DNS rebinding: a page whose name resolves to this machine still has its own name in the
// header.
func (g *guard) hostAllowed(host string) bool {
	if g.cfg.Hosts == nil {
		return true
	}
	return slices.Contains(g.cfg.Hosts, hostName(host))
}

func preflight(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Request-Id")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}
