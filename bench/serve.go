package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"antiphase/internal/fault"
)

// ServeOptions describe a load on an OpenAI-compatible server. The load is open-loop unless Concurrency is set:
// requests arrive as a Poisson process at Rate regardless of earlier answers, like users.
type ServeOptions struct {
	URL       string // without /v1
	Key       string
	Model     string
	Rate      float64 // requests per second; 0 sends all at once
	Requests  int
	Prompt    Lengths // tokens of prompts
	Output    Lengths // tokens of answers
	Vocab     int     // prompts are random ids below it
	Deadline  time.Duration
	IgnoreEOS bool // request answers of exactly that length; not every server knows the field
	Seed      uint64
	// Concurrency closes the loop: that many requests are always open, and the next is sent when one ends. Rate is then
	// ignored.
	Concurrency int
}

// Check reports what is out of range.
func (o *ServeOptions) Check() error {
	switch {
	case o.Requests < 1 || o.Requests > 1e6:
		return fmt.Errorf("requests: is %d, must be between 1 and 1000000", o.Requests)
	case !(o.Rate >= 0 && o.Rate <= 1e5):
		return fmt.Errorf("rate: is %g, must be between 0 (all at once) and 100000 requests per second", o.Rate)
	case o.Concurrency < 0 || o.Concurrency > 1e4:
		return fmt.Errorf("concurrency: is %d, must be between 0 (open loop) and 10000", o.Concurrency)
	case o.Vocab < 1:
		return fmt.Errorf("vocab: is %d, must be positive", o.Vocab)
	case o.Deadline <= 0:
		return fmt.Errorf("deadline: is %v, must be positive", o.Deadline)
	}
	return errors.Join(o.Prompt.check("prompt"), o.Output.check("output"))
}

// shot is one request of the load and its outcome.
type shot struct {
	at             time.Duration // when it is sent, from the beginning
	prompt, output int

	status int
	err    error
	tokens int
	first  time.Duration // to the first token
	whole  time.Duration
	gaps   []float64 // seconds between tokens
}

// Serve runs a load and summarises it. It ends early when ctx does.
func Serve(ctx context.Context, o ServeOptions) (*ServeResult, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	rnd := rand.New(rand.NewPCG(o.Seed, 1))
	shots := o.shots(rnd)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}}
	defer client.CloseIdleConnections()
	begin := time.Now()
	var wg sync.WaitGroup
	places := make(chan struct{}, max(o.Concurrency, 1))
	for i := range shots {
		s := &shots[i]
		body, err := o.body(rnd, s)
		if err != nil {
			return nil, err
		}
		if !o.wait(ctx, begin.Add(s.at), places) {
			wg.Wait()
			return nil, context.Cause(ctx)
		}
		wg.Go(func() {
			defer fault.Guard()()
			o.fire(ctx, client, s, body)
			if o.Concurrency > 0 {
				<-places
			}
		})
	}
	wg.Wait()
	return summarize(&o, shots, time.Since(begin)), context.Cause(ctx)
}

// shots draws the requests: their lengths, and when each is sent.
func (o *ServeOptions) shots(rnd *rand.Rand) []shot {
	list := make([]shot, o.Requests)
	at := time.Duration(0)
	for i := range list {
		list[i] = shot{at: at, prompt: o.Prompt.draw(rnd, i), output: o.Output.draw(rnd, i)}
		if o.Rate > 0 && o.Concurrency == 0 {
			at += time.Duration(rnd.ExpFloat64() / o.Rate * float64(time.Second))
		}
	}
	return list
}

// wait returns when the next request is due: at a time, or when there is a free place. It is false if ctx ends first.
func (o *ServeOptions) wait(ctx context.Context, at time.Time, places chan<- struct{}) bool {
	if o.Concurrency > 0 {
		select {
		case <-ctx.Done():
			return false
		case places <- struct{}{}:
			return true
		}
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(at)):
		return true
	}
}

// body is a completion request with random ids.
func (o *ServeOptions) body(rnd *rand.Rand, s *shot) ([]byte, error) {
	ids := make([]int, s.prompt)
	for i := range ids {
		ids[i] = rnd.IntN(o.Vocab)
	}
	m := map[string]any{"prompt": ids, "max_tokens": s.output, "temperature": 0, "stream": true,
		"stream_options": map[string]any{"include_usage": true}}
	if o.Model != "" {
		m["model"] = o.Model
	}
	if o.IgnoreEOS {
		m["ignore_eos"] = true
	}
	return json.Marshal(m)
}

// fire sends one request and times its stream.
func (o *ServeOptions) fire(ctx context.Context, c *http.Client, s *shot, body []byte) {
	begin := time.Now()
	defer func() { s.whole = time.Since(begin) }()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(o.URL, "/")+"/v1/completions",
		bytes.NewReader(body))
	if err != nil {
		s.err = err
		return
	}
	q.Header.Set("Content-Type", "application/json")
	if o.Key != "" {
		q.Header.Set("Authorization", "Bearer "+o.Key)
	}
	res, err := c.Do(q)
	if err != nil {
		s.err = err
		return
	}
	defer res.Body.Close()
	if s.status = res.StatusCode; s.status != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(res.Body, 300))
		s.err = fmt.Errorf("%s: %s", res.Status, bytes.TrimSpace(b))
		return
	}
	s.err = s.read(res.Body, begin)
}

// read times the events of a stream. A token that is part of a character has no event of its own, so tokens are counted
// by the server's usage if it reports one.
func (s *shot) read(r io.Reader, begin time.Time) error {
	lines := newLines(r)
	last, counted := begin, 0
	defer func() { s.tokens = max(s.tokens, counted) }()
	for {
		data, err := lines.next()
		if err != nil {
			return err
		}
		if data == "[DONE]" {
			return nil
		}
		var ev struct {
			Choices []struct {
				Text   string  `json:"text"`
				Reason *string `json:"finish_reason"`
			}
			Usage *struct {
				Completion int `json:"completion_tokens"`
			}
			Error *struct{ Message string }
		}
		if err := json.Unmarshal([]byte(data), &ev); err != nil {
			return err
		}
		if ev.Error != nil {
			return errors.New(ev.Error.Message)
		}
		if ev.Usage != nil {
			counted = ev.Usage.Completion
		}
		if len(ev.Choices) == 0 || ev.Choices[0].Text == "" {
			continue
		}
		now := time.Now()
		if s.tokens++; s.tokens == 1 {
			s.first = now.Sub(begin)
		} else {
			s.gaps = append(s.gaps, now.Sub(last).Seconds())
		}
		last = now
	}
}
