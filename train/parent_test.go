package train

import (
	"context"
	"errors"
	"strings"
	"testing"

	"antiphase/internal/safetensors"
)

// A run that begins with another model remembers which, in every checkpoint, also after a resume that no longer asks
// for it.
func TestParentIsRemembered(t *testing.T) {
	parent := options(t, t.TempDir())
	r := nano(t, "diff", "train.steps=3")
	mustRun(t, r, parent)
	weights, err := safetensors.Open(parent.Dir + "/checkpoints/step-00000003/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer weights.Close()
	opt := options(t, t.TempDir())
	asked := 0
	opt.Begin = &Begin{Weights: weights.Float32s, Parent: func() (*Parent, error) {
		asked++
		return &Parent{Path: parent.Dir, Step: 3, SHA256: "abc"}, nil
	}}
	child := nano(t, "diff", "train.steps=4", "train.from="+parent.Dir)
	stopAt(t, child, opt, 2)
	opt.Begin = &Begin{Parent: func() (*Parent, error) { return nil, errors.New("gone") }}
	mustRun(t, child, opt)
	if p := newestState(t, opt.Dir).Parent; asked != 1 || p == nil || *p != (Parent{parent.Dir, 3, "abc"}) {
		t.Errorf("asked %d times, remembers %+v", asked, p)
	}
	fresh := options(t, t.TempDir())
	fresh.Begin = opt.Begin
	if _, err := Run(context.Background(), child, fresh); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a parent that is gone: %v", err)
	}
}
