package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"antiphase/infer"
	"antiphase/lab"
	"antiphase/model"
	"antiphase/tokenizer/chat"
)

// OpenAI's error types.
const (
	typeInvalid     = "invalid_request_error"
	typeAuth        = "authentication_error"
	typePermission  = "permission_error"
	typeLimit       = "rate_limit_error"
	typeServer      = "server_error"
	typeUnavailable = "unavailable_error"
)

// apiError is an error as clients see it. It never contains a path, a stack or anything of another request.
type apiError struct {
	Status  int
	Message string
	Type    string
	Param   string // the wrong field
	Code    string
	Retry   time.Duration // when to try again, with 429 and 503
	Extra   map[string]any
}

// Error is the message.
func (e *apiError) Error() string { return e.Message }

// body is OpenAI's form.
func (e *apiError) body() map[string]any {
	text := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	m := map[string]any{"message": e.Message, "type": e.Type, "param": text(e.Param), "code": text(e.Code)}
	if e.Code == "" && e.Status == http.StatusServiceUnavailable {
		m["code"] = e.Status
	}
	for k, v := range e.Extra {
		m[k] = v
	}
	return map[string]any{"error": m}
}

// invalid is an invalid field.
func invalid(param, format string, args ...any) *apiError {
	return &apiError{Status: http.StatusBadRequest, Type: typeInvalid, Param: param, Message: param + ": " +
		fmt.Sprintf(format, args...)}
}

var (
	errDeadline = &apiError{Status: http.StatusGatewayTimeout, Type: typeServer, Code: "deadline_exceeded",
		Message: "the request took longer than the server allows"}
	errGone = errors.New("the client has gone")
	errSlow = errors.New("the client does not read")
)

// statusGone is logged if the client has disconnected; it is not sent.
const statusGone = 499

// public converts any error for clients. An unknown error is a fault of the server and identified only by the request's
// id.
func public(err error, id string) *apiError {
	var api *apiError
	var field *infer.FieldError
	var query *lab.FieldError
	var long *infer.ContextError
	switch {
	case errors.As(err, &api):
		return api
	case errors.As(err, &field):
		return &apiError{Status: http.StatusBadRequest, Type: typeInvalid, Param: field.Field, Message: field.Error()}
	case errors.As(err, &query):
		return invalid(query.Field, "%s", query.Problem)
	case errors.As(err, &long):
		return &apiError{Status: http.StatusBadRequest, Type: typeInvalid, Param: "prompt",
			Code: "context_length_exceeded", Message: long.Error(),
			Extra: map[string]any{"n_prompt_tokens": long.Prompt, "n_ctx": long.Limit}}
	case errors.Is(err, model.ErrParts):
		return &apiError{Status: http.StatusNotImplemented, Type: typeServer, Code: "not_implemented",
			Message: err.Error()}
	case errors.Is(err, chat.ErrTemplate):
		return &apiError{Status: http.StatusBadRequest, Type: typeInvalid, Param: "messages", Message: err.Error()}
	case errors.Is(err, errGone), errors.Is(err, errSlow), errors.Is(err, context.Canceled):
		return &apiError{Status: statusGone, Type: typeServer, Message: "the client has gone"}
	}
	return &apiError{Status: http.StatusInternalServerError, Type: typeServer, Code: "internal_error",
		Message: "the server failed to answer; its log has the reason under request " + id}
}

// fail answers with an error.
func (c *core) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := public(err, requestID(r))
	if e.Status == http.StatusInternalServerError {
		c.cfg.Log.Error("request failed", "id", requestID(r), "err", err)
	}
	if e.Status == http.StatusTooManyRequests {
		c.metrics.rejected.WithLabelValues("queue_full").Inc()
	}
	if e.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((e.Retry+time.Second-1)/time.Second)))
	}
	c.json(w, e.Status, e.body())
}

// json writes an answer.
func (c *core) json(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil { // every value here is made by this package
		status, b = http.StatusInternalServerError,
			[]byte(`{"error":{"message":"the answer is no JSON","type":"server_error","param":null,"code":null}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the client may be gone
	_ = http.NewResponseController(w).Flush()
}

// abandon reports a failed call to the client, as far as that is still possible.
func (c *core) abandon(w http.ResponseWriter, r *http.Request, out *events, err error) {
	e := public(err, requestID(r))
	switch {
	case e.Status == statusGone:
		c.metrics.cancelled.Inc() // the log has statusGone for what was not answered
	case out != nil && out.begun():
		if e.Status == http.StatusInternalServerError {
			c.cfg.Log.Error("request failed", "id", requestID(r), "err", err)
		}
		_ = out.send(e.body()) // the stream ends either way
	default:
		c.fail(w, r, err)
	}
}
