package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"antiphase/internal/escape"
)

const (
	tries       = 5
	firstPause  = 250 * time.Millisecond // doubled with each attempt
	longestWait = 5 * time.Minute        // that a server may request
	maxReply    = 1 << 26
)

// transport gives up on servers that do not answer at all; the duration of an answer is limited by the endpoint's own
// timeout.
var transport = &http.Transport{
	Proxy:               http.ProxyFromEnvironment,
	DialContext:         (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
	TLSHandshakeTimeout: 15 * time.Second,
	IdleConnTimeout:     90 * time.Second,
	MaxIdleConnsPerHost: 64,
}

// busy is an answer after which another attempt may succeed, after a pause if the server names one.
type busy struct {
	error
	pause time.Duration
}

func (b busy) Unwrap() error { return b.error }

// refusal is an answer that another attempt would not change: the server rejects the request.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// post sends a request, and retries after a pause if the server is busy or unreachable.
func (e *Endpoint) post(ctx context.Context, path string, body completionRequest) (*completionReply, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		reply, err := e.send(ctx, strings.TrimSuffix(e.URL, "/")+path, raw)
		if err == nil {
			return reply, nil
		}
		var again busy
		if !errors.As(err, &again) || try == tries-1 {
			return nil, fmt.Errorf("eval: endpoint %s: %w", e.URL, err)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(max(firstPause<<try, again.pause)):
		}
	}
}

// patience is how long one attempt may take.
func (e *Endpoint) patience() time.Duration {
	if e.Timeout <= 0 {
		return 10 * time.Minute
	}
	return e.Timeout
}

// send is one attempt.
func (e *Endpoint) send(ctx context.Context, url string, raw []byte) (*completionReply, error) {
	limit := e.patience()
	within, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer cancel()
	req, err := http.NewRequestWithContext(within, http.MethodPost, url, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if e.Key != "" {
		req.Header.Set("Authorization", "Bearer "+e.Key)
	}
	client := e.Client
	if client == nil {
		client = &http.Client{Transport: transport}
	}
	res, err := client.Do(req)
	var b []byte
	if err == nil {
		defer res.Body.Close()
		b, err = io.ReadAll(io.LimitReader(res.Body, maxReply))
	}
	if err != nil {
		if within.Err() != nil {
			err = context.Cause(within)
		}
		return nil, busy{error: err}
	}
	return parseReply(res, b)
}

// parseReply reads an answer, or says what is wrong with it.
func parseReply(res *http.Response, b []byte) (*completionReply, error) {
	if res.StatusCode != http.StatusOK {
		err := fmt.Errorf("%s: %s", plain(res.Status, 100), plain(string(b), 300))
		if res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500 {
			return nil, busy{err, retryAfter(res.Header.Get("Retry-After"), time.Now())}
		}
		return nil, refusal{err}
	}
	reply := &completionReply{}
	if err := json.Unmarshal(b, reply); err != nil {
		return nil, fmt.Errorf("its answer is not a completion: %s", plain(err.Error(), 300))
	}
	if len(reply.Choices) == 0 {
		return nil, errors.New("its answer has no choices")
	}
	return reply, nil
}

// retryAfter is the pause that a server requests, in seconds or as a date.
func retryAfter(s string, now time.Time) time.Duration {
	var d time.Duration
	if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil {
		d = time.Duration(min(max(n, 0), int(longestWait/time.Second))) * time.Second
	} else if at, err := http.ParseTime(s); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), longestWait)
}

// plain is a server's text as one line, cut after most bytes.
func plain(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	for i := range s { // whole characters
		if i >= most {
			return escape.Line(s[:i]) + "…"
		}
	}
	return escape.Line(s)
}
