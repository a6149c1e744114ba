package infer

import (
	"context"
	"slices"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// reader notes the largest read.
type reader struct {
	device.Device
	most int
}

func (r *reader) Read(dst []byte, src tensor.Tensor) {
	r.most = max(r.most, len(dst))
	r.Device.Read(dst, src)
}

// Sequences that take their most likely token fetch ids alone, and in a batch that needs logits they get the same
// tokens.
func TestGreedyReadsIDs(t *testing.T) {
	d := &reader{Device: ref.New()}
	e := engine(t, tiny(t, d, "diff"), nil, Options{Slots: 3, PrefillChunk: 4})
	a, b := Request{IDs: []int32{1, 2, 3, 4, 5, 6}, Sampling: Sampling{MaxTokens: 9}},
		Request{IDs: []int32{7}, Sampling: Sampling{MaxTokens: 12}}
	d.most = 0
	got := generate(t, e, a, b)
	if d.most > 4*3 {
		t.Errorf("a greedy step read %d bytes at once", d.most)
	}
	c := Request{IDs: []int32{8, 9}, Sampling: Sampling{MaxTokens: 15, Temperature: 1}}
	with := generate(t, e, a, b, c)
	if d.most < 50*4 {
		t.Errorf("a sampled step read %d bytes at most", d.most)
	}
	for i := range got {
		if !slices.Equal(got[i].IDs, with[i].IDs) {
			t.Errorf("request %d: %v by best tokens, %v by logits", i, got[i].IDs, with[i].IDs)
		}
	}
}

// A greedy sequence whose logits are not finite fails alone and reports which.
func TestGreedyNaN(t *testing.T) {
	m := tiny(t, newCPU(t), "transformer")
	good := Request{IDs: []int32{1, 2, 3}, Sampling: Sampling{MaxTokens: 5}}
	want := generate(t, engine(t, m, nil, Options{}), good)[0]
	bad := int32(4)
	for slices.Contains(want.IDs, bad) {
		bad++
	}
	spoil(m, bad)
	e := engine(t, m, nil, Options{})
	got := make([]answer, 2)
	err := e.Generate(context.Background(), []Request{good, {IDs: []int32{1, bad}, Sampling: Sampling{MaxTokens: 5}}},
		func(i int, ev Event) bool {
			got[i].add(t, ev)
			return true
		})
	if err == nil || !strings.Contains(err.Error(), "request 1") ||
		!strings.Contains(err.Error(), "the logit of token 0 is NaN") {
		t.Errorf("error is %v", err)
	}
	if !slices.Equal(got[0].IDs, want.IDs) {
		t.Errorf("the neighbour said %v, alone %v", got[0].IDs, want.IDs)
	}
}
