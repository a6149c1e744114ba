package server

import (
	"fmt"
	"time"
)

// Limits bound what a request may ask for and how long it may take. Zero fields use DefaultLimits.
type Limits struct {
	Body          int64         // bytes of a request body
	Header        int           // bytes of its header
	HeaderTimeout time.Duration // to read the header
	BodyTimeout   time.Duration // to read the body
	WriteTimeout  time.Duration // for one write to a client that does not read
	IdleTimeout   time.Duration // of a connection between requests
	Connections   int           // open at a time
	Queue         int           // requests that wait for one model
	QueueTokens   int           // prompt tokens that wait for one model; default 4 × context × slots
	Wait          time.Duration // of a request in the queue; default half of what requests take, or half a second
	Choices       int           // n
	Prompts       int           // of one request
	Stops         int           // stop strings
	StopBytes     int           // of one stop string
	Logprobs      int           // logprobs and top_logprobs
	Biases        int           // entries of logit_bias
	Messages      int           // of one chat
	Cells         int           // numbers in an answer of /v1/attention
	Entries       int           // entries of maps that it may compute
	Tops          int           // most likely next tokens that it lists
	RequestTokens int           // answers and echoes of a request; default 64 contexts, at most 262,144 or one context
	MaxTokens     int           // of an answer, if the request names no number; default as many as fit
	Request       time.Duration // wall time of one request
	Compile       time.Duration // to compile a schema
	SchemaDepth   int
	Ping          time.Duration // idle time before a comment is sent on a stream
	Drain         time.Duration // for calls in flight at shutdown
}

// DefaultLimits are the defaults.
func DefaultLimits() Limits {
	return Limits{
		Body: 8 << 20, Header: 64 << 10,
		HeaderTimeout: 10 * time.Second, BodyTimeout: 30 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: 60 * time.Second,
		Connections: 1024, Queue: 256, Choices: 16, Prompts: 64, Stops: 4, StopBytes: 256, Logprobs: 20, Biases: 1024,
		Messages: 1024,
		Cells:    1 << 20, Entries: 1 << 26, Tops: 64,
		Request: 10 * time.Minute, Compile: time.Second, SchemaDepth: 32, Ping: 15 * time.Second,
		Drain: 30 * time.Second,
	}
}

// complete fills in the defaults and reports what is out of range.
func (l *Limits) complete() error {
	d := DefaultLimits()
	for _, f := range []struct {
		name   string
		v, def *int
	}{
		{"header", &l.Header, &d.Header}, {"connections", &l.Connections, &d.Connections},
		{"queue", &l.Queue, &d.Queue}, {"choices", &l.Choices, &d.Choices},
		{"prompts", &l.Prompts, &d.Prompts}, {"stops", &l.Stops, &d.Stops}, {"stop bytes", &l.StopBytes, &d.StopBytes},
		{"logprobs", &l.Logprobs, &d.Logprobs}, {"biases", &l.Biases, &d.Biases},
		{"messages", &l.Messages, &d.Messages},
		{"cells", &l.Cells, &d.Cells}, {"entries", &l.Entries, &d.Entries}, {"tops", &l.Tops, &d.Tops},
		{"schema depth", &l.SchemaDepth, &d.SchemaDepth}, {"queue tokens", &l.QueueTokens, &d.QueueTokens},
		{"max tokens", &l.MaxTokens, &d.MaxTokens},
		{"request tokens", &l.RequestTokens, &d.RequestTokens},
	} {
		if err := fill(f.name, f.v, *f.def); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name   string
		v, def *time.Duration
	}{
		{"header timeout", &l.HeaderTimeout, &d.HeaderTimeout}, {"body timeout", &l.BodyTimeout, &d.BodyTimeout},
		{"write timeout", &l.WriteTimeout, &d.WriteTimeout},
		{"idle timeout", &l.IdleTimeout, &d.IdleTimeout}, {"request", &l.Request, &d.Request},
		{"wait", &l.Wait, &d.Wait}, {"compile", &l.Compile, &d.Compile},
		{"ping", &l.Ping, &d.Ping}, {"drain", &l.Drain, &d.Drain},
	} {
		if err := fill(f.name, f.v, *f.def); err != nil {
			return err
		}
	}
	return fill("body", &l.Body, d.Body)
}

// fill replaces a zero limit by its default.
func fill[T int | int64 | time.Duration](name string, v *T, def T) error {
	if *v < 0 {
		return fmt.Errorf("limit %s: is %v, must not be negative", name, *v)
	}
	if *v == 0 {
		*v = def
	}
	return nil
}

// queueTokens is the maximum number of prompt tokens that wait for a model.
func (l *Limits) queueTokens(m *Model) int {
	if l.QueueTokens > 0 {
		return l.QueueTokens
	}
	return 4 * m.Context * m.Slots
}

// requestTokens is the maximum number of tokens of one request to a model.
func (l *Limits) requestTokens(m *Model) int {
	if l.RequestTokens > 0 {
		return l.RequestTokens
	}
	return max(m.Context, min(64*m.Context, 1<<18))
}
