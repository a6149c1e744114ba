package server

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/infer"
	"antiphase/internal/quota"
	record "antiphase/metrics"
	"antiphase/model"
	"antiphase/tokenizer"
)

// several serves a rig's network under several names, each with its own settings.
func (r *rig) several(list ...Source) *rig {
	r.t.Helper()
	srv, err := New(Config{Version: "v9", Commit: "abc", Limits: Limits{Wait: time.Hour}})
	if err != nil {
		r.t.Fatal(err)
	}
	var models []*Model
	for _, src := range list {
		src.Model, src.Tokenizer, src.Options = r.net, tokenizer.Bytes(), infer.Options{Slots: 2}
		m, err := NewModel(src)
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(m.Close)
		models = append(models, m)
	}
	if err := srv.Ready(models...); err != nil {
		r.t.Fatal(err)
	}
	out := &rig{Server: srv, t: r.t, model: models[0], net: r.net, http: httptest.NewServer(srv.Handler())}
	r.t.Cleanup(out.http.Close)
	return out
}

// twoModels serves plain, and org/greedy with a first token and defaults of its own.
func twoModels(t *testing.T) *rig {
	t.Helper()
	return newBare(t, setup{}).several(
		Source{ID: "plain", First: -1, EOS: []int32{256}, Print: "fp_1", Created: time.Unix(5, 0)},
		Source{ID: "org/greedy", First: 257, EOS: []int32{258}, Defaults: &infer.Sampling{Temperature: 0, TopK: 3},
			Print: "fp_2", Created: time.Unix(7, 0)},
	)
}

// Models are chosen by their name, the first if there is none; fields that a request leaves out are the model's own.
func TestModelsByName(t *testing.T) {
	r := twoModels(t)
	text := func(name string, seed int) (string, completionReply) {
		t.Helper()
		body := fieldsOf{"prompt": "abc", "max_tokens": 24, "seed": seed, "ignore_eos": true}
		if name != "" {
			body["model"] = name
		}
		var c completionReply
		r.post("/v1/completions", body, &c)
		return c.Choices[0].Text, c
	}
	first, c := text("", 1)
	if same, _ := text("plain", 1); same != first || c.Model != "plain" || c.Print != "fp_1" || c.Usage.Prompt != 3 ||
		c.Object != "text_completion" || !strings.HasPrefix(c.ID, "cmpl-") {
		t.Errorf("without a name: %+v", c)
	}
	if other, _ := text("plain", 2); other == first {
		t.Error("without a temperature it is not 1")
	}
	cold, c := text("org/greedy", 1)
	if again, _ := text("org/greedy", 2); again != cold || c.Model != "org/greedy" || c.Print != "fp_2" ||
		c.Usage.Prompt != 4 {
		t.Errorf("the model's own defaults and first token: %+v", c)
	}
	msg := r.refused("/v1/completions", fieldsOf{"prompt": "x", "model": "none"}, http.StatusNotFound, "model",
		"model_not_found")
	if !strings.Contains(msg, "there are: plain, org/greedy") {
		t.Errorf("%q does not list the models", msg)
	}
	if msg := r.refused("/v1/chat/completions", fieldsOf{"messages": []fieldsOf{{"role": "user", "content": "x"}}},
		http.StatusBadRequest, "messages", ""); !strings.Contains(msg, "the model plain has no chat template") {
		t.Errorf("%q", msg)
	}
}

// The list of models, the card of one, and the version.
func TestModelsAreListed(t *testing.T) {
	r := twoModels(t)
	var list struct {
		Object string
		Data   []struct {
			ID, Object string
			Created    int64
			Owner      string `json:"owned_by"`
			Len        int    `json:"max_model_len"`
			Meta       map[string]any
		}
	}
	_, _, b := r.do("GET", "/v1/models", nil)
	if err := json.Unmarshal(b, &list); err != nil || list.Object != "list" || len(list.Data) != 2 ||
		list.Data[0].ID != "plain" || list.Data[1].ID != "org/greedy" {
		t.Fatalf("%s", b)
	}
	if d := list.Data[1]; d.Object != "model" || d.Created != 7 || d.Owner != "antiphase" || d.Len != 128 {
		t.Errorf("%+v", d)
	}
	for name, want := range map[string]any{"n_vocab": 260., "n_ctx_train": 128.,
		"n_params": float64(r.net.Params.Count()), "arch": "diff", "chat": false, "n_layer": 2., "n_head": 4.,
		"n_maps": 2., "attention_cells": float64(1 << 20), "attention_entries": float64(1 << 26)} {
		if got := list.Data[0].Meta[name]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if status, _, b := r.do("GET", "/v1/models/org/greedy", nil); status != http.StatusOK ||
		!strings.Contains(string(b), `"id":"org/greedy"`) {
		t.Errorf("%d %s", status, b)
	}
	for _, path := range []string{"/v1/models/greedy", "/v1/models/"} {
		if status, _, b := r.do("GET", path, nil); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, b)
		}
	}
	if _, _, b := r.do("GET", "/version", nil); !strings.Contains(string(b), `"version":"v9"`) ||
		!strings.Contains(string(b), `"commit":"abc"`) {
		t.Errorf("%s", b)
	}
}

// What /tokenizer_info says of the first model and of one by its name.
func TestTokenizerInfoByName(t *testing.T) {
	r := twoModels(t)
	var info map[string]any
	_, _, b := r.do("GET", "/tokenizer_info?model=org/greedy", nil)
	if err := json.Unmarshal(b, &info); err != nil || info["bos_token"] != "<|pad|>" ||
		info["eos_token"] != "<|im_start|>" || info["chat_template"] != nil || info["vocab_size"] != 260. ||
		info["model"] != "org/greedy" {
		t.Errorf("%s", b)
	}
	_, _, b = r.do("GET", "/tokenizer_info", nil)
	if err := json.Unmarshal(b, &info); err != nil || info["bos_token"] != nil ||
		info["eos_token"] != "<|endoftext|>" || info["pad_token"] != "<|pad|>" || info["max_model_len"] != 128. {
		t.Errorf("%s", b)
	}
}

// The first token, with and without.
func TestFirstTokenOfModel(t *testing.T) {
	r := twoModels(t)
	for _, c := range []struct {
		body fieldsOf
		want []int32
	}{
		{fieldsOf{"prompt": "ab"}, []int32{257, 'a', 'b'}}, {fieldsOf{"prompt": ""}, []int32{257}},
		{fieldsOf{"prompt": "ab", "add_special_tokens": false}, []int32{'a', 'b'}},
		{fieldsOf{"prompt": "", "add_special_tokens": false}, []int32{}},
		{fieldsOf{"content": "ab"}, []int32{'a', 'b'}},
		{fieldsOf{"content": "ab", "add_special": true}, []int32{257, 'a', 'b'}},
		{fieldsOf{"content": "a", "add_special": true, "add_special_tokens": false}, []int32{'a'}},
	} {
		c.body["model"] = "org/greedy"
		var got struct {
			Tokens []int32
			Count  int
		}
		r.post("/tokenize", c.body, &got)
		if !slices.Equal(got.Tokens, c.want) || got.Tokens == nil || got.Count != len(c.want) {
			t.Errorf("%v: %v, want %v", c.body, got, c.want)
		}
	}
}

// What a server and a model cannot be.
func TestRefusedSetups(t *testing.T) {
	r := newBare(t, setup{})
	srv, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Ready(); err == nil || !strings.Contains(err.Error(), "no models") {
		t.Errorf("no models: %v", err)
	}
	if err := srv.Ready(r.model, r.model); err == nil ||
		!strings.Contains(err.Error(), `two models are called "tiny"`) {
		t.Errorf("a name twice: %v", err)
	}
	if _, err := New(Config{Limits: Limits{Stops: -1}}); err == nil ||
		!strings.Contains(err.Error(), "server: limit stops") {
		t.Errorf("a limit below zero: %v", err)
	}
	for want, src := range map[string]Source{
		`"a b" cannot be a model's name`: {ID: "a b", Model: r.net,
			Tokenizer: tokenizer.Bytes()},
		"without a tokenizer": {ID: "a", Model: r.net},
		"slots":               {ID: "a", Model: r.net, Tokenizer: tokenizer.Bytes(), Options: infer.Options{Slots: -1}},
	} {
		if _, err := NewModel(src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Keys do not share what is cached, nor do the salts of one key; a key may also come in the header X-Api-Key.
func TestKeysDoNotShareTheCache(t *testing.T) {
	r := newRig(t, setup{Config: Config{Keys: keys(t, "sk-first-key", "sk-second-key")}})
	body := fieldsOf{"prompt": strings.Repeat("0123456789", 6), "max_tokens": 1}
	for i, c := range []struct {
		header, key string
		want        int
	}{
		{"Authorization", "Bearer sk-first-key", 0}, {"X-Api-Key", "sk-first-key", 48},
		{"Authorization", "Bearer sk-second-key", 0}, {"X-Api-Key", "sk-second-key", 48},
	} {
		status, _, b := r.do("POST", "/v1/completions", body, c.header, c.key)
		var reply completionReply
		if err := json.Unmarshal(b, &reply); err != nil || status != http.StatusOK ||
			reply.Usage.Details.Cached != c.want {
			t.Errorf("request %d: %d %s, want %d cached tokens", i, status, b, c.want)
		}
	}
}

// An embedding is the mean of the hidden states, made to length 1: against the model's own, in both encodings.
func TestEmbeddingIsTheMean(t *testing.T) {
	r := newRig(t, setup{})
	ids := []int32{'h', 'e', 'l', 'l', 'o'}
	width := r.net.Config.Dim
	hidden := make([]float32, len(ids)*width)
	if err := r.net.Hidden(&model.Batch{B: 1, T: len(ids), IDs: ids}, func() {}, hidden); err != nil {
		t.Fatal(err)
	}
	if err := r.net.Device().Sync(); err != nil {
		t.Fatal(err)
	}
	want, length := make([]float64, width), 0.0
	for i := range want {
		for k := range ids {
			want[i] += float64(hidden[k*width+i]) / float64(len(ids))
		}
		length += want[i] * want[i]
	}
	var list struct {
		Data []struct{ Embedding []float64 }
	}
	r.post("/v1/embeddings", fieldsOf{"input": ids, "dimensions": width, "encoding_format": "float"}, &list)
	var packed struct {
		Object, Model string
		Data          []struct {
			Object, Embedding string
			Index             int
		}
		Usage map[string]int
	}
	r.post("/v1/embeddings", fieldsOf{"input": [][]int32{{'x'}, ids}, "encoding_format": "base64", "user": "u"},
		&packed)
	raw, err := base64.StdEncoding.DecodeString(packed.Data[1].Embedding)
	if err != nil || len(raw) != 4*width || packed.Data[1].Index != 1 || packed.Data[1].Object != "embedding" ||
		packed.Object != "list" || packed.Model != "tiny" || packed.Usage["prompt_tokens"] != 6 ||
		packed.Usage["total_tokens"] != 6 {
		t.Fatalf("%d bytes, %v: %+v", len(raw), err, packed)
	}
	for i := range want {
		x := want[i] / math.Sqrt(length)
		if y := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))); !(math.Abs(
			list.Data[0].Embedding[i]-x) <= 1e-5) || !(math.Abs(y-x) <= 1e-5) {
			t.Errorf("entry %d is %g and %g, want %g", i, list.Data[0].Embedding[i], y, x)
		}
	}
}

// A row of a run: every number that was measured under its name, none that was not, and the warnings by name.
func TestRunRows(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	full := record.Row{Step: 3, Total: 9, Loss: 1.5, LossEMA: 1.25, Valid: 2.5, GradNorm: 0.5, LR: 0.001, TokS: 1000,
		Time: 12, Lambda: []float64{0.25}, Warn: 1}
	bare := record.Row{Step: 4, Total: 9, Loss: 2, LossEMA: 3, Valid: nan, GradNorm: 4, LR: 5, TokS: 6, Time: 7,
		Lambda: []float64{0.5, nan}}
	if err := os.WriteFile(filepath.Join(dir, "a", metricsFile), bare.Append(full.Append(nil)), 0o644); err != nil {
		t.Fatal(err)
	}
	rows := runsRig(t, dir).tail("a", 0).Rows
	want := map[string]any{"step": 3., "total_steps": 9., "loss": 1.5, "loss_ema": 1.25,
		"valid_loss": 2.5, "grad_norm": 0.5, "lr": 0.001, "tok_s": 1000., "time": 12., "lambda": []any{0.25},
		"warn": []any{full.Warn.Names()[0]}}
	if len(rows) != 2 || fmt.Sprint(rows[0]) != fmt.Sprint(want) ||
		fmt.Sprint(rows[1]) != fmt.Sprint(map[string]any{"step": 4., "total_steps": 9., "loss": 2., "loss_ema": 3.,
			"grad_norm": 4., "lr": 5., "tok_s": 6., "time": 7.}) {
		t.Errorf("%v\nwant %v", rows, want)
	}
}

// No request for runs leaves a file open, and a closed stream has no timer.
func TestRunFilesAreClosed(t *testing.T) {
	dir := t.TempDir()
	writeRows(t, filepath.Join(dir, "a"), 1, 3)
	if err := os.WriteFile(filepath.Join(dir, "a", samplesFile),
		[]byte("{\"step\":1,\"prompt\":\"p\",\"text\":\"t\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := runsRig(t, dir)
	for _, path := range []string{"/v1/runs", "/v1/runs/a", "/v1/runs/none"} {
		quota.Files(t, path, func() {
			w := httptest.NewRecorder()
			r.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			if (w.Code == http.StatusOK) == strings.HasSuffix(path, "none") {
				t.Errorf("%s: %d", path, w.Code)
			}
		})
	}
	e := newEvents(httptest.NewRecorder(), &Limits{Ping: time.Hour})
	if err := e.raw("x"); err != nil {
		t.Fatal(err)
	}
	if e.close(); e.timer.Stop() {
		t.Error("a closed stream still waits to send a ping")
	}
}
