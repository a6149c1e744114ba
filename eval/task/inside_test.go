package task

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/ref"
	"antiphase/eval"
	"antiphase/layer"
	"antiphase/tensor"
)

// inside runs a task that looks into models on every architecture.
func inside(t *testing.T, name string, context int, set map[string]string) map[string]*eval.Result {
	t.Helper()
	var targets []eval.Target
	for _, a := range layer.Archs() {
		targets = append(targets, modelOf(a.Name, subject(t, ref.New(), a.Name, context), context))
	}
	for i := range targets { // models without a hash must be told apart
		targets[i].Hash = targets[i].Name
	}
	return run(t, *lookup(t, name), eval.Options{Seed: 3, Shots: -1, Set: set}, targets...)
}

// The metrics are the means of what the details hold.
func TestAttentionTask(t *testing.T) {
	for arch, r := range inside(t, "attention", 320,
		map[string]string{"attention.needles": "2", "attention.depths": "0,1", "attention.samples": "2"}) {
		d := detail[AttentionDetail](t, r)
		a := d.Results[0]
		maps := 1
		if x, _ := layer.LookupArch(arch); x.Maps == 2 {
			maps = 2
		}
		if len(d.Results) != 1 || len(a.ByDepth) != 2 || len(a.ByHead) != 2 || len(a.ByHead[0]) != 4 || a.Maps != maps {
			t.Fatalf("%s: %+v", arch, d)
		}
		m, _ := r.Metric("answer")
		if want := (a.ByDepth[0].Magnitude.Answer + a.ByDepth[1].Magnitude.Answer) / 2; !near(m.Value, want, 1e-12) ||
			m.N != 4 {
			t.Errorf("%s: metric %+v, detail %g", arch, m, want)
		}
		second, ok := r.Metric("a2_noise")
		if ok != (maps == 2) || ok && !near(second.Value, (a.ByDepth[0].A2.Noise()+a.ByDepth[1].A2.Noise())/2, 1e-12) {
			t.Errorf("%s: A2 apart: %+v, %v", arch, second, ok)
		}
	}
}

func TestOutliersTask(t *testing.T) {
	set := map[string]string{"outliers.length": "24", "outliers.tokens": "72"}
	for arch, r := range inside(t, "outliers", 320, set) {
		d := detail[OutlierResult](t, r)
		s := subject(t, ref.New(), arch, 320)
		p := &outlierProbe{dev: s.Model.Device()}
		opt := eval.Options{Seed: 3, Set: set}
		opt.Measure([]eval.Target{modelOf("m", s, 320)})
		j, err := opt.Prepare(context.Background(), lookup(t, "outliers"))
		if err != nil {
			t.Fatal(err)
		}
		texts, length, _, err := sequences(t.Context(), j.Plan, 3)
		if err != nil {
			t.Fatal(err)
		}
		tokens := 0
		for _, text := range texts {
			b := read(s, text, length)
			tokens += b.T
			if err := s.Model.Inspect(b, p); err != nil {
				t.Fatal(err)
			}
		}
		if used := r.Config["used_tokens"]; used != tokens {
			t.Errorf("%s: the result says %v tokens, %d were looked at", arch, used, tokens)
		}
		if d.Tokens != tokens || tokens > 72 || d.Logits != p.logits.result() || d.Hidden != p.hidden.result() {
			t.Errorf("%s: %+v, in one go %d, %+v, %+v", arch, d, tokens, p.logits.result(), p.hidden.result())
		}
	}
}

func TestGeometryTask(t *testing.T) {
	for arch, r := range inside(t, "geometry", 320,
		map[string]string{"geometry.length": "16", "geometry.samples": "2"}) {
		d := detail[GeometryDetail](t, r)
		a, _ := layer.LookupArch(arch)
		if len(d.Layers) != 2 || len(d.Layers[0].Maps) != 2*a.Maps-1 {
			t.Fatalf("%s: %+v", arch, d)
		}
		negative := 0.0
		for _, l := range d.Layers {
			last := l.Maps[len(l.Maps)-1]
			if last.Rank < 1 || last.Rank > 16 || l.HiddenRank < 1 || l.HiddenRank > 16 || last.Gap < 0 ||
				last.Gap > 1 || l.Collapse <= 0 || l.Collapse > 1 {
				t.Errorf("%s: out of range: %+v", arch, l)
			}
			if l.Maps[0].Negative != 0 {
				t.Errorf("%s: a softmax map of negative mass: %+v", arch, l.Maps)
			}
			negative += last.Negative // whether one layer has any is chance where its λ is small
		}
		if (negative > 0) != (a.Maps == 2) {
			t.Errorf("%s: negative mass %g", arch, negative)
		}
	}
}

func TestLowbitTask(t *testing.T) {
	set := map[string]string{"lowbit.task": "lm", "lowbit.with": "pieces=2;length=40", "lowbit.bits": "16,2"}
	for arch, r := range inside(t, "lowbit", 48, set) {
		d := detail[LowbitDetail](t, r)
		if len(d.Rows) != 4 || d.Exact.N != 2 || d.Metric != "loss" {
			t.Fatalf("%s: %+v", arch, d)
		}
		for i := 0; i < 4; i += 2 { // of logits, then of the cache
			fine, coarse := d.Rows[i], d.Rows[i+1]
			if !near(fine.Change.Value, 0, 1e-3) || math.Abs(coarse.Change.Value) <= math.Abs(fine.Change.Value) {
				t.Errorf("%s: 16 bits change the loss by %g, 2 bits by %g", arch, fine.Change.Value,
					coarse.Change.Value)
			}
		}
	}
}

func TestLowbitRefuses(t *testing.T) {
	for set, want := range map[string]string{"task=x": "task is", "task=lowbit": "task is", "task=noise": "task is",
		"bits=1": "bits", "bits=0": "bits", "of=weights": "cache or both",
		"per=column": "per", "with=x=3": "unknown", "with=x": "KEY=VALUE", "metric=x": "metric is"} {
		key, value, _ := strings.Cut(set, "=")
		targets := []eval.Target{modelOf("a", subject(t, ref.New(), "diff", 320), 320)}
		if _, err := eval.Run(t.Context(), targets, []eval.Task{*lookup(t, "lowbit")},
			eval.Options{Shots: -1, Set: map[string]string{"lowbit." + key: value}}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", set, err)
		} else if in := new(eval.InputError); !errors.As(err, &in) || !in.Usage {
			t.Errorf("%s: %v is not an error of the setting", set, err)
		}
	}
}

func TestThroughputTask(t *testing.T) {
	for arch, r := range inside(t, "throughput", 320,
		map[string]string{"throughput.lengths": "8,16", "throughput.tokens": "16", "throughput.reps": "2"}) {
		d := detail[ThroughputDetail](t, r)
		if len(d.Rows) != 2 || d.Rows[0].Batch != 2 || d.Rows[1].Forward.N != 2 || d.Rows[1].Forward.Value <= 0 ||
			d.Rows[0].ForwardBackward.Value <= 0 {
			t.Errorf("%s: %+v", arch, d)
		}
	}
}

// A model that has diverged is named as such, before anything is written.
func TestInsideOfDiverged(t *testing.T) {
	s := subject(t, ref.New(), "diff", 320)
	p := s.Model.Params.Lookup("layers.0.norm1.weight")
	nan := make([]float64, p.W.Len())
	for i := range nan {
		nan[i] = math.NaN()
	}
	device.WriteFloats(s.Model.Device(), p.W, nan)
	for _, name := range []string{"attention", "outliers", "geometry"} {
		set := map[string]string{name + ".samples": "1"}
		if name == "outliers" {
			set = map[string]string{"outliers.tokens": "320"}
		}
		_, err := eval.Run(t.Context(), []eval.Target{modelOf("a", s, 320)}, []eval.Task{*lookup(t, name)},
			eval.Options{Shots: -1, Set: set})
		if err == nil || !strings.Contains(err.Error(), "diverged") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// tileCheck checks rows that come in tiles against rows that come alone.
type tileCheck struct{ t *testing.T }

func (p tileCheck) Hidden(int, tensor.Tensor) {}

func (p tileCheck) Attention(v layer.View) {
	tiles, rows := v.TileReader(), v.RowReader(v.Shape.T)
	defer tiles.Free()
	defer rows.Free()
	for h := range v.Shape.Heads {
		next := 0
		same := func(t int, got, want []float64) {
			if t%v.Shape.T != next%v.Shape.T || len(got) != t+1 {
				p.t.Fatalf("row %d of %d entries comes where row %d should", t, len(got), next)
			}
			next++
			for s, x := range got {
				if !near(x, want[s], 1e-12) {
					p.t.Fatalf("layer %d, head %d, row %d, column %d: %g, alone %g", v.Layer, h, t, s, x, want[s])
				}
			}
		}
		tiles.Scores(h, 0, func(t int, row []float64, lam float64) {
			same(t, row, rows.Scores(h, 0, t))
			if lam != rows.Lambda(t, h) {
				p.t.Errorf("row %d: λ %g, alone %g", t, lam, rows.Lambda(t, h))
			}
		})
		for m := range v.Maps {
			tiles.Map(h, m, 0, true, func(t int, row []float64) { same(t, row, rows.Map(h, m, 0, t, true)) })
			each := make([][]float64, v.Shape.T)
			tiles.Each(h, m, 0, true, func(worker, t int, row []float64) {
				if worker >= tiles.Workers() || each[t] != nil {
					p.t.Errorf("row %d comes twice, or to worker %d of %d", t, worker, tiles.Workers())
				}
				each[t] = slices.Clone(row)
			})
			next -= v.Shape.T
			for t, row := range each {
				same(t, row, rows.Map(h, m, 0, t, true))
			}
		}
		if next != v.Shape.T*(1+v.Maps) {
			p.t.Errorf("%d rows of %d tokens", next, v.Shape.T)
		}
	}
}

func TestTiles(t *testing.T) {
	onArchs(t, 150, func(t *testing.T, s *eval.Subject) {
		if err := s.Model.Inspect(read(s, strings.Repeat("tiles of rows ", 20), 150), tileCheck{t}); err != nil {
			t.Fatal(err)
		}
	})
}

// narrow is a device that has no room for a map of T×T numbers, or of more than most bytes at once.
type narrow struct {
	device.Device
	t    *testing.T
	most int
}

func (d *narrow) Alloc(bytes int) *tensor.Buffer {
	if bytes > d.most {
		d.t.Errorf("asked for %d bytes at once, there are %d", bytes, d.most)
	}
	return d.Device.Alloc(bytes)
}

// Looking at a long context takes memory that grows with its length and not with its square, on the device and on the
// host.
func TestLookingStreams(t *testing.T) {
	const T = 3000
	square := T * T * 4
	c := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() { c.Close() })
	s := subject(t, &narrow{c, t, square / 2}, "diff", T+100)
	long := data.NewNeedle(rand.New(rand.NewPCG(5, 0)), data.NeedleOptions{Needles: 2, Depth: 0.5, Bytes: T})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := look(s, long); err != nil {
		t.Fatal(err)
	}
	if err := s.Model.Inspect(read(s, strings.Repeat("a b c. ", T), 1500), &outlierProbe{dev: c}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := int(after.TotalAlloc - before.TotalAlloc); used > square/2 {
		t.Errorf("the host allocated %d bytes, a map has %d", used, square)
	}
}
