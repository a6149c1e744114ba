package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/infer"
	"antiphase/layer"
	"antiphase/recipe"
	"antiphase/tensor"
)

func open(t *testing.T) *Config {
	t.Helper()
	d := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() { d.Close() })
	// Odd: the median is one of them, and medians of ratios are ratios of medians.
	return &Config{Device: d, Warmup: 1, Reps: 3}
}

// TestTrainRows: a row of every architecture with all its parts, and an op table that accounts for the step.
func TestTrainRows(t *testing.T) {
	c := open(t)
	for _, a := range layer.Archs() {
		row, err := c.Train(context.Background(),
			TrainOptions{Geometry: Geometry{Size: "nano", Arch: a.Name}, Seq: 48, Batch: 4, Micro: 2, Ops: true})
		if err != nil {
			t.Fatal(err)
		}
		if row.Value <= 0 || row.Low > row.Value || row.High < row.Value || row.Rate <= 0 || row.CeilingRate <= 0 ||
			row.Share <= 0 {
			t.Errorf("%s: %+v", a.Name, row)
		}
		if row.Loss < 1 || row.Loss > 20 || row.Memory < 10000 || row.Shape["seq"] != 48 ||
			row.Shape["arch"] != a.Name {
			t.Errorf("%s: loss %g, %d bytes, shape %v", a.Name, row.Loss, row.Memory, row.Shape)
		}
		var calls, flops float64
		for _, o := range row.Ops {
			if strings.Contains(o.Op, "AttentionBackward") {
				calls += o.Calls
			}
			flops += o.FLOPs
		}
		if calls != 4 { // 2 layers, 2 micro-batches
			t.Errorf("%s: %g attention backwards in a step, want 4: %+v", a.Name, calls, row.Ops)
		}
		// The ops' FLOPs are the model's formula, counted by another path.
		r, _ := TrainOptions{Geometry: Geometry{Size: "nano", Arch: a.Name}, Seq: 48}.recipe()
		_, want := r.Model.FLOPs(48)
		// Rate and tokens per second are of one median.
		if per := row.Rate * 1e12 / row.Value; !(math.Abs(per-want) <= 1e-6*want) {
			t.Errorf("%s: %g FLOPs of a token, want %g", a.Name, per, want)
		}
		if want *= 4 * 48; !(math.Abs(flops-want) <= 1e-3*want) {
			t.Errorf("%s: the ops have %g FLOPs, the formula says %g", a.Name, flops, want)
		}
	}
}

// TestOpsWrapsEveryOp: an op that is merely passed through would be missing from the table.
func TestOpsWrapsEveryOp(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "ops_device.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
			have = append(have, fn.Name.Name)
		}
	}
	host := []string{"Name", "Types", "Alloc", "Free", "Sync", "Close"}
	iface := reflect.TypeFor[device.Device]()
	for i := range iface.NumMethod() {
		if n := iface.Method(i).Name; !slices.Contains(have, n) && !slices.Contains(host, n) {
			t.Errorf("Ops does not time %s", n)
		}
	}
}

// TestOpsChangesNothing: the wrapped device computes the same bits, in every architecture.
func TestOpsChangesNothing(t *testing.T) {
	for _, a := range layer.Archs() {
		opsChangeNothing(t, a.Name)
	}
}

func opsChangeNothing(t *testing.T, arch string) {
	c := open(t)
	var losses [2]float64
	for i, d := range []device.Device{c.Device, NewOps(c.Device)} {
		r, err := TrainOptions{Geometry: Geometry{Size: "nano", Arch: arch}}.recipe()
		if err != nil {
			t.Fatal(err)
		}
		s, err := newStepper(d, r)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := s.step(); err != nil {
				t.Fatal(err)
			}
		}
		losses[i] = s.loss
		s.free()
	}
	if losses[0] != losses[1] {
		t.Errorf("%s: losses %v", arch, losses)
	}
}

// TestCounter: the peak is what was held at once, not what is held or was ever given.
func TestCounter(t *testing.T) {
	d := count(open(t).Device)
	a := device.Empty(d, tensor.F32, 10, 100)
	d.Free(a.Buf)
	b := device.Empty(d, tensor.F32, 1, 100)
	if got := d.memory(); got < 4000 || got >= 4400 {
		t.Errorf("peak %d, want 4000", got)
	}
	d.Free(b.Buf)
}

func TestQuartiles(t *testing.T) {
	if low, mid, high := quartiles([]float64{5, 1, 3, 2, 4}); low != 2 || mid != 3 || high != 4 {
		t.Error(low, mid, high)
	}
	if _, mid, _ := quartiles([]float64{1, 2}); mid != 1.5 {
		t.Error(mid)
	}
}

// TestCancelled: a stopped benchmark says so and gives no row of half its repetitions.
func TestCancelled(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := open(t).Train(ctx, TrainOptions{Geometry: Geometry{Size: "nano", Arch: "diff"}}); !errors.Is(err,
		context.Canceled) {
		t.Error(err)
	}
}

func TestGeometryErrors(t *testing.T) {
	for _, c := range []struct {
		g    Geometry
		want string
	}{
		{Geometry{Size: "huge", Arch: "diff"}, "there are nano, tiny"},
		{Geometry{Size: "nano", Arch: "other"}, "there are [transformer"},
		{Geometry{Size: "nano", Arch: "diff", Head: 24}, "do not divide"},
	} {
		if _, err := c.g.config(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.g, err, c.want)
		}
	}
}

// TestSaveAppends: rows come back from the file as they were, one line each, under those of earlier runs.
func TestSaveAppends(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results", "bench")
	row := Row{Kind: "train", Name: "x", Value: 2, Unit: "tokens/s", Shape: map[string]any{"seq": 4.0}}
	row.Stamp = Stamp{Commit: "abc", Machine: Machine{Cores: 2}}
	for range 2 {
		if err := Save(dir, []Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "train.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	var back Row
	if err := json.Unmarshal(lines[1], &back); err != nil || !reflect.DeepEqual(back, row) {
		t.Errorf("%v\n%+v\n%+v", err, back, row)
	}
}

// TestPrint: the table shows the value, its share of the ceiling and the ops.
func TestPrint(t *testing.T) {
	var b bytes.Buffer
	rows := []Row{{Name: "160m", Value: 12345, Unit: "tokens/s", Rate: 1.5, RateUnit: UnitFLOPs, CeilingRate: 3,
		Share: 0.5, Ceiling: "peak", Memory: 1 << 30, Ops: []OpTime{
			{Op: "MatMul", Shape: "1×2×3", Calls: 2, Seconds: 0.003, FLOPs: 3e9, Bytes: 6e6},
			{Op: "Add", Calls: 1, Seconds: 0.001, Bytes: 1e6},
		}}}
	if err := Print(&b, rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"12345", "50.0%", "1.00 GiB", "1×2×3", "75.0%", "4.000", "ceiling: peak"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// quick ceilings, so that tests spend their time on the rows.
func quick(t *testing.T) *Config {
	c := open(t)
	c.Product = Ceiling{Name: "fixed", Unit: UnitFLOPs, Run: func() (float64, error) { return 0.5, nil }}
	c.Bandwidth = Ceiling{Name: "fixed bytes", Unit: UnitBytes, Run: func() (float64, error) { return 10, nil }}
	return c
}

// TestGemmRows: three products of four matrices, the classifier, and few rows of all five, each beside the right
// ceiling.
func TestGemmRows(t *testing.T) {
	var rows []Row
	err := quick(t).Gemm(context.Background(),
		GemmOptions{Geometry: Geometry{Size: "nano", Arch: layer.Archs()[0].Name}, Tokens: 16, Rows: []int{1, 3}},
		func(r Row) { rows = append(rows, r) })
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 4*4+1+5*2 {
		t.Fatalf("%d rows", len(rows))
	}
	if err := quick(t).Products(context.Background(), []Shape{{20, 9, 7}},
		func(r Row) { rows = append(rows, r) }); err != nil || len(rows) != 31 {
		t.Fatalf("%v, %d rows", err, len(rows))
	}
	for _, r := range rows {
		want := "fixed"
		if n := r.Shape["rows"].(int); n < 16 {
			want = "fixed bytes"
		}
		rows, out, in := float64(r.Shape["rows"].(int)), float64(r.Shape["out"].(int)), float64(r.Shape["in"].(int))
		work := 2 * rows * out * in // FLOPs
		switch {
		case want == "fixed bytes":
			work = 4 * (out*in + rows*in + rows*out)
		case r.Shape["weight"] == "classifier":
			work *= 3
		}
		scale := map[string]float64{"fixed": 1e12, "fixed bytes": 1e9}[want]
		if got := r.Rate * scale * r.Value / 1e3; !(math.Abs(got-work) <= 1e-6*work) {
			t.Errorf("%s: %g FLOPs or bytes, want %g", r.Name, got, work)
		}
		if r.Ceiling != want || r.Value <= 0 || r.Rate <= 0 ||
			!(math.Abs(r.Share-r.Rate/r.CeilingRate) <= 1e-9*r.Share) {
			t.Errorf("%+v", r)
		}
	}
}

// TestAttentionRows: forward, backward and their sum, with the FLOPs of the formulas.
func TestAttentionRows(t *testing.T) {
	c := quick(t)
	for _, a := range layer.Archs() {
		var rows []Row
		o := AttentionOptions{Arch: a.Name, Dim: 64, Head: 16, Seq: 32, Tokens: 70}
		if err := c.Attention(context.Background(), o, func(r Row) { rows = append(rows, r) }); err != nil {
			t.Fatal(err)
		}
		if len(rows) != 3 || rows[0].Shape["batch"] != 2 {
			t.Fatalf("%s: %+v", a.Name, rows)
		}
		if f, b, both := rows[0].Value, rows[1].Value, rows[2].Value; f <= 0 || b <= 0 || both < f || both < b {
			t.Errorf("%s: forward %g, backward %g, both %g ms", a.Name, f, b, both)
		}
		heads, dv := 4/a.Values, 16*a.Values
		flops := 2 * 2 * float64(heads) * 32 * 33 / 2 * float64(a.Maps*(16+dv))
		if got := rows[0].Rate * 1e12 * rows[0].Value / 1e3; !(math.Abs(got-flops) <= 1e-6*flops) {
			t.Errorf("%s: forward of %g FLOPs, want %g", a.Name, got, flops)
		}
	}
}

// TestDecodeRows: a row for the prompt and one for each batch; the bytes are weights and cache.
func TestDecodeRows(t *testing.T) {
	c := quick(t)
	for _, a := range layer.Archs() {
		var rows []Row
		o := DecodeOptions{Geometry: Geometry{Size: "nano", Arch: a.Name}, Batch: []int{1, 3}, Prompt: 20,
			Chunk: 8, Ops: true}
		if err := c.Decode(context.Background(), o, func(r Row) { rows = append(rows, r) }); err != nil {
			t.Fatal(err)
		}
		if len(rows) != 3 || rows[0].Shape["pass"] != "prefill" || rows[2].Shape["batch"] != 3 || rows[2].Value <= 0 {
			t.Fatalf("%s: %+v", a.Name, rows)
		}
		for _, row := range rows[1:] { // bytes of a step, and sequences in it
			bytes := row.Shape["step_bytes"].(float64)
			if got := row.Rate * 1e9 / row.Value *
				float64(row.Shape["batch"].(int)); !(math.Abs(got-bytes) <= 1e-6*bytes) {
				t.Errorf("%s: %g bytes of a step, want %g", row.Name, got, bytes)
			}
		}
		nano, err := recipe.Nano(a.Name)
		if err != nil {
			t.Fatal(err)
		}
		if per := nano.Model.PromptFLOPs(20) / 20; !(math.Abs(rows[0].Rate*1e12/rows[0].Value-per) <= 1e-6*per) {
			t.Errorf("%s: %g FLOPs of a prompt's token, want %g", a.Name, rows[0].Rate*1e12/rows[0].Value, per)
		}
		calls := 0.0
		for _, op := range rows[2].Ops {
			if strings.HasSuffix(op.Op, "AttentionCached") {
				calls += op.Calls
			}
		}
		if calls != 2 { // layers
			t.Errorf("%s: %g attentions in a step, want 2", a.Name, calls)
		}
		at := rows[1].Shape["mean_context"].(float64)
		r, err := recipe.Nano(a.Name)
		if err != nil {
			t.Fatal(err)
		}
		// Layers, keys and values of width 8.
		params, kv := float64(rows[1].Shape["params"].(int)), float64(2*(a.Keys+a.Values)*r.Model.KVHeads*8)
		// The prompt, its first token, the steps before the measured ones and half of these.
		if middle := 20 + 1 + float64(c.Warmup) + float64(c.Reps)/2; at != middle {
			t.Errorf("%s: mean context %g, want %g", a.Name, at, middle)
		}
		if want := 4 * (params + kv*at); rows[1].Shape["step_bytes"] != want {
			t.Errorf("%s: %v bytes at context %g, want %g", a.Name, rows[1].Shape["step_bytes"], at, want)
		}
	}
}

// TestWatch: a sample is a stretch of steps, with the ceiling after each, and disturbed steps are excluded.
func TestWatch(t *testing.T) {
	for _, s := range []stretch{{0, 1}, {2, 8}} {
		tokens, stopped := 0, false
		var measured, clock []int
		w := &watch{c: &Config{Warmup: 3, Reps: 4}, stretch: s, lengths: make([]int, 2),
			begin: func() { measured = append(measured, tokens) }}
		w.stop = func(error) { stopped = true }
		w.top = &Ceiling{Run: func() (float64, error) { measured = append(measured, tokens); return 1, nil }}
		for !stopped && tokens < 100 {
			tokens++
			before := w.last
			if w.event(0, infer.Event{ID: 1}); w.last != before {
				clock = append(clock, tokens)
			}
			w.event(1, infer.Event{ID: 1})
		}
		// All have started when the first's second token comes; three more are the warm-up.
		wantMeasured, wantClock := []int{5}, []int{2, 3, 4, 5}
		for i := range 4 {
			if s.skipped > 0 {
				wantClock = append(wantClock, 5+i*s.all()+s.skipped)
			}
			wantClock, wantMeasured = append(wantClock, 5+(i+1)*s.all()), append(wantMeasured, 5+(i+1)*s.all())
		}
		if !slices.Equal(measured, wantMeasured) || !slices.Equal(clock, wantClock) || len(w.got.seconds) != 4 {
			t.Errorf("%+v: measured at tokens %v, want %v; the clock was set at %v, want %v", s, measured, wantMeasured,
				clock, wantClock)
		}
	}
}

// taping is a device that records by remembering the function: enough to see whether steps are replayed.
type taping struct{ device.Device }

type tape struct{ run func() }

func (taping) Record(f func()) (device.Replay, error) { return tape{f}, nil }
func (t tape) Launch()                                { t.run() }
func (tape) Free() error                              { return nil }

// TestRecordedSteps: counting memory does not keep a device from recording, and the row says so.
func TestRecordedSteps(t *testing.T) {
	c := quick(t)
	for _, d := range []device.Device{c.Device, taping{c.Device}} {
		_, records := d.(device.Recorder)
		c.Device = d
		row, err := c.Train(context.Background(),
			TrainOptions{Geometry: Geometry{Size: "nano", Arch: layer.Archs()[0].Name}})
		if err != nil || row.Shape["recorded"] != records {
			t.Errorf("recorded %v on a device that records %v: %v", row.Shape["recorded"], records, err)
		}
	}
}
