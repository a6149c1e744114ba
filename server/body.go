package server

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
	"unicode/utf8"

	"antiphase/internal/surrogate"
)

// open reads a body and finds its model.
func (c *core) open(w http.ResponseWriter, r *http.Request) (*form, error) {
	if err := c.calls.unavailable(); err != nil {
		return nil, err
	}
	o, err := c.body(w, r)
	if err != nil {
		return nil, err
	}
	name := o.text("model")
	if o.err != nil {
		return nil, o.err
	}
	m, err := c.models.find(name)
	return &form{o, m, &c.cfg.Limits}, err
}

// openCall is open for routes that compute. It rejects before the body is read if every model would, and otherwise
// before anything is made of it: under overload most of the work would be reading bodies and encoding texts that are
// then discarded, and refusals would wait for that.
func (c *core) openCall(w http.ResponseWriter, r *http.Request) (*form, error) {
	err := c.calls.unavailable()
	if err != nil {
		return nil, err
	}
	for _, m := range c.models.list() {
		if err = m.gate.closed(caller(r)); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	f, err := c.open(w, r)
	if err != nil {
		return nil, err
	}
	return f, f.model.gate.closed(caller(r))
}

// body reads a request's JSON within its limits of size and time.
func (c *core) body(w http.ResponseWriter, r *http.Request) (*object, error) {
	if t := r.Header.Get("Content-Type"); t != "" {
		if kind, _, err := mime.ParseMediaType(t); err != nil || kind != "application/json" {
			return nil, &apiError{Status: http.StatusUnsupportedMediaType, Type: typeInvalid,
				Message: fmt.Sprintf("the header Content-Type is %q, must be application/json", t)}
		}
	}
	if err := c.hold(w, r); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, c.cfg.Limits.Body))
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
	if !utf8.Valid(b) { // encoding/json would replace what is not by U+FFFD, silently
		return nil, &apiError{Status: http.StatusBadRequest, Type: typeInvalid, Message: "the body is not valid UTF-8"}
	}
	if err := checkValues(b, &c.cfg.Limits, c.models.list()); err != nil {
		return nil, err
	}
	o, err := parseObject(b)
	if err != nil {
		return nil, err
	}
	if escape, lone := surrogate.Lone(b); lone {
		return nil, &apiError{Status: http.StatusBadRequest, Type: typeInvalid,
			Message: "the body has " + escape +
				" without the other half of its surrogate pair, which is not a character"}
	}
	if name, twice := duplicateKey(b); twice {
		return nil, invalid(excerpt([]byte(name)), "is there twice; say it once")
	}
	return o, nil
}

// A body of less than smallBody is not counted; of larger ones, all together may have manyBodies times the limit of
// one.
const (
	smallBody  = 64 << 10
	manyBodies = 16
)

// hold reserves memory for a body before it is read: there are many more connections than large bodies that fit into
// memory. The reservation ends with the request.
func (c *core) hold(w http.ResponseWriter, r *http.Request) error {
	size := min(r.ContentLength, c.cfg.Limits.Body)
	if size < 0 {
		size = c.cfg.Limits.Body // unknown
	}
	rec, ok := w.(*recorder)
	if !ok || size < smallBody {
		return nil
	}
	if c.bodies.Add(size) > manyBodies*c.cfg.Limits.Body {
		c.bodies.Add(-size)
		return &apiError{Status: http.StatusTooManyRequests, Type: typeLimit, Code: "rate_limit_exceeded",
			Retry:   time.Second,
			Message: "the server is at its limit: too many large bodies are being read; try again later"}
	}
	rec.held += size
	return nil
}
