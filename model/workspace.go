package model

import (
	"antiphase/layer"
	"antiphase/tensor"
)

// workspace is the memory of a model's passes, which run one at a time, and the state of the last one.
type workspace struct {
	arena *tensor.Arena
	pass  layer.Pass
	feed  Feed // for passes that are not recorded
	rows  int  // rows of the last pass

	recompute layer.Recompute
	version   int // incremented when passes change: recorded work of an older version is stale
}

// settle compacts the arena.
func (w *workspace) settle() {
	if w.arena.Settle() {
		w.version++
	}
}

// start begins a pass with an empty arena.
func (w *workspace) start(p layer.Pass) *layer.Pass {
	w.arena.Release(tensor.Mark{})
	p.Arena = w.arena
	w.pass = p
	return &w.pass
}

// Recompute selects the activations that passes over batches drop; gradients are bit-identical. It changes the version.
func (w *workspace) Recompute(r layer.Recompute) {
	if w.recompute != r {
		w.recompute = r
		w.version++
	}
}

// Version changes whenever passes do different work or use different memory: recordings of an older version are stale.
func (w *workspace) Version() int { return w.version }

// ActivationBytes is the peak memory of passes so far.
func (w *workspace) ActivationBytes() int { return w.arena.High() }

func (w *workspace) free() {
	w.arena.Free()
	w.feed.Free()
}
