package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"antiphase/internal/browser"
	"antiphase/web"
)

const markup = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>"'>`

// hostile is a server all of whose texts are markup: tokens, models, errors, answers.
func hostile() http.Handler {
	say := func(v any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(v) }
	}
	type m = map[string]any
	one := "AACAPw==" // 1.0
	tok := m{"id": 1, "text": markup, "logprob": -1}
	head := m{"layer": 0, "head": 0, "lambda": 0.5, "maps": m{"a1": one, "a2": one}}
	mux := http.NewServeMux()
	mux.Handle("/", web.Handler())
	mux.Handle("GET /v1/models", say(m{"data": []m{{"id": markup, "meta": m{
		"arch": markup, "n_layer": 1, "n_head": 1, "n_maps": 2, "chat": false, "attention_cells": 1000,
		"attention_entries": 1000}}}}))
	mux.Handle("POST /tokenize", say(m{"count": 1}))
	mux.Handle("POST /v1/attention", say(m{"arch": markup, "layers": 1, "heads": 1, "maps": 2, "tile": 1, "loss": 1,
		"tokens": []m{tok}, "shown": []m{head}, "next": []m{{"token": 0, "top": []m{tok}}}}))
	mux.Handle("GET /v1/runs", say(m{"data": []m{{"id": markup}}}))
	mux.Handle("GET /v1/runs/", say(m{"cursor": 1,
		"rows": []m{{"step": 1, "total_steps": 2, "loss": 1, "loss_ema": 1}}}))
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		b, _ := json.Marshal(m{"choices": []m{{"text": markup, "logprobs": m{
			"tokens": []string{markup}, "token_logprobs": []float64{-1}, "top_logprobs": []m{{markup: -1}}}}}})
		fmt.Fprintf(w, "data: %s\n\n", b)
		b, _ = json.Marshal(m{"error": m{"message": markup}})
		fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", b)
	})
	return mux
}

// TestHostileTexts: whatever a tokenizer, a model or a server says stays text, in every view.
func TestHostileTexts(t *testing.T) {
	b := browser.Open(t)
	h := httptest.NewServer(hostile())
	t.Cleanup(h.Close)
	p := b.Page(t, looks[0])
	p.Goto(h.URL)
	p.Wait(arrived)
	p.Hover(".map.a1 .plot", 0.5, 0.5)
	p.Wait(`document.querySelector(".map.df .read").textContent.includes("onerror")`)
	p.Click("#tab-chat")
	p.Click("#chat-say")
	p.Type(markup)
	p.Key("Enter")
	p.Wait(
		`document.querySelector("#problem").textContent.includes("onerror") && document.querySelector(".answer .tok")`)
	p.Hover(".answer .tok", 0.1, 0.5)
	p.Wait(`document.querySelector("#tip").textContent.includes("onerror")`)
	p.Click("#tab-runs")
	p.Wait(`document.querySelector("#runs-list label").textContent.includes("onerror") && document.querySelector(".chart")`)
	if title := p.Text("document.title"); title != "Runs · Antiphase" {
		t.Errorf("the title is %q", title)
	}
	if n := p.Number(`document.querySelectorAll("img, main script").length`); n != 0 {
		t.Errorf("%v elements were made of text", n)
	}
	quiet(t, p)
}

// TestKeyInBrowser: a server with keys lets the page open, asks once, and works with the key.
func TestKeyInBrowser(t *testing.T) {
	b := browser.Open(t)
	inner := hostile()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" && r.URL.Path[:4] != "/ui/" && r.Header.Get("Authorization") != "Bearer sk-right" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	p := b.Page(t, looks[0])
	p.Goto(h.URL)
	p.Wait(`document.querySelector("#keybox").open`)
	p.Type("sk-wrong")
	p.Key("Enter")
	p.Wait(`document.querySelector("#keybox").open && document.querySelector("#key").value === ""`)
	p.Type("sk-right")
	p.Key("Enter")
	p.Wait(arrived)
	p.Goto(h.URL + "/?again") // the tab remembers
	p.Wait(arrived)
	for _, s := range p.Said() {
		if !strings.Contains(s, "401") { // the browser itself notes refused requests
			t.Errorf("the console says: %s", s)
		}
	}
}
