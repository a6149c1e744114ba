package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
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
func (s *Server) guard(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		id := r.Header.Get("X-Request-Id")
		if !idHeader.MatchString(id) {
			id = newID("req_")
		}
		r = r.WithContext(context.WithValue(r.Context(), keyID, id))
		rec := newRecorder(w, r, &s.cfg.Limits)
		h := rec.Header()
		h.Set("X-Request-Id", id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		if s.crowded.Load() {
			h.Set("Connection", "close")
		}
		_, pattern := mux.Handler(r)
		who := ""
		defer func() {
			if p := recover(); p != nil {
				s.panicked(rec, r, p)
			}
			s.bodies.Add(-rec.held)
			s.done(rec, r, pattern, who, begin)
		}()
		if err := s.check(rec, r); err != nil {
			s.fail(rec, r, err)
			return
		}
		if r.Method == http.MethodOptions && r.Header.Get("Origin") != "" {
			preflight(rec)
			return
		}
		if !s.public(pattern) {
			var err error
			if who, err = s.authorize(r); err != nil {
				s.fail(rec, r, err)
				return
			}
		}
		mux.ServeHTTP(rec, r.WithContext(context.WithValue(r.Context(), keyWho, who)))
	})
}

// panicked responds for a handler that did not. The engine recovers by itself (infer).
func (s *Server) panicked(w *recorder, r *http.Request, p any) {
	s.cfg.Log.Error("panic", "id", requestID(r), "panic", p, "stack", string(debug.Stack()))
	if w.status == 0 {
		s.fail(w, r, errors.New("panic"))
	}
}

// done counts and logs a request. Labels never contain what a client wrote.
func (s *Server) done(w *recorder, r *http.Request, pattern, who string, begin time.Time) {
	status := w.status
	if status == 0 {
		status = statusGone
	}
	if pattern == "" || pattern == "/" {
		pattern = "other"
	}
	s.metrics.request(pattern, status)
	s.cfg.Log.Info("request", "id", requestID(r), "route", pattern, "status", status, "who", who, "ms", time.Since(begin).Milliseconds(), "remote", r.RemoteAddr)
}

// check rejects foreign hosts and origins, and unsupported kinds of bodies.
func (s *Server) check(w http.ResponseWriter, r *http.Request) error {
	if !s.hostAllowed(r.Host) {
		return &apiError{Status: http.StatusForbidden, Type: typePermission, Code: "host_not_allowed",
			Message: "the Host header names another server; --allow-host permits it"}
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if !s.originAllowed(origin, r.Host) {
			return &apiError{Status: http.StatusForbidden, Type: typePermission, Code: "origin_not_allowed",
				Message: "pages of other origins may not call this server; --allow-origin permits one"}
		}
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Vary", "Origin")
	}
	if r.Header.Get("Content-Encoding") != "" {
		return &apiError{Status: http.StatusUnsupportedMediaType, Type: typeInvalid, Message: "compressed request bodies are not read"}
	}
	return nil
}

// hostAllowed protects against DNS rebinding: a page whose name resolves to this machine still has its own name in the
// header.
func (s *Server) hostAllowed(host string) bool {
	if s.cfg.Hosts == nil {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	return slices.Contains(s.cfg.Hosts, host)
}

// originAllowed compares whole origins: scheme, name and port.
func (s *Server) originAllowed(origin, host string) bool {
	if slices.Contains(s.cfg.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" || u.User != nil || u.RawQuery != "" {
		return false
	}
	return strings.EqualFold(u.Host, host)
}

func preflight(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Request-Id")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}

// body reads a request's JSON within its limits of size and time.
func (s *Server) body(w http.ResponseWriter, r *http.Request) (*object, error) {
	if t := r.Header.Get("Content-Type"); t != "" {
		if kind, _, err := mime.ParseMediaType(t); err != nil || kind != "application/json" {
			return nil, &apiError{Status: http.StatusUnsupportedMediaType, Type: typeInvalid, Message: "the body must be application/json"}
		}
	}
	if err := s.hold(w, r); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.cfg.Limits.Body))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &apiError{Status: http.StatusRequestEntityTooLarge, Type: typeInvalid, Code: "request_too_large",
			Message: "the body is larger than the server reads", Extra: map[string]any{"limit_bytes": large.Limit}}
	case err != nil:
		return nil, &apiError{Status: http.StatusRequestTimeout, Type: typeInvalid, Message: "the body did not arrive"}
	}
	if rec, ok := w.(*recorder); ok {
		rec.arrived()
	}
	if err := checkValues(b, &s.cfg.Limits, s.list()); err != nil {
		return nil, err
	}
	o, err := parseObject(b)
	if err != nil {
		return nil, err
	}
	if name, twice := duplicateKey(b); twice {
		return nil, invalid(excerpt([]byte(name)), "is there twice; say it once")
	}
	return o, nil
}

// A body of less than smallBody is not counted; of larger ones, all together may have manyBodies times the limit of one.
const (
	smallBody  = 64 << 10
	manyBodies = 16
)

// hold reserves memory for a body before it is read: there are many more connections than large bodies that fit into
// memory. The reservation ends with the request.
func (s *Server) hold(w http.ResponseWriter, r *http.Request) error {
	size := min(r.ContentLength, s.cfg.Limits.Body)
	if size < 0 {
		size = s.cfg.Limits.Body // unknown
	}
	rec, ok := w.(*recorder)
	if !ok || size < smallBody {
		return nil
	}
	if s.bodies.Add(size) > manyBodies*s.cfg.Limits.Body {
		s.bodies.Add(-size)
		return &apiError{Status: http.StatusTooManyRequests, Type: typeLimit, Code: "rate_limit_exceeded", Retry: time.Second,
			Message: "the server is at its limit: too many large bodies are being read; try again later"}
	}
	rec.held += size
	return nil
}
