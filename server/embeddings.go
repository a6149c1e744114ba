package server

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"

	"antiphase/infer"
	"antiphase/model"
)

// embeddingsNote is part of every response: what the numbers are and are not.
const embeddingsNote = "mean of the last hidden states of a causal language model, L2-normalised; not trained for " +
	"retrieval"

// embeddingRoutes compute vectors of texts.
type embeddingRoutes struct{ *core }

// embeddings computes one vector per input.
func (t *embeddingRoutes) embeddings(w http.ResponseWriter, r *http.Request) {
	reply, err := t.embed(w, r)
	if err != nil {
		t.abandon(w, r, nil, gone(r, err))
		return
	}
	t.json(w, http.StatusOK, reply)
}

func (t *embeddingRoutes) embed(w http.ResponseWriter, r *http.Request) (any, error) {
	o, err := t.openCall(w, r)
	if err != nil {
		return nil, err
	}
	m := o.model
	inputs := o.prompts("input", true, false)
	o.ignore("user")
	format := o.text("encoding_format")
	if format != "" && format != "float" && format != "base64" {
		o.refuse("encoding_format", "is %q, must be float or base64", excerpt([]byte(format)))
	}
	width := int64(m.width)
	if n := o.whole("dimensions", width, 1, math.MaxInt32); n != width {
		o.refuse("dimensions", "is %d, the model has %d", n, width)
	}
	if err := o.finish(); err != nil {
		return nil, err
	}
	total := 0
	for _, ids := range inputs {
		if total += len(ids); len(ids) > m.Context {
			return nil, &infer.ContextError{Prompt: len(ids), Limit: m.Context, Of: "context"}
		}
	}
	if err := t.calls.begin(); err != nil {
		return nil, err
	}
	defer t.calls.end()
	ctx, cancel := t.calls.deadline(r, t.cfg.Limits.Request)
	defer cancel()
	leave, err := m.gate.enter(ctx, caller(r), 1, total)
	if err != nil {
		return nil, err
	}
	defer leave()
	data := []any{}
	for i, ids := range inputs {
		v, err := m.embedding(ctx, ids)
		if err != nil {
			return nil, err
		}
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": encodeVector(v, format)})
	}
	return map[string]any{"object": "list", "model": m.ID, "data": data, "kind": embeddingsNote,
		"usage": map[string]int{"prompt_tokens": total, "total_tokens": total}}, nil
}

// embedding is the mean of the last hidden states, of length 1.
func (m *Model) embedding(ctx context.Context, ids []int32) ([]float32, error) {
	hidden := make([]float32, len(ids)*m.width)
	err := m.Engine.Beside(ctx, func(net *model.Model, rest func()) error {
		if err := net.Hidden(&model.Batch{B: 1, T: len(ids), IDs: ids}, rest, hidden); err != nil {
			return err
		}
		return net.Device().Sync()
	})
	if err != nil {
		return nil, err
	}
	sum := make([]float64, m.width)
	for i, x := range hidden {
		sum[i%m.width] += float64(x)
	}
	length := 0.0
	for _, x := range sum {
		length += x * x
	}
	out := make([]float32, m.width)
	for i, x := range sum {
		out[i] = float32(x / max(math.Sqrt(length), math.SmallestNonzeroFloat32))
	}
	return out, nil
}

// encodeVector writes a vector as numbers, or as base64 of little-endian float32.
func encodeVector(v []float32, format string) any {
	if format != "base64" {
		return v
	}
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}
