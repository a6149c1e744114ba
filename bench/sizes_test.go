package bench

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"antiphase/layer"
	"antiphase/model"
	"antiphase/recipe"
)

// A geometry is the named size with the fields that were given; the step of training is one micro-batch unless a batch
// is named.
func TestGeometryOverrides(t *testing.T) {
	named, err := recipe.Named("tiny", "diff")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Geometry{Size: "tiny", Arch: "diff", Head: 32, Vocab: 300, Layers: 5, Context: 77}.config()
	if err != nil || r.Model.HeadDim != 32 || r.Model.Heads != 128/(32*2) || r.Model.KVHeads != r.Model.Heads ||
		r.Model.Vocab != 300 || r.Model.Layers != 5 ||
		r.Model.Context != 77 || r.Tokenizer.Vocab != 300 || r.Model.Dim != named.Model.Dim {
		t.Errorf("%+v (%v)", r.Model, err)
	}
	if r, err := (Geometry{Size: "tiny", Arch: "diff"}).config(); err != nil || r.Model != named.Model ||
		r.Tokenizer.Vocab != named.Tokenizer.Vocab {
		t.Errorf("without changes: %+v (%v)", r.Model, err)
	}
	for _, x := range []struct {
		o                          TrainOptions
		seq, batch, micro, context int
	}{
		{TrainOptions{}, named.Train.SeqLen, named.Train.MicroBatch, named.Train.MicroBatch, named.Model.Context},
		{TrainOptions{Batch: 6}, named.Train.SeqLen, 6, 6, named.Model.Context},
		{TrainOptions{Batch: 6, Micro: 2}, named.Train.SeqLen, 6, 2, named.Model.Context},
		{TrainOptions{Seq: 400, Batch: 1}, 400, 1, 1, 400},
		{TrainOptions{Seq: 40, Batch: 1}, 40, 1, 1, 40},
		{TrainOptions{Seq: 40, Batch: 1, Geometry: Geometry{Context: 50}}, 40, 1, 1, 50},
	} {
		x.o.Size, x.o.Arch = "tiny", "diff"
		r, err := x.o.recipe()
		if err != nil || r.Train.SeqLen != x.seq || r.Train.Batch != x.batch || r.Train.MicroBatch != x.micro ||
			r.Model.Context != x.context {
			t.Errorf("%+v: %+v, context %d (%v)", x.o, r.Train, r.Model.Context, err)
		}
	}
	o := TrainOptions{Geometry: Geometry{Size: "tiny", Arch: "diff"}, Recompute: layer.RecomputeBlocks}
	if r, err := o.recipe(); err != nil || r.Train.Recompute != layer.RecomputeBlocks {
		t.Errorf("recompute %q (%v)", r.Train.Recompute, err)
	}
	o.Batch, o.Micro = 6, 4
	if o.Check() == nil {
		t.Error("a batch of 6 in micro-batches of 4 is taken")
	}
}

// A forward pass is of one micro-batch and of the formula's forward FLOPs; its row says so.
func TestForwardRow(t *testing.T) {
	c := quick(t)
	o := TrainOptions{Geometry: Geometry{Size: "nano", Arch: "diff"}, Batch: 4, Micro: 2, Forward: true,
		Recompute: layer.RecomputeBlocks}
	row, err := c.Train(context.Background(), o)
	if err != nil || row.Name != "nano diff T=32 batch 4, recompute blocks, forward" ||
		row.Shape["recompute"] != layer.RecomputeBlocks || row.Memory != 0 {
		t.Fatalf("%+v (%v)", row, err)
	}
	r, err := o.recipe()
	if err != nil {
		t.Fatal(err)
	}
	forward, whole := r.Model.FLOPs(32)
	// FLOPs of a token.
	if per := row.Rate * 1e12 / row.Value; !(math.Abs(per-forward) <= 1e-9*forward) || forward >= whole {
		t.Errorf("%g FLOPs of a token, want %g", per, forward)
	}
}

// What decoding reads: all matrices, the embedding only if it is the classifier as well, and the cache of every
// position.
func TestStepBytes(t *testing.T) {
	c := quick(t)
	r, err := recipe.Nano("diff")
	if err != nil {
		t.Fatal(err)
	}
	m := r.Model
	embedding, all := m.Vocab*m.Dim, model.Table(m).Count()
	m.TieEmbed = false
	apart := c.stepBytes(m, 0)
	if n := model.Table(m).Count(); apart != 4*float64(n-embedding) {
		t.Errorf("%g bytes of %d weights, of which %d are the embedding's", apart, n, embedding)
	}
	m.TieEmbed = true
	if got, n := c.stepBytes(m, 0), model.Table(m).Count(); got != 4*float64(n) || all == 0 {
		t.Errorf("%g bytes of %d weights where the embedding is the classifier", got, n)
	}
	// Two keys, and values twice as wide.
	if got := c.stepBytes(m, 3) - c.stepBytes(m, 0); got != 3*float64(m.Layers*m.KVHeads*m.HeadDim*(2+2)*4) {
		t.Errorf("%g bytes of three positions", got)
	}
	c.WeightBytes = 1
	if got := c.stepBytes(m, 0); got != float64(model.Table(m).Count()) {
		t.Errorf("%g bytes of weights of one byte", got)
	}
	if c.weightBytes() != 1 {
		t.Error("bytes of a weight")
	}
}

// An attention layer must fill its width with values, and have a sequence.
func TestAttentionOptions(t *testing.T) {
	good := AttentionOptions{Arch: "diff", Dim: 64, Head: 16, Seq: 32, Tokens: 64}
	for want, change := range map[string]func(*AttentionOptions){
		"": func(*AttentionOptions) {}, "there are [": func(o *AttentionOptions) { o.Arch = "x" },
		"head: values of 2 × 24":       func(o *AttentionOptions) { o.Head = 24 },
		"head: values of 2 × 0":        func(o *AttentionOptions) { o.Head = 0 },
		"dim = 0":                      func(o *AttentionOptions) { o.Dim = 0 },
		"dim: is 16777248":             func(o *AttentionOptions) { o.Dim = most + 32 },
		"dim: is -64":                  func(o *AttentionOptions) { o.Dim = -64 },
		"head: is 4611686018427387904": func(o *AttentionOptions) { o.Head = 1 << 62 },
		"head: is -16":                 func(o *AttentionOptions) { o.Head = -16 },
		"seq: is -8":                   func(o *AttentionOptions) { o.Seq = -8 },
		"seq: is 0":                    func(o *AttentionOptions) { o.Seq = 0 },
		"at most tokens = 31":          func(o *AttentionOptions) { o.Tokens = 31 },
	} {
		o := good
		change(&o)
		if err := o.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	one := good
	if one.Tokens = 32; one.Check() != nil {
		t.Errorf("one sequence: %v", one.Check())
	}
	c, err := good.config()
	if err != nil || c.Heads != 2 || c.Groups != 2 || c.HeadDim != 16 {
		t.Errorf("%+v (%v)", c, err)
	}
}

// Rows and tokens of products are within their bounds, up to the last.
func TestGemmOptions(t *testing.T) {
	for _, x := range []struct {
		o    GemmOptions
		says string
	}{
		{GemmOptions{Rows: []int{1, most}, Tokens: most}, ""}, {GemmOptions{}, ""},
		{GemmOptions{Rows: []int{1, 0}}, fmt.Sprintf("rows: has 0, each must be between 1 and %d", most)},
		{GemmOptions{Rows: []int{most + 1}}, fmt.Sprintf("rows: has %d, each must be between 1 and %d", most+1, most)},
		{GemmOptions{Tokens: -1}, "tokens: is -1"},
		{GemmOptions{Tokens: most + 1}, fmt.Sprintf("tokens: is %d", most+1)},
	} {
		if err := x.o.Check(); (err == nil) != (x.says == "") || err != nil && !strings.HasPrefix(err.Error(), x.says) {
			t.Errorf("%+v: %v, want %q", x.o, err, x.says)
		}
	}
}
