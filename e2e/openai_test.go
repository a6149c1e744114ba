// Package e2e drives a running server with OpenAI's own client, which nobody here wrote.
//
// TestMain builds the binary, trains a model of a second and serves it; ANTIPHASE_URL names a server that runs already.
package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

const key = "sk-conformance"

func client(opt ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{option.WithBaseURL(base + "/v1/"), option.WithAPIKey(key),
		option.WithMaxRetries(0)}, opt...)...)
}

func ask(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "nano",
		Messages:            []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
		MaxCompletionTokens: openai.Int(12), Seed: openai.Int(5)}
}

func TestModels(t *testing.T) {
	c := client()
	page, err := c.Models.List(t.Context())
	if err != nil || len(page.Data) != 1 || page.Data[0].ID != "nano" || page.Data[0].Created == 0 {
		t.Fatalf("%+v %v", page, err)
	}
	m, err := c.Models.Get(t.Context(), "nano")
	if err != nil || m.ID != "nano" {
		t.Errorf("%+v %v", m, err)
	}
}

func TestChat(t *testing.T) {
	c := client()
	p := ask("The cat")
	p.Logprobs, p.TopLogprobs = openai.Bool(true), openai.Int(3)
	r, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	ch := r.Choices[0]
	if !strings.HasPrefix(r.ID, "chatcmpl-") || string(r.Object) != "chat.completion" ||
		ch.Message.Role != "assistant" || ch.FinishReason == "" || r.SystemFingerprint == "" {
		t.Errorf("%+v", r)
	}
	if u := r.Usage; u.CompletionTokens == 0 || u.PromptTokens == 0 ||
		u.TotalTokens != u.PromptTokens+u.CompletionTokens {
		t.Errorf("%+v", u)
	}
	var raw []byte
	for _, x := range ch.Logprobs.Content {
		for _, b := range x.Bytes {
			raw = append(raw, byte(b))
		}
		if len(x.TopLogprobs) != 3 || x.TopLogprobs[0].Logprob < x.TopLogprobs[2].Logprob || x.Logprob > 0 ||
			x.Logprob > x.TopLogprobs[0].Logprob {
			t.Errorf("%+v", x)
		}
	}
	if int64(len(ch.Logprobs.Content)) != r.Usage.CompletionTokens || utf8.Valid(raw) &&
		!strings.HasPrefix(string(raw), ch.Message.Content) {
		t.Errorf("%d tokens %q for %d and %q", len(ch.Logprobs.Content), raw, r.Usage.CompletionTokens,
			ch.Message.Content)
	}
	again, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil || again.Choices[0].Message.Content != ch.Message.Content {
		t.Errorf("the same seed: %q and %q, %v", ch.Message.Content, again.Choices[0].Message.Content, err)
	}
}

func TestChatStream(t *testing.T) {
	c := client()
	p := ask("The dog")
	whole, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	s := c.Chat.Completions.NewStreaming(t.Context(), p)
	var acc openai.ChatCompletionAccumulator
	chunks := 0
	for s.Next() {
		if !acc.AddChunk(s.Current()) {
			t.Errorf("the accumulator refuses %+v", s.Current())
		}
		chunks++
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if len(acc.Choices) != 1 || acc.Choices[0].Message.Content != whole.Choices[0].Message.Content ||
		acc.Choices[0].FinishReason != whole.Choices[0].FinishReason {
		t.Errorf("%+v streamed, %+v whole", acc.Choices, whole.Choices)
	}
	if acc.Usage.CompletionTokens != whole.Usage.CompletionTokens || chunks < 3 {
		t.Errorf("%+v in %d chunks, want %+v", acc.Usage, chunks, whole.Usage)
	}
}

func TestChoicesAndStop(t *testing.T) {
	c := client()
	p := ask("Once")
	p.N = openai.Int(4)
	p.Temperature = openai.Float(1.5)
	r, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil || len(r.Choices) != 4 {
		t.Fatalf("%+v %v", r, err)
	}
	texts := map[string]bool{}
	for i, ch := range r.Choices {
		texts[ch.Message.Content] = true
		if ch.Index != int64(i) {
			t.Errorf("choice %d has index %d", i, ch.Index)
		}
	}
	if len(texts) < 2 {
		t.Errorf("four samples at temperature 1.5 are all alike: %v", texts)
	}
	p = ask("Once")
	p.Temperature = openai.Float(0)
	whole, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	text := whole.Choices[0].Message.Content
	if len(text) < 3 {
		t.Fatalf("12 greedy tokens say %q: nothing to stop at", text)
	}
	stop := text[2:3]
	p.Stop = openai.ChatCompletionNewParamsStopUnion{OfStringArray: []string{stop}}
	cut, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil || cut.Choices[0].Message.Content != text[:strings.Index(text, stop)] ||
		cut.Choices[0].FinishReason != "stop" {
		t.Errorf("stop at %q of %q: %q %s %v", stop, text, cut.Choices[0].Message.Content,
			cut.Choices[0].FinishReason, err)
	}
}

func TestCompletions(t *testing.T) {
	c := client()
	for _, prompt := range []openai.CompletionNewParamsPromptUnion{
		{OfString: openai.String("The cat")}, {OfArrayOfStrings: []string{"The cat", "A dog"}},
		{OfArrayOfTokens: []int64{84, 104, 101}}, {OfArrayOfTokenArrays: [][]int64{{84, 104}, {65, 32, 100}}},
	} {
		r, err := c.Completions.New(t.Context(),
			openai.CompletionNewParams{Model: "nano", Prompt: prompt, MaxTokens: openai.Int(4), Logprobs: openai.Int(2),
				Echo: openai.Bool(true), Temperature: openai.Float(0)})
		if err != nil {
			t.Fatal(err)
		}
		for _, ch := range r.Choices {
			lp := ch.Logprobs
			n := len(lp.Tokens)
			if n < 3 || len(lp.TokenLogprobs) != n || len(lp.TopLogprobs) != n || len(lp.TextOffset) != n ||
				ch.Text == "" {
				t.Errorf("%+v", ch)
			}
		}
	}
	s := c.Completions.NewStreaming(t.Context(),
		openai.CompletionNewParams{Model: "nano",
			Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("The")}, MaxTokens: openai.Int(6)})
	n := 0
	for s.Next() {
		n++
	}
	if s.Err() != nil || n < 2 {
		t.Errorf("%d events, %v", n, s.Err())
	}
}

func TestStructuredOutput(t *testing.T) {
	c := client()
	p := ask("Give me a person")
	p.MaxCompletionTokens = openai.Int(40)
	p.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{
		OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: "person", Strict: openai.Bool(true),
			Schema: map[string]any{"type": "object",
				"properties": map[string]any{"ok": map[string]any{"type": "boolean"},
					"n": map[string]any{"enum": []int{1, 2}}}, "required": []string{"ok", "n"},
				"additionalProperties": false}}}}
	r, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		OK *bool
		N  *int
	}
	if err := json.Unmarshal([]byte(r.Choices[0].Message.Content), &v); err != nil || v.OK == nil || v.N == nil {
		t.Errorf("%q: %v", r.Choices[0].Message.Content, err)
	}
}

func TestEmbeddings(t *testing.T) {
	c := client()
	r, err := c.Embeddings.New(t.Context(),
		openai.EmbeddingNewParams{Model: "nano",
			Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "b"}}})
	if err != nil || len(r.Data) != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	sum := 0.0
	for _, x := range r.Data[0].Embedding {
		sum += x * x
	}
	if math.Abs(sum-1) > 1e-3 {
		t.Errorf("length %g", sum)
	}
}

func TestErrors(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, c := range []struct {
		name   string
		opt    []option.RequestOption
		change func(*openai.ChatCompletionNewParams)
		status int
		code   string
		param  string
	}{
		{"key", []option.RequestOption{option.WithAPIKey("wrong-wrong")}, func(*openai.ChatCompletionNewParams) {}, 401,
			"invalid_api_key", ""},
		{"model", nil, func(p *openai.ChatCompletionNewParams) { p.Model = "other" }, 404, "model_not_found", "model"},
		{"temperature", nil, func(p *openai.ChatCompletionNewParams) { p.Temperature = openai.Float(-1) }, 400, "",
			"temperature"},
		{"length", nil, func(p *openai.ChatCompletionNewParams) { p.Messages[0] = openai.UserMessage(long) }, 400,
			"context_length_exceeded", "prompt"},
		{"n", nil, func(p *openai.ChatCompletionNewParams) { p.N = openai.Int(1000000) }, 400, "", "n"},
	} {
		p := ask("x")
		c.change(&p)
		cl := client(c.opt...)
		_, err := cl.Chat.Completions.New(t.Context(), p)
		var e *openai.Error
		if !errors.As(err, &e) || e.StatusCode != c.status || e.Code != c.code || e.Param != c.param ||
			e.Message == "" {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestCancel: the client leaves a stream after two chunks; the server stops computing.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := client()
	p := ask("The cat")
	p.MaxCompletionTokens = openai.Int(50)
	s := c.Chat.Completions.NewStreaming(ctx, p)
	for range 2 {
		s.Next()
	}
	cancel()
	s.Close()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		q, err := http.NewRequest("GET", base+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+key)
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err == nil && strings.Contains(string(b), `antiphase_num_requests_running{model_name="nano"} 0`) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still running: %v", err)
		}
	}
}
