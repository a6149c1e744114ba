package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/recipe"
)

// Requests of an open loop come as a Poisson process of the rate asked for, the same for a seed; of a closed loop, or
// without a rate, all at once. Lengths are drawn for each.
func TestShots(t *testing.T) {
	o := ServeOptions{Rate: 40, Requests: 20000, Prompt: lengthsOf(t, "3..5"), Output: lengthsOf(t, "7..9")}
	draw := func(seed uint64) []shot { return o.shots(rand.New(rand.NewPCG(seed, 1))) }
	list := draw(1)
	if len(list) != 20000 || list[0].at != 0 {
		t.Fatalf("%d requests, the first at %s", len(list), list[0].at)
	}
	sum, square, lengths := 0.0, 0.0, map[[2]int]int{}
	for i := 1; i < len(list); i++ {
		gap := (list[i].at - list[i-1].at).Seconds()
		sum, square = sum+gap, square+gap*gap
		lengths[[2]int{list[i].prompt, list[i].output}]++
	}
	mean := sum / 19999
	// Mean and deviation of an exponential are equal.
	if std := math.Sqrt(square/19999 - mean*mean); !(math.Abs(mean-0.025) <= 0.001) || !(math.Abs(std-0.025) <= 0.001) {
		t.Errorf("gaps of %g ± %g s at 40 per second", mean, std)
	}
	if len(lengths) != 9 || lengths[[2]int{3, 9}] < 1500 {
		t.Errorf("lengths %v", lengths)
	}
	if !reflect.DeepEqual(draw(1), list) || reflect.DeepEqual(draw(2), list) {
		t.Error("a seed does not decide the load")
	}
	for _, x := range []ServeOptions{{Rate: 40, Concurrency: 2}, {Rate: 0}} {
		x.Requests, x.Prompt, x.Output = 5, o.Prompt, o.Output
		for _, s := range x.shots(rand.New(rand.NewPCG(1, 1))) {
			if s.at != 0 {
				t.Errorf("rate %g, %d open: one is sent after %s", x.Rate, x.Concurrency, s.at)
			}
		}
	}
}

// An answer whose tokens all lack text has no time to a first one, although the server counts them.
func TestSummaryWithoutText(t *testing.T) {
	const ms = time.Millisecond
	r := summarize(&ServeOptions{Deadline: time.Second}, []shot{
		{status: http.StatusOK, tokens: 5, whole: 300 * ms},
		{status: http.StatusOK, tokens: 3, first: 40 * ms, whole: 100 * ms},
	}, time.Second)
	if r.Answered != 2 || r.Tokens != 8 || !(math.Abs(r.TTFT.Mean-0.04) <= 1e-12) ||
		!(math.Abs(r.TTFT.P50-0.04) <= 1e-12) || !(math.Abs(r.TPOT.Mean-0.03) <= 1e-12) ||
		!(math.Abs(r.E2E.Mean-0.2) <= 1e-12) {
		t.Errorf("%+v", r)
	}
}

// passOf is a pass of sequences that begin after first and then write a token every step.
func passOf(n, tokens int, first, step, whole time.Duration, cpu float64) *pass {
	p := newPass(n, tokens)
	for i := range n {
		for k := range tokens {
			p.took(i, first+time.Duration(k)*step)
		}
	}
	p.whole, p.cpu = whole, cpu
	return p
}

// A comparison by hand: the ratios are the server's rate over the engine's, the engine's time over that of whole
// answers, and the time to the first byte over the engine's prompt and one step.
func TestServedRow(t *testing.T) {
	const ms = time.Millisecond
	var list []round
	for k := range 3 {
		slow := time.Duration(k) // the server's steps take 10, 11 and 12 ms
		list = append(list, round{passOf(1, 11, 20*ms, 10*ms, 200*ms, 2),
			passOf(1, 11, 24*ms+slow*ms, (10+slow)*ms, 300*ms, 3+float64(k)), passOf(1, 11, 0, ms, 250*ms, 9)})
	}
	r := servedRow(1, list)
	near(t, map[string][2]float64{"engine": {r.Engine, 100}, "server": {r.Streamed, 1000. / 11},
		"ratio": {r.Ratio[1], 10. / 11}, "high": {r.Ratio[2], (1 + 10./11) / 2},
		"whole": {r.Whole[1], 0.8}, "CPU": {r.CPU[1], 2}, "CPU, low": {r.CPU[0], 1.75}, "step": {r.Step, 0.01},
		"prompt": {r.Prefill, 0.02}, "first byte": {r.FirstByte, 0.025},
		"its ratio": {r.First[1], 25. / 30}})
	if r.Batch != 1 || r.Ratio[0] > r.Ratio[1] {
		t.Errorf("%+v", r)
	}
	for k := range list { // the engine's steps take 10, 20 and 40 ms, its prompts 20, 30 and 50
		slow := []time.Duration{0, 10, 30}[k] * ms
		list[k].engine = passOf(1, 11, 20*ms+slow, 10*ms+slow, 200*ms, 2)
	}
	r = servedRow(1, list)
	near(t, map[string][2]float64{"engine": {r.Engine, 50}, "step": {r.Step, 0.02}, "prompt": {r.Prefill, 0.03},
		"first byte": {r.First[1], 25. / 50}, "low": {r.First[0], (25./50 + 26./90) / 2},
		"high": {r.First[2], (25./50 + 24./30) / 2}})
	two := servedRow(2, []round{{passOf(2, 11, 20*ms, 10*ms, 200*ms, 0), passOf(2, 11, 20*ms, 20*ms, 300*ms, 3),
		passOf(2, 11, 0, ms, 100*ms, 9)}})
	near(t, map[string][2]float64{"engine of two": {two.Engine, 200}, "server of two": {two.Streamed, 100},
		"step of two": {two.Step, 0.01}, "whole of two": {two.Whole[1], 2}})
	// There is no clock of the processor, and there are several sequences.
	if two.CPU != [3]float64{} || two.First != [3]float64{} || two.FirstByte != 0 || two.Prefill != 0 {
		t.Errorf("%+v", two)
	}
}

// Products of a size are those of its matrices, by hand from the model's widths, each in the four forms of training;
// the tokens are a micro-batch unless others are asked for.
func TestGemmShapes(t *testing.T) {
	r, err := recipe.Named("nano", "transformer")
	if err != nil {
		t.Fatal(err)
	}
	m := r.Model
	heads := m.Heads * m.HeadDim
	want := map[string][2]int{"attn.qkv": {heads + 2*m.KVHeads*m.HeadDim, m.Dim}, "attn.out": {m.Dim, heads},
		"mlp.gate_up": {2 * m.FFN, m.Dim}, "mlp.down": {m.Dim, m.FFN}, "classifier": {m.Vocab, m.Dim}}
	var rows []Row
	c := quick(t)
	c.Warmup, c.Reps = 1, 1
	if err := c.Gemm(context.Background(),
		GemmOptions{Geometry: Geometry{Size: "nano", Arch: "transformer"}, Rows: []int{3}},
		func(r Row) { rows = append(rows, r) }); err != nil {
		t.Fatal(err)
	}
	tokens := r.Train.MicroBatch * r.Train.SeqLen
	var names []string
	seen := map[string]bool{}
	for _, row := range rows {
		w := row.Shape["weight"].(string)
		seen[w] = true
		n := row.Shape["rows"].(int)
		if size, ok := want[w]; !ok || size != [2]int{row.Shape["out"].(int), row.Shape["in"].(int)} ||
			n != tokens && n != 3 {
			t.Errorf("%v, want %v of %d tokens", row.Shape, want[w], tokens)
		}
		name := fmt.Sprintf("nano %s %s %d×%d×%d", w, row.Shape["product"], n, want[w][0], want[w][1])
		if row.Name != name || row.Kind != "gemm" || row.Unit != "ms" || row.Shape["size"] != "nano" {
			t.Errorf("%q, want %q", row.Name, name)
		}
		if w == "attn.qkv" || w == "classifier" {
			names = append(names, fmt.Sprintf("%s %s %v", w, row.Shape["product"], n == 3))
		}
	}
	if len(seen) != len(want) {
		t.Errorf("matrices %v", seen)
	}
	if order := []string{"attn.qkv y=x·Wᵀ false", "attn.qkv dx=dy·W false", "attn.qkv dW=dyᵀ·x false",
		"attn.qkv dW+=dyᵀ·x false", "classifier loss+dx+dW false",
		"attn.qkv y=x·Wᵀ true", "classifier y=x·Wᵀ true"}; !slices.Equal(names, order) {
		t.Errorf("%q", names)
	}
}

// Several prompts are computed together, each its own; rows are named by what was measured.
func TestDecodeNames(t *testing.T) {
	c := quick(t)
	c.Warmup, c.Reps = 1, 3
	o := DecodeOptions{Geometry: Geometry{Size: "nano", Arch: "diff2", Layers: 1}, Batch: []int{2},
		Prompt: 6, Prompts: 3}
	var rows []Row
	if err := c.Decode(context.Background(), o, func(r Row) { rows = append(rows, r) }); err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, want := range []string{"nano diff2 prefill batch 3 context 6", "nano diff2 decode batch 2 context 6"} {
		r := rows[i]
		if r.Name != want || r.Kind != "decode" || r.Unit != "tokens/s" || r.Shape["context"] != 6 ||
			r.Shape["layers"] != 1 || r.Shape["arch"] != "diff2" {
			t.Errorf("%q %v", r.Name, r.Shape)
		}
	}
	cfg, err := o.config()
	if err != nil {
		t.Fatal(err)
	}
	if per := cfg.Model.PromptFLOPs(6) / 6; !(math.Abs(rows[0].Rate*1e12/rows[0].Value-per) <= 1e-6*per) {
		t.Errorf("%g FLOPs of a token of three prompts, want %g", rows[0].Rate*1e12/rows[0].Value, per)
	}
	m, err := model.New(c.Device, cfg.Model, layer.Memory{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	list := o.requests(m, 3, 9)
	for i, q := range list {
		if len(q.IDs) != 6 || q.Sampling.MaxTokens != 9 || q.Sampling.Temperature != 0 || i > 0 &&
			slices.Equal(q.IDs, list[0].IDs) {
			t.Errorf("request %d: %+v", i, q)
		}
	}
}

// ahead is a device that works ahead of the host.
type ahead struct {
	device.Device
	device.Ahead
}

// Samples of a device that works ahead are stretches of eight steps after two.
func TestStretch(t *testing.T) {
	if got := (&Config{Device: ahead{}}).stretch(); got != (stretch{2, 8}) || got.all() != 10 {
		t.Errorf("%+v", got)
	}
	if got := (&Config{Device: &still{}}).stretch(); got != (stretch{0, 1}) {
		t.Errorf("%+v", got)
	}
	w := &watch{c: &Config{Reps: 2}, got: samples{seconds: []float64{1}}}
	e := fmt.Errorf("no ceiling")
	w.stop, w.top = func(error) {}, &Ceiling{Run: func() (float64, error) { return 0, e }}
	w.stretch, w.last = stretch{0, 2}, time.Unix(10, 0)
	if w.sample(time.Unix(13, 0)); w.err != e || w.got.seconds[1] != 1.5 || w.since != 0 {
		t.Errorf("%+v", w)
	}
}

// Names of training and attention rows, and the shape that a peer is given.
func TestRowNames(t *testing.T) {
	c := quick(t)
	c.Warmup, c.Reps = 1, 1
	row, err := c.Train(context.Background(),
		TrainOptions{Geometry: Geometry{Size: "nano", Arch: "diff", Layers: 1, Vocab: 300}, Seq: 16,
			Batch: 4, Micro: 2})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := recipe.Named("nano", "diff")
	m := r.Model
	want := map[string]any{"size": "nano", "arch": "diff", "layers": 1, "dim": m.Dim, "heads": m.Heads,
		"head_dim": m.HeadDim, "ffn": m.FFN, "vocab": 300, "seq": 16, "batch": 4, "micro_batch": 2, "recorded": false,
		"params": row.Shape["params"]}
	m.Layers, m.Vocab = 1, 300
	if row.Name != "nano diff T=16 batch 4" || row.Kind != "train" || row.Unit != "tokens/s" ||
		!reflect.DeepEqual(row.Shape, want) || row.Shape["params"] != model.Table(m).Count() {
		t.Errorf("%q %v, want %v", row.Name, row.Shape, want)
	}
	var names []string
	err = c.Attention(context.Background(), AttentionOptions{Arch: "diff", Dim: 64, Head: 16, Seq: 8, Tokens: 20},
		func(r Row) {
			names = append(names, fmt.Sprintf("%s %s %s %v %v %v %v %v", r.Kind, r.Name, r.Unit, r.Shape["heads"],
				r.Shape["head_dim"], r.Shape["dim"], r.Shape["seq"], r.Shape["pass"]))
		})
	if err != nil || !slices.Equal(names,
		[]string{"attention diff 64/16 T=8 forward ms 2 16 64 8 forward",
			"attention diff 64/16 T=8 backward ms 2 16 64 8 backward",
			"attention diff 64/16 T=8 forward+backward ms 2 16 64 8 forward+backward"}) {
		t.Errorf("%q %v", names, err)
	}
}
