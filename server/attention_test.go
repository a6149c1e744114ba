package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"antiphase/infer"
	"antiphase/lab"
)

// attended is an answer of /v1/attention.
type attended struct {
	Object, Model string
	lab.Reply
}

// TestAttention: the answer is what package lab finds, and its losses are those that echo gives.
func TestAttention(t *testing.T) {
	r := newRig(t, setup{})
	const text = "Oslo is 48. Lima is 33. Oslo is"
	var a attended
	r.post("/v1/attention", fieldsOf{"prompt": text}, &a)
	if a.Object != "attention" || a.Model != "tiny" || a.Arch != "diff" || a.Layers != 2 || a.Heads != 4 ||
		a.Maps != 2 ||
		a.Tile != 1 ||
		len(a.Shown) != 8 ||
		len(a.Next) != 1 ||
		len(a.Next[0].Top) != 10 {
		t.Fatalf("%+v", a)
	}
	var scored struct {
		Choices []struct {
			Logprobs struct {
				Tokens  []string   `json:"tokens"`
				Logprob []*float64 `json:"token_logprobs"`
			}
		}
	}
	r.post("/v1/completions", fieldsOf{"prompt": text, "echo": true, "logprobs": 0, "max_tokens": 0}, &scored)
	want := scored.Choices[0].Logprobs
	if len(want.Tokens) != len(a.Tokens) {
		t.Fatalf("%d tokens, echo has %d", len(a.Tokens), len(want.Tokens))
	}
	for i, tok := range a.Tokens {
		if tok.Text != want.Tokens[i] || (tok.Logprob == nil) != (i == 0) ||
			i > 0 && !(math.Abs(*tok.Logprob-*want.Logprob[i]) <= 1e-5) {
			t.Errorf("token %d: %+v, echo says %q %v", i, tok, want.Tokens[i], want.Logprob[i])
		}
	}
	n := len(a.Tokens)
	for _, h := range a.Shown {
		for name, f := range h.Maps {
			if len(f) != n*(n+1)/2 {
				t.Fatalf("map %s has %d entries", name, len(f))
			}
		}
	}
	var chat attended
	r.post(
		"/v1/attention",
		fieldsOf{
			"messages": []any{fieldsOf{"role": "user", "content": "hi"}},
			"layers":   []int{1},
			"heads":    []int{0},
			"maps":     []string{"a2"},
		},
		&chat,
	)
	if len(chat.Shown) != 1 || chat.Shown[0].Maps["a2"] == nil || chat.Shown[0].Maps["a1"] != nil ||
		!strings.HasPrefix(chat.Tokens[0].Text+chat.Tokens[1].Text, "<|") && len(chat.Tokens) < 10 {
		t.Errorf("%+v", chat)
	}
}

// TestInterventionsEndWithTheirRequest: they change that answer, and no bit of any other.
func TestInterventionsEndWithTheirRequest(t *testing.T) {
	r := newRig(t, setup{})
	ask := func(more fieldsOf) (a attended) {
		more["prompt"] = "The magic code is"
		r.post("/v1/attention", more, &a)
		return a
	}
	text := func() string {
		_, _, b := r.do(
			"POST",
			"/v1/completions",
			fieldsOf{"prompt": "The magic", "max_tokens": 20, "temperature": 0, "logprobs": 3},
		)
		_, rest, _ := strings.Cut(string(b), `"choices"`)
		return rest
	}
	before, plain := text(), ask(fieldsOf{})
	for _, list := range []any{
		[]any{fieldsOf{"lambda": 0}}, []any{fieldsOf{"lambda": 1.5, "layers": []int{0}}},
		[]any{fieldsOf{"second": "shuffled", "seed": 7}}, []any{fieldsOf{"second": "averaged"}},
		[]any{fieldsOf{"knockout": true, "layers": []int{1}, "heads": []int{2}}},
	} {
		if a := ask(fieldsOf{"interventions": list}); a.Loss == plain.Loss {
			t.Errorf("%v changed nothing", list)
		}
		if got := text(); got != before {
			t.Errorf("after %v a completion is %s, was %s", list, got, before)
		}
	}
	for _, list := range []any{[]any{}, []any{fieldsOf{"lambda": 1}}, nil} {
		got, want := fmt.Sprint(ask(fieldsOf{"interventions": list})), fmt.Sprint(plain)
		if a, b := ask(fieldsOf{"interventions": list}), plain; a.Loss != b.Loss ||
			*a.Next[0].Top[0].Logprob != *b.Next[0].Top[0].Logprob ||
			len(got) != len(want) {
			t.Errorf("%v is not the plain output", list)
		}
	}
}

// TestAttentionLimits: at a limit and one beyond it, with both numbers in the error.
func TestAttentionLimits(t *testing.T) {
	// 8 heads of 5 tokens: λ of 40 tokens, 8 maps of 15 entries, 2 numbers after the last token.
	const cells, entries = 40 + 8*15 + 2, 8 * 25
	body := fieldsOf{"prompt": []int{256, 1, 2, 3, 4}, "maps": []string{"a1"}, "topk": 1}
	for _, c := range []struct {
		limits Limits
		want   int
	}{
		{Limits{Cells: cells, Entries: entries, Tops: 1}, http.StatusOK},
		{Limits{Cells: cells - 1, Entries: entries}, http.StatusBadRequest},
		{Limits{Cells: cells, Entries: entries - 1}, http.StatusBadRequest},
	} {
		r := newRig(t, setup{Config: Config{Limits: c.limits}})
		status, _, b := r.do("POST", "/v1/attention", body)
		if status != c.want {
			t.Errorf("%+v: %d %s", c.limits, status, b)
		}
		var e struct {
			Error struct {
				Code         string
				Cells, Limit int
			}
		}
		if status != http.StatusOK &&
			(json.Unmarshal(b, &e) != nil || e.Error.Code != "too_many_cells" || e.Error.Cells != e.Error.Limit+1) {
			t.Errorf("%s", b)
		}
	}
	r := newRig(t, setup{Config: Config{Limits: Limits{Tops: 3}}})
	if status, _, b := r.do("POST", "/v1/attention",
		fieldsOf{"prompt": "x", "topk": 4}); status != http.StatusBadRequest {
		t.Errorf("topk beyond its limit: %d %s", status, b)
	}
	// A prompt of the context's length passes, one token more is refused with both numbers; a huge one is refused
	// before it is looked at.
	for n, want := range map[int]int{128: http.StatusOK, 129: http.StatusBadRequest, 2_000_000: http.StatusBadRequest} {
		status, _, b := r.do(
			"POST",
			"/v1/attention",
			fieldsOf{"prompt": strings.Repeat("x", n), "layers": []int{0}, "heads": []int{0}},
		)
		if status != want || want != http.StatusOK && !contains(b, `"n_ctx":128`) {
			t.Errorf("%d tokens: %d %.300s", n, status, b)
		}
	}
}

// TestAttentionFields: every field that cannot be is named.
func TestAttentionFields(t *testing.T) {
	r := newRig(t, setup{})
	for body, param := range map[string]string{
		`{}`: "prompt", `{"prompt":[]}`: "prompt", `{"prompt":["a","b"]}`: "prompt", `{"prompt":5}`: "prompt",
		`{"prompt":[[999]]}`:          "prompt",
		`{"prompt":"x","layers":[2]}`: "layers", `{"prompt":"x","layers":[-1]}`: "layers",
		`{"prompt":"x","layers":[0,0]}`: "layers", `{"prompt":"x","layers":[1e300]}`: "layers",
		`{"prompt":"x","layers":"all"}`: "layers", `{"prompt":"x","heads":[4]}`: "heads",
		`{"prompt":"x","heads":[9223372036854775808]}`: "heads",
		`{"prompt":"x","maps":["vanilla"]}`:            "maps", `{"prompt":"x","maps":"a1"}`: "maps",
		`{"prompt":"x","maps":["a1","a1"]}`: "maps",

		`{"prompt":"x","size":0}`: "size", `{"prompt":"x","size":-5}`: "size", `{"prompt":"x","size":1e18}`: "size",
		`{"prompt":"x","size":2.5}`: "size",
		`{"prompt":"x","rows":[2]}`: "rows", `{"prompt":"x","next":[7]}`: "next", `{"prompt":"x","topk":0}`: "topk",
		`{"prompt":"x","topk":1000000}`:                      "topk",
		`{"prompt":"x","interventions":[{"lamda":1}]}`:       "interventions",
		`{"prompt":"x","interventions":{"lambda":1}}`:        "interventions",
		`{"prompt":"x","interventions":[{"lambda":1e300}]}`:  "interventions",
		`{"prompt":"x","interventions":[{"second":"gone"}]}`: "interventions",
		`{"prompt":"x","interventions":[{"layers":[5]}]}`:    "interventions",
		`{"prompt":"x","interventions":[{"heads":[-1]}]}`:    "interventions",
		`{"prompt":"x","interventions":[{"seed":-1}]}`:       "interventions", `{"prompt":"x","sise":5}`: "sise",
	} {
		status, _, b := r.do("POST", "/v1/attention", body)
		var e struct {
			Error struct{ Param, Message string }
		}
		if status != http.StatusBadRequest || json.Unmarshal(b, &e) != nil || e.Error.Param != param {
			t.Errorf("%s: %d %s, want param %s", body, status, b, param)
		}
	}
	many := `{"prompt":"x","interventions":[` + strings.Repeat(`{},`, 5000) + `{}]}`
	if status, _, b := r.do("POST", "/v1/attention", many); status != http.StatusBadRequest {
		t.Errorf("5001 interventions: %d %.200s", status, b)
	}
	if status, _, b := r.do("POST", "/v1/attention",
		fieldsOf{"prompt": "x", "model": "other"}); status != http.StatusNotFound {
		t.Errorf("another model: %d %s", status, b)
	}
}

// TestAttentionIsDocumented: the route is in openapi.json, and models say what the page needs to know.
func TestAttentionIsDocumented(t *testing.T) {
	r := newRig(t, setup{})
	_, _, b := r.do("GET", "/openapi.json", nil)
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct {
					Schema struct{ Properties map[string]any }
				}
			}
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	props := doc.Paths["/v1/attention"]["post"].RequestBody.Content["application/json"].Schema.Properties
	for _, name := range []string{"model", "prompt", "messages", "layers", "heads", "maps", "size", "rows", "next",
		"topk", "interventions"} {
		if props[name] == nil {
			t.Errorf("openapi.json does not describe %s of /v1/attention", name)
		}
	}
	var list struct {
		Data []struct{ Meta map[string]any }
	}
	_, _, b = r.do("GET", "/v1/models", nil)
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"n_layer": 2, "n_head": 4, "n_maps": 2, "attention_cells": 1 << 20} {
		if list.Data[0].Meta[name] != want {
			t.Errorf("meta.%s is %v, want %v", name, list.Data[0].Meta[name], want)
		}
	}
}

// TestAttentionBesideAStream: a query about every map of a long prompt is answered in pieces, and a stream beside it
// continues between them: the steps computed meanwhile are at least as many as the pieces. Neither changes a bit of the
// other.
func TestAttentionBesideAStream(t *testing.T) {
	r := newRig(t, setup{big: true, Options: infer.Options{Slots: 2}})
	prompt := randomIDs(rand.New(rand.NewPCG(5, 6)), 300)
	look := fieldsOf{"prompt": prompt, "size": 50, "interventions": []fieldsOf{{"lambda": 1.5}}}
	stream := fieldsOf{"prompt": "neighbour", "max_tokens": 150, "seed": 4, "logprobs": 1, "ignore_eos": true}
	want := r.ask(stream)
	_, _, alone := r.do("POST", "/v1/attention", look)
	var got answer
	var wg sync.WaitGroup
	first := r.model.Engine.Stats().Steps
	wg.Go(func() { got = r.ask(stream) })
	until(t, "the stream's first step", func() bool { return r.model.Engine.Stats().Steps != first })
	before := r.model.Engine.Stats()
	status, _, b := r.do("POST", "/v1/attention", look)
	after := r.model.Engine.Stats()
	wg.Wait()
	if status != http.StatusOK || !bytes.Equal(b, alone) {
		t.Errorf("beside a stream: %d, %d bytes; alone %d bytes", status, len(b), len(alone))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the neighbour's answer changed: %s", d)
	}
	// Four maps are read of each of 4 × 4 heads (A1, A2, and both again for the difference), and there are four layers.
	pieces := 4*4*4*300*300>>18 + 4
	if n := after.Steps - before.Steps; n < pieces { // the stream may end while the reply is being written
		t.Errorf("%d steps beside %d pieces", n, pieces)
	}
	r.quiet()
}
