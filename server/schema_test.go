package server

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"antiphase/grammar"
	"antiphase/tokenizer"
)

// TestStructuredOutput: a random model, which would never write JSON, does so under every temperature, streamed or not,
// and only a full length is an excuse.
func TestStructuredOutput(t *testing.T) {
	r := newRig(t, setup{context: 512})
	schema := `{"type":"object","properties":{"name":{"type":"string","maxLength":8},"age":{"type":"integer"},"tags":{"type":"array","items":{"enum":["a","b"]},"maxItems":3}},"required":["name","age"],"additionalProperties":false}`
	format := fieldsOf{"type": "json_schema",
		"json_schema": fieldsOf{"name": "person", "strict": true, "schema": json.RawMessage(schema)}}
	whole := 0
	for i := range 40 {
		body := fieldsOf{"messages": []fieldsOf{{"role": "user", "content": "who?"}}, "response_format": format,
			"temperature": float64(i%4) * 0.7, "seed": i, "max_tokens": 200}
		var reply chatReply
		r.post("/v1/chat/completions", body, &reply)
		c := reply.Choices[0]
		if *c.Reason != "stop" {
			continue
		}
		whole++
		var v struct {
			Name *string
			Age  *int64
			Tags []string
		}
		if err := json.Unmarshal([]byte(*c.Message.Content), &v); err != nil || v.Name == nil || v.Age == nil ||
			len([]rune(*v.Name)) > 8 || len(v.Tags) > 3 {
			t.Errorf("%s: %v", *c.Message.Content, err)
		}
	}
	if whole < 35 {
		t.Errorf("%d of 40 came to an end", whole)
	}
	var reply completionReply
	r.post("/v1/completions", fieldsOf{"prompt": "x", "response_format": fieldsOf{"type": "json_object"},
		"max_tokens": 400, "temperature": 1, "seed": 3, "logit_bias": fieldsOf{"125": 20, "34": 8}}, &reply)
	if c := reply.Choices[0]; *c.Reason != "stop" || !json.Valid([]byte(c.Text)) || c.Text[0] != '{' {
		t.Errorf("%+v", c)
	}
	r.quiet()
}

// TestGrammarCacheIsBounded: compiled schemas stay in memory only, and not for ever.
func TestGrammarCacheIsBounded(t *testing.T) {
	r := newRig(t, setup{})
	for i := range maxGrammars + 20 {
		var reply completionReply
		r.post("/v1/completions", fieldsOf{"prompt": "x", "max_tokens": 1,
			"response_format": fieldsOf{"type": "json_schema",
				"json_schema": fieldsOf{"schema": fieldsOf{"const": fmt.Sprint(i)}}}}, &reply)
	}
	if n := len(r.model.grammars.list); n != maxGrammars {
		t.Errorf("%d schemas are kept, want %d", n, maxGrammars)
	}
}

// TestTools: a template that knows tools is given them, calls are parsed back; one that does not refuses them.
func TestTools(t *testing.T) {
	tool := fieldsOf{"type": "function",
		"function": fieldsOf{"name": "weather", "parameters": fieldsOf{"type": "object"}}}
	body := fieldsOf{"messages": []fieldsOf{{"role": "user", "content": "x"}}, "tools": []any{tool}, "max_tokens": 3}
	with := newRig(t, setup{})
	var plain, tooled chatReply
	with.post("/v1/chat/completions", body, &tooled)
	delete(body, "tools")
	with.post("/v1/chat/completions", body, &plain)
	if tooled.Usage.Prompt <= plain.Usage.Prompt+20 {
		t.Errorf("%d prompt tokens with tools, %d without: the template was not given them", tooled.Usage.Prompt,
			plain.Usage.Prompt)
	}
	without := newRig(t, setup{template: "{{ messages[0].content }}"})
	body["tools"] = []any{tool}
	without.refused("/v1/chat/completions", body, 400, "tools", "")
	body["tool_choice"] = "none"
	without.post("/v1/chat/completions", body, &plain)

	text, calls := parseToolCalls("let me see <tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": " +
		"\"Rome\"}}\n</tool_call> <tool_call>nonsense</tool_call>")
	if len(calls) != 1 || calls[0].Function.Name != "weather" || calls[0].Function.Arguments != `{"city":"Rome"}` ||
		text != "let me see  <tool_call>nonsense</tool_call>" {
		t.Errorf("%q %+v", text, calls)
	}
}

// TestEmbeddings: vectors of length one, the same alone and in a list, in both encodings.
func TestEmbeddings(t *testing.T) {
	r := newRig(t, setup{})
	var list, one struct {
		Data []struct {
			Index     int
			Embedding []float32
		}
		Kind  string
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		}
	}
	r.post("/v1/embeddings", fieldsOf{"input": []string{"hello", "a longer text"}}, &list)
	r.post("/v1/embeddings", fieldsOf{"input": "a longer text"}, &one)
	if len(list.Data) != 2 || list.Kind == "" || list.Usage.Prompt != 18 ||
		fmt.Sprint(list.Data[1].Embedding) != fmt.Sprint(one.Data[0].Embedding) {
		t.Errorf("%+v %+v", list, one)
	}
	sum := 0.0
	for _, x := range one.Data[0].Embedding {
		sum += float64(x) * float64(x)
	}
	if sum < 0.9999 || sum > 1.0001 {
		t.Errorf("squared length %g", sum)
	}
	r.refused("/v1/embeddings", fieldsOf{"input": string(make([]byte, 200))}, 400, "prompt", "context_length_exceeded")
	r.refused("/v1/embeddings", fieldsOf{"input": []string{"a", string(make([]byte, 200)), "b"}}, 400, "prompt",
		"context_length_exceeded")
	full := make([]int32, r.model.Context) // each fits, all together need not
	r.post("/v1/embeddings", fieldsOf{"input": [][]int32{full, full, full}}, &list)
	r.refused("/v1/embeddings", fieldsOf{"input": append(full, 1)}, 400, "prompt", "context_length_exceeded")
	for _, p := range r.net.Params.List {
		r.net.Device().Zero(p.W)
	}
	r.post("/v1/embeddings", fieldsOf{"input": "x"}, &one) // of no length
	for i, x := range one.Data[0].Embedding {
		if x != 0 {
			t.Errorf("entry %d of a network of zeros is %g", i, x)
		}
	}
}

// Within a text that a schema asks for no special token may come: it is not its spelling.
func TestSpecialTokensAreNoText(t *testing.T) {
	m := newBare(t, setup{}).model
	g, err := grammar.Compile([]byte(`{"type":"string"}`), grammar.Limits{Depth: 4, Time: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	in := g.NewMatcher(m.vocabulary())
	in.Accept('"')
	logits := make([]float32, m.Tokenizer.Vocab())
	in.Mask(logits)
	special := 0
	for id, l := range logits {
		if m.Tokenizer.Special(int32(id)) {
			special++
			if !math.IsInf(float64(l), -1) {
				t.Errorf("%s may come in a text", m.Tokenizer.Token(int32(id)))
			}
		}
	}
	if special == 0 || math.IsInf(float64(logits['<']), -1) {
		t.Errorf("%d special tokens, and the bracket has %g", special, logits['<'])
	}
}

// A tokenizer that cannot write every byte is said so, with the byte, before anything is generated; and a schema that
// is spelled another way is compiled once.
func TestGrammarsOfTokenizers(t *testing.T) {
	tok, err := tokenizer.Parse([]byte(`{"model":{"type":"BPE","vocab":{" ":0,"!":1,"#":2},"merges":[]}}`))
	if err != nil {
		t.Fatal(err)
	}
	m := &Model{Tokenizer: tok}
	if _, _, err := m.grammars.get(m, []byte(`{}`), grammar.Limits{}); err == nil ||
		err.Error() != "the model's tokenizer has no token for the byte 0x22, so that JSON cannot always be finished" {
		t.Error(err)
	}
	m = &Model{Tokenizer: tokenizer.Bytes()}
	first, v, err := m.grammars.get(m, []byte(`{"type": "null"}`), grammar.Limits{})
	if err != nil || v == nil {
		t.Fatal(err)
	}
	again, w, err := m.grammars.get(m, []byte("\n{\"type\" :\"null\"}"), grammar.Limits{})
	if err != nil || again != first || w != v || len(m.grammars.list) != 1 {
		t.Errorf("compiled again: %v, %d grammars, %v", again != first, len(m.grammars.list), err)
	}
	if _, _, err := m.grammars.get(m, []byte(`{`), grammar.Limits{}); err == nil ||
		err.Error() != "the schema is not JSON" {
		t.Error(err)
	}
}
