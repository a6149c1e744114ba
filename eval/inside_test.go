package eval

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/tensor"
)

// runTask puts one task to models and gives their results.
func runTask(t *testing.T, task string, context int, set map[string]string, lms map[string]LM) map[string]*Result {
	t.Helper()
	tasks, err := Select([]string{task})
	if err != nil {
		t.Fatal(err)
	}
	var targets []Target
	for name, lm := range lms {
		targets = append(targets, Target{Name: name, LM: lm, Context: context})
	}
	ev, err := Run(t.Context(), targets, tasks, Options{Seed: 3, Shots: -1, Set: set})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*Result{}
	for i := range ev.Models {
		out[ev.Models[i].Name], _ = ev.Models[i].Result(task)
	}
	return out
}

// inside runs a task that looks into models on every architecture.
func inside(t *testing.T, task string, context int, set map[string]string) map[string]*Result {
	t.Helper()
	lms := map[string]LM{}
	for _, a := range layer.Archs() {
		lms[a.Name] = subject(t, ref.New(), a.Name, context)
	}
	return runTask(t, task, context, set, lms)
}

func detail[T any](t *testing.T, r *Result) T {
	t.Helper()
	var d T
	if err := json.Unmarshal(r.Detail, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// A prompt that fills the context leaves room for what free decoding may write; else its beginning, and the needle there, is dropped.
func TestNeedleLeavesRoom(t *testing.T) {
	j := prepared(t, lookup(t, "needle"), Options{Limit: 2}, 512)
	for _, g := range j.Gold {
		if n := j.plan.count(g.Context) + len(g.Text); n > 512 || n < 400 {
			t.Errorf("%d tokens of prompt and answer, the context is 512", n)
		}
	}
}

// planted answers needle prompts by reading them. It knows codes hidden in the first part of the prompt, and guesses the rest.
type planted struct {
	oracle
	knows float64
	g     *rand.Rand
}

func (p *planted) GenerateUntil(ctx context.Context, reqs []Generation) ([]string, error) {
	out := make([]string, len(reqs))
	for i, r := range reqs {
		cut := int(p.knows * float64(len(r.Prompt)))
		texts, err := p.oracle.GenerateUntil(ctx, []Generation{{Prompt: r.Prompt[:cut] + "\n" + r.Prompt[strings.LastIndexByte(r.Prompt, '\n'):]}})
		if err != nil {
			return nil, err
		}
		out[i] = texts[0]
	}
	return out, nil
}

// Choose looks up the city that stands last in the prompt, or guesses.
func (p *planted) Choose(_ context.Context, reqs []Choice) ([]int, error) {
	out := make([]int, len(reqs))
	for i, r := range reqs {
		city := r.Prompt[strings.LastIndexByte(r.Prompt, ' ')+1:]
		_, rest, _ := strings.Cut(r.Prompt, "The magic code is "+city+" ")
		out[i] = p.g.IntN(len(r.Options))
		for k, o := range r.Options {
			if p.knows == 1 && strings.HasPrefix(" "+rest, o) {
				out[i] = k
			}
		}
	}
	return out, nil
}

func TestNeedleGrid(t *testing.T) {
	lms := map[string]LM{"right": &planted{knows: 1}, "half": &planted{knows: 0.5}}
	got := runTask(t, "needle", 320, map[string]string{"needle.lengths": "160,320", "needle.needles": "1", "needle.queries": "1", "needle.depths": "0,0.25,0.9,1"}, lms)
	g := detail[NeedleGrid](t, got["half"])
	for d, row := range g.Cells {
		for n, m := range row {
			want := 1.0
			if d >= 2 { // what lies in the second half it cannot know
				want = 0
			}
			if m.Value != want || m.N != 10 {
				t.Errorf("depth %g, length %d: %+v, want %g of 10", g.Depths[d], g.Lengths[n], m, want)
			}
		}
	}
	if acc, _ := got["right"].Metric("acc"); acc.Value != 1 || acc.N != 80 {
		t.Errorf("right: %+v", acc)
	}
	if m := g.ByLength; len(m) != 2 || m[0].Value != 0.5 || m[1].N != 40 {
		t.Errorf("by length %+v", m)
	}
}

func TestNeedleConstrained(t *testing.T) {
	lms := map[string]LM{"right": &planted{knows: 1, g: rand.New(rand.NewPCG(1, 2))}, "guess": &planted{g: rand.New(rand.NewPCG(1, 2))}}
	got := runTask(t, "needle", 320, map[string]string{"needle.decoding": "constrained", "needle.samples": "40"}, lms)
	if acc, _ := got["right"].Metric("acc"); !near(acc.Value, 1, 1e-12) {
		t.Errorf("right: %+v", acc)
	}
	if acc, _ := got["guess"].Metric("acc"); !near(acc.Value, 0.25, 3*acc.StdErr) || acc.StdErr > 0.05 {
		t.Errorf("guessing among four: %+v", acc)
	}
}

func TestNeedleRefuses(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.txt")
	for set, want := range map[string]string{
		"needle.needles=0": "needles", "needle.queries=5": "queries", "needle.depths=1.5": "depths", "needle.lengths=900": "context", "needle.digits=0": "digits",
		"needle.lengths=60": "room", "needle.samples=0": "samples", "needle.decoding=x": "decoding", "needle.wording=x": "wording", "needle.haystack=" + empty: "haystack",
	} {
		key, value, _ := strings.Cut(set, "=")
		tasks, _ := Select([]string{"needle"})
		_, err := Run(context.Background(), []Target{{Name: "a", LM: &oracle{}, Context: 320}}, tasks, Options{Set: map[string]string{key: value}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", set, err)
		}
	}
}

// From the logged answers comes what the direct measurement gives.
func TestAttentionTask(t *testing.T) {
	for arch, r := range inside(t, "attention", 320, map[string]string{"attention.needles": "2", "attention.depths": "0,1", "attention.samples": "2"}) {
		d := detail[AttentionDetail](t, r)
		a := d.Results[0]
		if len(d.Results) != 1 || len(a.Absolute) != 2 || len(a.ByHead) != 2 || len(a.ByHead[0]) != 4 {
			t.Fatalf("%s: %+v", arch, d)
		}
		for _, s := range append(append([]Segments{}, a.Absolute...), a.ByHead[1]...) {
			if !near(s.total(), 1, 1e-9) {
				t.Errorf("%s: segments sum to %g", arch, s.total())
			}
		}
		m, _ := r.Metric("answer")
		if !near(m.Value, a.Answer.Value, 1e-12) || !near(m.StdErr, a.Answer.StdErr, 1e-12) || m.N != 4 {
			t.Errorf("%s: metric %+v, detail %+v", arch, m, a.Answer)
		}
	}
}

func TestOutliersTask(t *testing.T) {
	set := map[string]string{"outliers.length": "24", "outliers.tokens": "72"}
	for arch, r := range inside(t, "outliers", 320, set) {
		d := detail[OutlierResult](t, r)
		s := subject(t, ref.New(), arch, 320)
		p := &outlierProbe{dev: s.Model.Device()}
		opt := Options{Seed: 3, Set: set, context: 320, count: func(x string) int { return len(s.encode(x)) }}
		plan, err := opt.plan(&outlierTasks()[0])
		if err != nil {
			t.Fatal(err)
		}
		texts, length, err := plan.sequences(3)
		if err != nil {
			t.Fatal(err)
		}
		tokens := 0
		for _, text := range texts {
			b := s.read(text, length)
			tokens += b.T
			if err := s.Model.Inspect(b, p); err != nil {
				t.Fatal(err)
			}
		}
		if d.Tokens != tokens || tokens > 72 || d.Logits != p.logits.result() || d.Hidden != p.hidden.result() {
			t.Errorf("%s: %+v, in one go %d, %+v, %+v", arch, d, tokens, p.logits.result(), p.hidden.result())
		}
	}
}

func TestGeometryTask(t *testing.T) {
	for arch, r := range inside(t, "geometry", 320, map[string]string{"geometry.length": "16", "geometry.samples": "2"}) {
		d := detail[GeometryDetail](t, r)
		a, _ := layer.LookupArch(arch)
		if len(d.Layers) != 2 || len(d.Layers[0].Maps) != 2*a.Queries-1 {
			t.Fatalf("%s: %+v", arch, d)
		}
		for _, l := range d.Layers {
			last := l.Maps[len(l.Maps)-1]
			if last.Rank < 1 || last.Rank > 16 || l.HiddenRank < 1 || l.HiddenRank > 16 || last.Gap < 0 || last.Gap > 1 || l.Collapse <= 0 || l.Collapse > 1 {
				t.Errorf("%s: out of range: %+v", arch, l)
			}
			if (last.Negative > 0) != (a.Queries == 2) || l.Maps[0].Negative != 0 {
				t.Errorf("%s: negative mass %+v", arch, l.Maps)
			}
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
			if math.Abs(fine.Change.Value) > 1e-3 || math.Abs(coarse.Change.Value) <= math.Abs(fine.Change.Value) {
				t.Errorf("%s: 16 bits change the loss by %g, 2 bits by %g", arch, fine.Change.Value, coarse.Change.Value)
			}
		}
	}
}

func TestLowbitRefuses(t *testing.T) {
	tasks, err := Select([]string{"lowbit"})
	if err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]string{"task=x": "task is", "task=lowbit": "task is", "bits=1": "bits", "bits=0": "bits", "of=weights": "logits or cache",
		"per=column": "per", "with=x=3": "unknown", "with=x": "KEY=VALUE"} {
		key, value, _ := strings.Cut(set, "=")
		targets := []Target{{Name: "a", LM: subject(t, ref.New(), "diff", 320), Context: 320}}
		if _, err := Run(t.Context(), targets, tasks, Options{Shots: -1, Set: map[string]string{"lowbit." + key: value}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", set, err)
		}
	}
}

func TestThroughputTask(t *testing.T) {
	for arch, r := range inside(t, "throughput", 320, map[string]string{"throughput.lengths": "8,16", "throughput.tokens": "16", "throughput.reps": "2"}) {
		d := detail[ThroughputDetail](t, r)
		if len(d.Rows) != 2 || d.Rows[0].Batch != 2 || d.Rows[1].Forward.N != 2 || d.Rows[1].Forward.Value <= 0 || d.Rows[0].ForwardBackward.Value <= 0 {
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
		tasks, err := Select([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		set := map[string]string{name + ".samples": "1"}
		if name == "outliers" {
			set = map[string]string{"outliers.tokens": "320"}
		}
		_, err = Run(t.Context(), []Target{{Name: "a", LM: s, Context: 320}}, tasks, Options{Shots: -1, Set: set})
		if err == nil || !strings.Contains(err.Error(), "diverged") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// tileCheck holds rows that come in tiles to rows that come alone.
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
		}
		if next != v.Shape.T*(1+v.Maps) {
			p.t.Errorf("%d rows of %d tokens", next, v.Shape.T)
		}
	}
}

func TestTiles(t *testing.T) {
	onArchs(t, 150, func(t *testing.T, s *Subject) {
		if err := s.Model.Inspect(s.read(strings.Repeat("tiles of rows ", 20), 150), tileCheck{t}); err != nil {
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

// Looking at a long context takes memory that grows with its length and not with its square, on the device and on the host.
func TestLookingStreams(t *testing.T) {
	const T = 3000
	square := T * T * 4
	c := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() { c.Close() })
	s := subject(t, &narrow{c, t, square / 2}, "diff", T+100)
	opt := NeedleOptions{Needles: 2, Queries: 1, Samples: 1, Bytes: T, Seed: 5}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := s.look(needles(opt, 0.5, 0)[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.Model.Inspect(s.read(strings.Repeat("a b c. ", T), 1500), &outlierProbe{dev: c}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := int(after.TotalAlloc - before.TotalAlloc); used > square/2 {
		t.Errorf("the host allocated %d bytes, a map has %d", used, square)
	}
}
