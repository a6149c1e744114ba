package train

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"antiphase/checkpoint"
	"antiphase/data"
	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/dist"
	"antiphase/dist/disttest"
	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
	"antiphase/metrics"
	"antiphase/recipe"
	"antiphase/tensor"
)

// A layout prints as it is read, counts its ranks and parts, and refuses what it cannot divide.
func TestLayouts(t *testing.T) {
	r := nano(t, "diff", "train.batch=6", "train.micro_batch=1")
	for _, x := range []struct {
		l             Layout
		text          string
		ranks, shards int
		bad           string
	}{
		{Layout{}, "dp=1,tp=1,zero=0", 1, 1, ""},
		{Layout{Data: 3}, "dp=3,tp=1,zero=0", 3, 1, ""},
		{Layout{Data: 3, Tensor: 2, Shard: true}, "dp=3,tp=2,zero=1", 6, 3, ""},
		{Layout{Data: 4}, "dp=4,tp=1,zero=0", 4, 1, "dp=4 does not divide train.batch = 6"},
		{Layout{Data: 1, Tensor: 3}, "dp=1,tp=3,zero=0", 3, 1, "3"},
	} {
		err := x.l.Check(r)
		if x.l.String() != x.text || x.l.Ranks() != x.ranks || x.l.shards() != x.shards ||
			(err == nil) != (x.bad == "") || err != nil && !strings.Contains(err.Error(), x.bad) {
			t.Errorf("%v: %d ranks, %d shards, %v; want %+v", x.l, x.l.Ranks(), x.l.shards(), err, x)
		}
	}
}

// Bytes on the wire by hand: a ring sends 2(n−1)/n of what it sums and (n−1)/n of what it scatters or gathers.
func TestWireByHand(t *testing.T) {
	types := device.Types{Act: tensor.BF16, Stat: tensor.F32}
	r := nano(t, "diff", "train.batch=6", "train.micro_batch=1") // 2 layers of width 32
	rows := float64(6 * r.Train.SeqLen)
	params := float64(r.Model.PartCount(1))
	half := float64(r.Model.PartCount(2))
	blocks := r
	blocks.Train.Recompute = "blocks"
	for _, x := range []struct {
		r                      recipe.Recipe
		l                      Layout
		gradients, activations float64
	}{
		{r, Layout{}, 0, 0},
		{r, Layout{Data: 2}, 2 * 1. / 2 * 4 * params, 0},
		{r, Layout{Data: 3}, 2 * 2. / 3 * 4 * params, 0},
		{r, Layout{Data: 3, Shard: true}, 2. / 3 * (4 + 2) * params, 0},
		// Ten sums of a row of 32 and two numbers more, each 2·1/2 of its bytes.
		{r, Layout{Tensor: 2}, 0, rows * 4 * (10*32 + 2)},
		{blocks, Layout{Tensor: 2}, 0, rows * 4 * (12*32 + 2)},
		{r, Layout{Data: 2, Tensor: 2}, 4 * half, rows / 2 * 4 * (10*32 + 2)},
	} {
		w := WireOf(x.r, types, x.l)
		if diff := math.Abs(w.Gradients - x.gradients); !(diff <= 1e-6) || w.Activations != x.activations ||
			w.Sum() != w.Gradients+w.Activations {
			t.Errorf("%v: %+v, want %g and %g", x.l, w, x.gradients, x.activations)
		}
	}
}

// What a rank reports arrives with its kind.
func TestToldErrors(t *testing.T) {
	other := errors.New("other")
	for _, err := range []error{nil, other, fmt.Errorf("x: %w", checkpoint.ErrNoSpace),
		fmt.Errorf("x: %w", checkpoint.ErrCommitted)} {
		var m told
		m.failed(err)
		got := m.error(3)
		if (got == nil) != (err == nil) {
			t.Errorf("%v became %v", err, got)
		}
		for _, kind := range []error{checkpoint.ErrNoSpace, checkpoint.ErrCommitted} {
			if errors.Is(got, kind) != errors.Is(err, kind) {
				t.Errorf("%v became %v", err, got)
			}
		}
		if err != nil && !strings.Contains(got.Error(), "rank 3: "+err.Error()) {
			t.Errorf("%v became %v", err, got)
		}
	}
}

type listed struct {
	texts []string
	err   error
}

func (l listed) Name() string { return "listed" }

func (l listed) Documents(context.Context) iter.Seq2[data.Document, error] {
	return func(yield func(data.Document, error) bool) {
		for _, s := range l.texts {
			if !yield(data.Document{Text: s}, nil) {
				return
			}
		}
		if l.err != nil {
			yield(data.Document{}, l.err)
		}
	}
}

// A tokenizer is trained on the same number of documents of each source, rounded up, or on all of them.
func TestTextsAreShared(t *testing.T) {
	bad := errors.New("bad")
	src := []data.Source{listed{texts: []string{"a1", "a2", "a3"}}, listed{texts: []string{"b1"}},
		listed{texts: []string{"c1", "c2", "c3"}, err: bad}}
	for _, x := range []struct {
		n    int
		want string
		err  error
	}{{0, "a1 a2 a3 b1 c1 c2 c3", bad}, {1, "a1 b1 c1", nil}, {3, "a1 b1 c1", nil}, {4, "a1 a2 b1 c1 c2", nil},
		{12, "a1 a2 a3 b1 c1 c2 c3", bad}} {
		var err error
		got := slices.Collect(texts(context.Background(), src, x.n, &err))
		if strings.Join(got, " ") != x.want || err != x.err {
			t.Errorf("%d of %d: %q, %v; want %q, %v", x.n, len(src), got, err, x.want, x.err)
		}
	}
}

// The window keeps the last 101 values; median and deviation are those of a plain sort.
func TestWindow(t *testing.T) {
	var w window
	var all []float64
	g := rand.New(rand.NewPCG(1, 2))
	for n := range 350 {
		x := g.NormFloat64()
		w.add(x)
		all = append(all, x)
		last := slices.Clone(all[max(0, len(all)-101):])
		mid, dev, ok := w.median()
		if ok != (n+1 >= 20) {
			t.Fatalf("%d values: %v", n+1, ok)
		}
		if !ok {
			continue
		}
		slices.Sort(last)
		want := last[len(last)/2]
		for i := range last {
			last[i] = max(last[i]-want, want-last[i])
		}
		slices.Sort(last)
		if mid != want || dev != last[len(last)/2] {
			t.Fatalf("%d values: %g ± %g, want %g ± %g", n+1, mid, dev, want, last[len(last)/2])
		}
	}
}

// Both sides of every warning's limit, after 30 steps at norm 1 whose losses are 2 and 2 ± a deviation.
func TestWarningLimits(t *testing.T) {
	const small, large = 1. / 128, 1. / 16 // 8 of the first are less than a tenth of the loss, 8 of the second more
	for _, x := range []struct {
		deviation float64
		row       Row
		want      metrics.Warning
	}{
		{small, Row{Loss: 2, GradNorm: 1, LambdaMin: 0, LambdaMax: 1.5}, 0},
		{small, Row{Loss: 2, GradNorm: 1, LambdaMin: -0.001, LambdaMax: 1}, metrics.LambdaRange},
		{small, Row{Loss: 2, GradNorm: 1, LambdaMin: 0, LambdaMax: 1.501}, metrics.LambdaRange},
		{small, Row{Loss: 2, GradNorm: 10}, 0}, {small, Row{Loss: 2, GradNorm: 10.01}, metrics.GradientSpike},
		{small, Row{Loss: 2.199, GradNorm: 1}, 0}, {small, Row{Loss: 2.201, GradNorm: 1}, metrics.LossSpike},
		{large, Row{Loss: 2.5, GradNorm: 1}, 0}, {large, Row{Loss: 2.501, GradNorm: 1}, metrics.LossSpike},
		{small, Row{Loss: 1, GradNorm: 0.01}, 0},
		{small, Row{Loss: 9, GradNorm: 99, LambdaMax: 2},
			metrics.LossSpike | metrics.GradientSpike | metrics.LambdaRange},
	} {
		var w watch
		for i := range 30 {
			w.judge(&Row{Loss: 2 + x.deviation*float64(i%3-1), GradNorm: 1},
				func(s string, args ...any) { t.Errorf(s, args...) })
		}
		said := 0
		for range 2 {
			row := x.row
			w.judge(&row, func(string, ...any) { said++ })
			if row.Warn != x.want {
				t.Errorf("%+v: warnings %v, want %v", x.row, row.Warn.Names(), x.want.Names())
			}
		}
		if n := len(x.want.Names()); said != n { // once, though it lasts
			t.Errorf("%+v: said %d times, want %d", x.row, said, n)
		}
		if want := 2 * min(1, len(x.want.Names())); w.steps != want {
			t.Errorf("%+v: %d steps counted, want %d", x.row, w.steps, want)
		}
	}
}

// No rank is done before the last checkpoint is.
func TestRanksWaitForTheLastCheckpoint(t *testing.T) {
	r := nano(t, "diff", "train.batch=4", "train.micro_batch=2", "train.steps=2", "train.save_every=0",
		"train.eval_batches=0")
	var saved atomic.Bool
	dir, table := t.TempDir(), newFacts(2)
	err := disttest.NewWorld(2, disttest.Options{}).Run(func(c dist.Comm) error {
		d := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
		defer d.Close()
		opt := Options{Dir: dir, Device: d, Ranks: member{c, table}}
		opt.fs = &vfstest.Faulty{FS: vfs.OS{}, Hook: func(op vfstest.Op) error {
			if op.Kind == "rename" && strings.HasSuffix(op.Path, "step-00000002") {
				time.Sleep(50 * time.Millisecond) // long enough for the other rank to leave
				saved.Store(true)
			}
			return nil
		}}
		_, err := Run(context.Background(), r, opt)
		if !saved.Load() {
			t.Errorf("rank %d ended before the last checkpoint was there", c.Rank())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// live is a device that counts the buffers in use.
type live struct {
	device.Device
	n int
}

func (d *live) Alloc(bytes int) *tensor.Buffer { d.n++; return d.Device.Alloc(bytes) }

func (d *live) Free(b *tensor.Buffer) {
	if b != nil {
		d.n--
	}
	d.Device.Free(b)
}

// A measured step is one that trains: it takes time, and its device gets everything back.
func TestMeasure(t *testing.T) {
	host := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
	defer host.Close()
	d := &live{Device: host}
	if took, err := Measure(t.Context(), d, nano(t, "diff")); err != nil || took <= 0 || d.n != 0 {
		t.Errorf("%v, %v, %d buffers are left", took, err, d.n)
	}
	for name, want := range map[string]bool{"model.safetensors": true, "model-rank-1.safetensors": true,
		"optimizer.safetensors": false, "model.json": false, "state.json": false} {
		if IsWeights(name) != want {
			t.Errorf("%s: weights %v", name, !want)
		}
	}
}

// The clock divides time among step, evaluation and saving; the estimate of the rest leaves the first step out.
func TestClock(t *testing.T) {
	at := time.Unix(1.7e9, 0)
	c := clock{now: func() time.Time { return at }, peak: 1e9}
	r := nano(t, "diff", "train.steps=100", "train.micro_batch=1")
	c.start(r)
	tokens, want := float64(r.Train.Batch*r.Train.SeqLen), 0.0
	wall := 0.0
	for i, ms := range []float64{5000, 100, 200, 300, 50} {
		at = at.Add(time.Duration(ms/2) * time.Millisecond)
		c.lap(&c.step)
		eval, save := i == 1, i >= 3
		if eval {
			at = at.Add(time.Second)
			c.lap(&c.eval)
			wall++
		}
		if save {
			at = at.Add(3 * time.Second)
			c.lap(&c.save)
			wall += 3
		}
		at = at.Add(time.Duration(ms/2) * time.Millisecond)
		wall += ms / 1000
		var row Row
		c.fill(&row, State{Step: i + 1, Tokens: 7}, r)
		switch i {
		case 0, 1:
			want = ms
		default:
			want = 0.9*want + 0.1*ms
		}
		near := func(what string, got, want float64) {
			if !(math.Abs(got-want) <= 1e-9*math.Abs(want)) {
				t.Errorf("row %d: %s is %g, want %g", i+1, what, got, want)
			}
		}
		near("the step", row.StepMS, ms)
		near("tokens per second", row.TokS, tokens/(ms/1000))
		near("the rest", row.ETA, want/1000*float64(100-i-1))
		near("the time so far", row.Wall, wall)
		near("the use of the machine", row.MFU, row.TokS*c.flops/1e9)
		near("the share", row.Percent, float64(i+1))
		near("the date", row.Time, 1.7e9+wall)
		if math.IsNaN(row.EvalS) == eval || math.IsNaN(row.SaveS) == save || eval && row.EvalS != 1 || save &&
			row.SaveS != 3 {
			t.Errorf("row %d: evaluation %g s, saving %g s", i+1, row.EvalS, row.SaveS)
		}
		if row.Step != i+1 || row.Total != 100 || row.Tokens != 7 {
			t.Errorf("row %+v", row)
		}
	}
}

// Room is asked for what will be written: as many as are kept and one more, less those there are, and none for a run
// that is finished.
func TestRoomByStep(t *testing.T) {
	opt := options(t, t.TempDir())
	r := nano(t, "diff", "train.steps=3", "train.keep_last=2", "train.save_every=1")
	size := (&run{recipe: r}).checkpointBytes()
	opt.fs = small{free: 3 * size}
	if _, err := Run(context.Background(), r, opt); err != nil {
		t.Fatal(err)
	}
	opt.fs = small{free: 0}
	if _, err := Run(context.Background(), r, opt); err != nil {
		t.Errorf("a finished run on a full disk: %v", err)
	}
	found, err := filepath.Glob(filepath.Join(opt.Dir, "checkpoints", "step-*"))
	if err != nil || len(found) != 2 {
		t.Fatalf("checkpoints %v, %v", found, err)
	}
	for i, dir := range append(found, opt.Dir) { // each can be opened by itself; the folder is the newest
		s, err := Open(dir, func(s string) { t.Error(s) })
		if err != nil || s.State.Step != []int{2, 3, 3}[i] {
			t.Fatalf("%s: %+v, %v", dir, s, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, x := range []struct {
		steps, keep string
		free        int64
		good        bool
	}{
		{"4", "1", size - 1, false}, {"4", "2", size - 1, false}, // two are there; one more is written whatever is kept
		{"5", "3", 2*size - 1, false}, {"5", "2", size - 1, false}, {"4", "2", size, true},
	} {
		opt.fs = small{free: x.free}
		longer := nano(t, "diff", "train.steps="+x.steps, "train.keep_last="+x.keep, "train.save_every=1")
		if _, err := Run(context.Background(), longer, opt); (err == nil) != x.good {
			t.Errorf("%+v, a checkpoint has %d bytes: %v", x, size, err)
		}
	}
}
