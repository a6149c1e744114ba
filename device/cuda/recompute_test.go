package cuda

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"antiphase/layer"
	"antiphase/model"
)

// recomputeSame wants the bits of losses and gradients of two batches, the second on memory that has settled, whatever
// is recomputed.
func recomputeSame(t *testing.T, d *Device, c model.Config, rows int) {
	t.Helper()
	var want []byte
	for _, how := range layer.Recomputes {
		m := newModel(t, d, c)
		m.Recompute(how)
		var got []byte
		for i := range uint64(2) {
			b := text(rand.New(rand.NewPCG(i, 2)), 2, rows)
			if err := m.Backprop(b, 0.25); err != nil {
				t.Fatal(err)
			}
			losses := make([]float32, len(b.IDs))
			m.Losses(losses)
			got = fmt.Append(got, losses)
			for _, p := range m.Params.List {
				got = append(got, read(d, p.G)...)
			}
		}
		if err := d.Sync(); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: recompute %s changes gradients", c.Arch, how)
		}
	}
}

// TestRecompute: on a GPU, at sizes of the tiled kernels.
func TestRecompute(t *testing.T) {
	d := gpu(t, nil)
	for _, kind := range kinds() {
		for _, d.wgmma = range []bool{false, d.info.Major == 9} {
			recomputeSame(t, d, ofKind(kind,
				model.Config{Vocab: 500, Context: 512, Layers: 3, Dim: 256, Heads: 4, KVHeads: 2, HeadDim: 64}), 300)
		}
	}
}
