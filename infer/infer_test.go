package infer

import (
	"context"
	"encoding/json"
	"runtime/debug"
	"testing"
	"time"

	"go.uber.org/goleak"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/tokenizer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onDevices runs f on the oracle and on the processor.
func onDevices(t *testing.T, f func(t *testing.T, d device.Device)) {
	t.Run("ref", func(t *testing.T) { f(t, ref.New()) })
	t.Run("cpu", func(t *testing.T) { f(t, newCPU(t)) })
}

func newCPU(t testing.TB) device.Device {
	d := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() { d.Close() })
	return d
}

// onArchs runs f with a tiny random model of every architecture on every device.
func onArchs(t *testing.T, f func(t *testing.T, m *model.Model)) {
	onDevices(t, func(t *testing.T, d device.Device) {
		for _, a := range layer.Archs() {
			t.Run(a.Name, func(t *testing.T) { f(t, tiny(t, d, a.Name)) })
		}
	})
}

func tiny(t testing.TB, d device.Device, arch string) *model.Model {
	return build(t, d, modeltest.Tiny(arch, 50, 64))
}

func build(t testing.TB, d device.Device, c model.Config) *model.Model {
	t.Helper()
	return modeltest.New(t, d, c, layer.Memory{}, 7)
}

func engine(t testing.TB, m *model.Model, tok *tokenizer.Tokenizer, o Options) *Engine {
	t.Helper()
	e, err := New(m, tok, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// answer is all that one request emitted.
type answer struct {
	IDs      []int32
	Logprobs []float64
	Tops     [][]TokenLogprob
	Text     string
	Reason   string
}

func (a *answer) add(t testing.TB, ev Event) {
	if a.Reason != "" {
		t.Errorf("event %+v after the request was done", ev)
	}
	if ev.ID >= 0 {
		a.IDs = append(a.IDs, ev.ID)
		a.Logprobs = append(a.Logprobs, ev.Logprob)
		a.Tops = append(a.Tops, append([]TokenLogprob(nil), ev.Top...))
	}
	a.Text += ev.Text
	if ev.Done != (ev.Reason != "") {
		t.Errorf("event %+v: Done and Reason disagree", ev)
	}
	a.Reason = ev.Reason
}

// bounded ends the tests with a message and all stacks if stop is not called soon: a call that waits for a turn that
// never comes would last as long as go test's own limit.
func bounded(t testing.TB) (stop func() bool) {
	return time.AfterFunc(30*time.Second, func() {
		debug.SetTraceback("all")
		panic(t.Name() + ": an engine's call does not end")
	}).Stop
}

// generate runs requests to their end.
func generate(t testing.TB, e *Engine, reqs ...Request) []answer {
	t.Helper()
	defer bounded(t)()
	list := make([]answer, len(reqs))
	if err := e.Generate(context.Background(), reqs,
		func(i int, ev Event) bool { list[i].add(t, ev); return true }); err != nil {
		t.Fatal(err)
	}
	return list
}

// mixed is a batch of unlike requests.
func mixed() []Request {
	var list []Request
	for i := range 8 {
		r := Request{Sampling: Sampling{Seed: uint64(i), MaxTokens: 5 + 3*i, Logprobs: i % 3, Echo: i == 6}}
		for j := range 1 + 5*i {
			r.IDs = append(r.IDs, int32((7*i+3*j+j*j)%50))
		}
		switch i % 4 {
		case 1:
			r.Sampling.Temperature = 1
		case 2:
			r.Sampling.Temperature, r.Sampling.TopK, r.Sampling.RepetitionPenalty = 0.8, 10, 1.3
		case 3:
			r.Sampling.Temperature, r.Sampling.TopP, r.Sampling.MinP = 1.5, 0.9, 0.02
		}
		list = append(list, r)
	}
	return list
}

// bytesTokenizer has one token per byte, id = byte, and the end of text as 256.
func bytesTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	vocab := map[string]int{}
	spare := rune(256)
	for b := range 256 {
		r := rune(b)
		if b < '!' || b > '~' && b < 0xA1 || b == 0xAD { // the byte-level alphabet has no blanks and controls
			r, spare = spare, spare+1
		}
		vocab[string(r)] = b
	}
	level := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
	raw, err := json.Marshal(map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "normalizer": nil, "pre_tokenizer": level,
		"post_processor": nil, "decoder": level,
		"added_tokens": []any{map[string]any{"id": 256, "content": "<|endoftext|>", "single_word": false,
			"lstrip": false, "rstrip": false, "normalized": false, "special": true}},
		"model": map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// chain is a model that recites: after text[i] comes text[i+1], after the last byte the end of text. No byte may
// occur twice. Embeddings are unit vectors, blocks add nothing, and the output is a permutation.
func chain(t testing.TB, d device.Device, text string) *model.Model {
	t.Helper()
	const vocab = 257
	m := build(t, d, model.Config{Arch: "diff", Vocab: vocab, Context: 64, Layers: 1, Dim: vocab, Heads: 1,
		HeadDim: 2, FFN: 2})
	next := [vocab]int{}
	for i := range len(text) {
		next[text[i]] = 256
		if i+1 < len(text) {
			next[text[i]] = int(text[i+1])
		}
	}
	for _, p := range m.Params.List {
		x := make([]float32, p.Rows*p.Cols)
		switch p.Name {
		case "embed.weight":
			for i := range vocab {
				x[i*vocab+i] = 1
			}
		case "head.weight":
			for i, n := range next {
				x[n*vocab+i] = 1
			}
		case "norm.weight", "layers.0.norm1.weight", "layers.0.norm2.weight":
			for i := range x {
				x[i] = 1
			}
		}
		m.Params.Set(d, p, x)
	}
	return m
}
