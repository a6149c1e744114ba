package eval

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"antiphase/internal/fault"
)

// Endpoint is a model behind an OpenAI-compatible HTTP API. Text comes from /completions (or /chat/completions);
// likelihoods need /completions with echo and logprobs, which not every server supports; the error then says so.
type Endpoint struct {
	URL      string // including the version: "http://localhost:8000/v1"
	Model    string
	Key      string        // sent as bearer token; empty for none
	Chat     bool          // prompts are sent as user messages; there are no likelihoods
	Parallel int           // concurrent requests; default 8
	Timeout  time.Duration // of one attempt; default ten minutes, for long answers of slow servers
	Client   *http.Client
}

// completionRequest is the part of the API that is used.
type completionRequest struct {
	Model       string    `json:"model"`
	Prompt      string    `json:"prompt,omitempty"`
	Messages    []message `json:"messages,omitempty"`
	MaxTokens   int       `json:"max_tokens"`
	Temperature float64   `json:"temperature"`
	Stop        []string  `json:"stop,omitempty"`
	Echo        bool      `json:"echo,omitempty"`
	Logprobs    int       `json:"logprobs,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type completionReply struct {
	Choices []struct {
		Text     *string  `json:"text"`
		Message  *message `json:"message"`
		Logprobs *struct {
			Tokens  []string             `json:"tokens"`
			Logprob []*float64           `json:"token_logprobs"`
			Top     []map[string]float64 `json:"top_logprobs"`
			Offset  []int                `json:"text_offset"`
		} `json:"logprobs"`
	} `json:"choices"`
}

var (
	_ LM        = (*Endpoint)(nil)
	_ Tokenwise = (*Endpoint)(nil)
)

// GenerateUntil implements LM. Only the first four stop texts are sent, which is the API's limit; the output is cut at
// all of them.
func (e *Endpoint) GenerateUntil(ctx context.Context, reqs []Generation) ([]string, error) {
	out := make([]string, len(reqs))
	err := e.each(ctx, len(reqs), func(ctx context.Context, i int) error {
		r := reqs[i]
		body := completionRequest{Model: e.Model, Prompt: r.Prompt, MaxTokens: r.MaxTokens,
			Stop: r.Until[:min(len(r.Until), 4)]}
		path := "/completions"
		if e.Chat {
			path, body.Prompt, body.Messages = "/chat/completions", "", []message{{"user", r.Prompt}}
		}
		reply, err := e.post(ctx, path, body)
		if err != nil {
			return err
		}
		// An answer of another form would count as empty, and therefore as wrong.
		switch c := reply.Choices[0]; {
		case e.Chat && c.Message != nil:
			out[i] = c.Message.Content
		case e.Chat:
			return fmt.Errorf(
				"eval: endpoint %s: its answer has no message; does it answer chats? else leave #chat out", e.URL)
		case c.Text == nil:
			return fmt.Errorf("eval: endpoint %s: its answer has no text", e.URL)
		default:
			out[i] = *c.Text
		}
		for _, stop := range r.Until {
			out[i], _, _ = strings.Cut(out[i], stop)
		}
		return nil
	})
	return out, err
}

// Loglikelihood implements LM: context and continuation are echoed with their log-probabilities, and those after the
// context count.
func (e *Endpoint) Loglikelihood(ctx context.Context, reqs []Continuation) ([]Score, error) {
	out := make([]Score, len(reqs))
	err := e.each(ctx, len(reqs), func(ctx context.Context, i int) error {
		context, text := strings.TrimRight(reqs[i].Context, " \t\n"), reqs[i].Context+reqs[i].Text
		tokens, err := e.echo(ctx, text)
		from := utf8.RuneCountInString(context)
		out[i].Greedy = true
		for _, t := range tokens {
			if t.at >= from {
				out[i].LogProb += t.logprob
				out[i].Tokens++
				out[i].Greedy = out[i].Greedy && t.best
			}
		}
		if err == nil && out[i].Tokens == 0 {
			err = fmt.Errorf("eval: endpoint %s: no token of %q after %q", e.URL, text[len(context):], context)
		}
		return err
	})
	return out, err
}

// LoglikelihoodRolling implements LM. If a text is longer than the server's context, the server rejects it.
func (e *Endpoint) LoglikelihoodRolling(ctx context.Context, texts []string) ([]Score, error) {
	losses, err := e.Losses(ctx, texts)
	return rolled(losses), err
}

// Losses implements Tokenwise. Ids are hashes of the tokens' text, which is all the API returns.
func (e *Endpoint) Losses(ctx context.Context, texts []string) ([][]TokenLoss, error) {
	out := make([][]TokenLoss, len(texts))
	err := e.each(ctx, len(texts), func(ctx context.Context, i int) error {
		tokens, err := e.echo(ctx, texts[i])
		for k, t := range tokens {
			h := fnv.New32a()
			h.Write([]byte(t.text))
			out[i] = append(out[i], TokenLoss{ID: int32(h.Sum32() >> 1), Position: k + 1, Loss: -t.logprob})
		}
		return err
	})
	return out, err
}

// errNoEcho is returned for an endpoint without likelihoods.
var errNoEcho = fmt.Errorf(
	"%w: the endpoint gives no log-probabilities of the prompt (completions with echo and logprobs), "+
		"so only tasks that generate text can be run on it", ErrCannot)

// echoed is a token of a prompt: its text, its offset in characters, and whether it was the most likely one.
type echoed struct {
	text    string
	at      int
	logprob float64
	best    bool
}

// echo returns the tokens of a text that have a log-probability: all but the first.
func (e *Endpoint) echo(ctx context.Context, text string) ([]echoed, error) {
	if e.Chat {
		return nil, errNoEcho
	}
	reply, err := e.post(ctx, "/completions", completionRequest{Model: e.Model, Prompt: text, Echo: true, Logprobs: 1})
	if err != nil {
		return nil, e.whyNoEcho(ctx, err)
	}
	lp := reply.Choices[0].Logprobs
	if lp == nil || len(lp.Logprob) == 0 || len(lp.Logprob) != len(lp.Offset) || len(lp.Tokens) != len(lp.Offset) ||
		reply.Choices[0].Text == nil || !strings.HasPrefix(*reply.Choices[0].Text, text) {
		return nil, errNoEcho
	}
	var out []echoed
	end := utf8.RuneCountInString(text)
	for i, p := range lp.Logprob {
		if lp.Offset[i] >= end || p == nil { // a server may insist on its own token
			continue
		}
		t := echoed{lp.Tokens[i], lp.Offset[i], *p, true}
		if i < len(lp.Top) {
			for _, top := range lp.Top[i] {
				t.best = t.best && *p >= top-1e-9
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// whyNoEcho distinguishes a server that rejects every echo from one that rejects this request: a short echo is rejected
// too, and the same prompt without echo is answered.
func (e *Endpoint) whyNoEcho(ctx context.Context, err error) error {
	var no refusal
	if !errors.As(err, &no) {
		return err
	}
	short := completionRequest{Model: e.Model, Prompt: "Water is wet.", MaxTokens: 1}
	if _, plainly := e.post(ctx, "/completions", short); plainly != nil {
		return err
	}
	short.Echo, short.Logprobs, short.MaxTokens = true, 1, 0
	if _, echoing := e.post(ctx, "/completions", short); !errors.As(echoing, &no) {
		return err
	}
	return fmt.Errorf("%w; it says: %w", errNoEcho, no)
}

// each runs f for 0 to n−1, several at a time; the first error ends all.
func (e *Endpoint) each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	parallel := e.Parallel
	if parallel <= 0 {
		parallel = 8
	}
	next := make(chan int)
	var all sync.WaitGroup
	for range min(parallel, n) {
		all.Go(func() {
			defer fault.Guard()()
			for i := range next {
				if err := f(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	all.Wait()
	return context.Cause(ctx)
}
