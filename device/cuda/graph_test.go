package cuda

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/internal/cu/cutest"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/optim"
	"antiphase/tensor"
)

// eager hides that a device can record work.
type eager struct{ device.Device }

// kinds are the architectures, and DIFF V2's ablation, whose passes have an op of their own.
func kinds() (all []string) {
	for _, a := range layer.Archs() {
		all = append(all, a.Name)
	}
	return append(all, "diff2 across")
}

// ofKind sets the architecture and the pairing that a kind names.
func ofKind(kind string, c model.Config) model.Config {
	arch, pairing, _ := strings.Cut(kind, " ")
	c.Arch, c.Pairing = arch, layer.Pairing(pairing)
	return c
}

// small is a model of two layers.
func small(t testing.TB, d device.Device, kind string) *model.Model {
	t.Helper()
	return newModel(t, d, ofKind(kind, model.Config{Vocab: 50, Context: 32, Layers: 2, Dim: 24, Heads: 2, HeadDim: 8}))
}

func newModel(t testing.TB, d device.Device, c model.Config) *model.Model {
	t.Helper()
	m := modeltest.New(t, d, c, layer.Memory{Train: true}, 1)
	t.Cleanup(m.Free)
	return m
}

// text is a batch of tokens that a model can learn something from: each sequence counts on from a random id.
func text(r *rand.Rand, b, n int) *model.Batch {
	x := &model.Batch{B: b, T: n}
	for range b {
		id := r.IntN(40)
		for range n {
			x.IDs = append(x.IDs, int32(id))
			id = (id + 1 + r.IntN(2)) % 50
			x.Targets = append(x.Targets, int32(id))
		}
	}
	return x
}

// plan is what a step of steps does beside training: another length, documents kept apart, a target less (another
// scale), an evaluation larger than any step behind it.
var plan = []struct {
	T                   int
	apart, short, score bool
	recorded            bool // this step is a replay
}{
	{T: 12}, {T: 12, recorded: true}, {T: 12, recorded: true, score: true}, {T: 12, recorded: true},
	{T: 12, short: true}, {T: 12}, {T: 16}, {T: 16, recorded: true}, {T: 16, apart: true},
	{T: 16, apart: true, recorded: true, score: true},
	{T: 16, apart: true, recorded: true},
}

// steps trains by plan and gives everything that came of it, bit for bit.
func steps(t *testing.T, d device.Device, arch string) (rows []string, weights []byte) {
	m := small(t, d, arch)
	o := optim.New(d, m.Params, optim.Default())
	s := optim.NewStepper(m, o, 2)
	defer func() { s.Free(); o.Free() }()
	r := rand.New(rand.NewPCG(1, 2))
	for i, p := range plan {
		b := text(r, 4, p.T)
		if p.short {
			b.Targets[3] = -1
		}
		if p.apart {
			b.Starts = make([]int32, len(b.IDs))
			for j := range b.Starts {
				b.Starts[j] = int32(j % p.T / 5 * 5)
			}
		}
		loss, norm, err := s.Step(b, i+1, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, fmt.Sprint(loss, norm, m.Lambdas(nil)))
		if _, ok := d.(device.Recorder); ok {
			if got, err := s.Recorded(); got != p.recorded {
				t.Errorf("%s: step %d is recorded: %v, want %v (%v)", arch, i+1, got, p.recorded, err)
			}
		}
		if p.score {
			big := text(r, 6, 20)
			if err := m.Score(big); err != nil {
				t.Fatal(err)
			}
			losses := make([]float32, 120)
			m.Losses(losses)
			rows = append(rows, fmt.Sprint(losses, m.Lambdas(nil)))
		}
	}
	for _, p := range m.Params.List {
		x := make([]float32, p.Rows*p.Cols)
		p.Read(d, x)
		weights = fmt.Append(weights, x)
		device.ReadFloats(d, x, p.W)
		weights = fmt.Append(weights, x)
	}
	return rows, weights
}

// recordedSteps checks steps that are replayed against those that run op by op.
func recordedSteps(t *testing.T, d *Device, arch string) {
	want, wantW := steps(t, eager{d}, arch)
	got, gotW := steps(t, d, arch)
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s: row %d is\n%s recorded,\n%s op by op", arch, i, got[i], want[i])
		}
	}
	if !bytes.Equal(gotW, wantW) {
		t.Errorf("%s: weights differ", arch)
	}
	if err := d.Sync(); err != nil || d.graphs != 0 {
		t.Errorf("%s: %d graphs left, %v", arch, d.graphs, err)
	}
}

// TestRecordedSteps: a training run of graphs leaves the bits of one without, whatever comes between the steps.
func TestRecordedSteps(t *testing.T) {
	d := gpu(t, nil)
	for _, kind := range kinds() {
		recordedSteps(t, d, kind)
	}
}

// decodings runs prompts and decoding steps of changing numbers of sequences through a cache and gives all logits, bit
// for bit. An evaluation between takes the arena and grows scratch memory.
func decodings(t *testing.T, d device.Device, arch string) (out []string) {
	m := small(t, d, arch)
	c := m.NewCache(16, 4, 3, 8)
	defer c.Free()
	r := rand.New(rand.NewPCG(3, 4))
	at := [3]int32{}
	for page := range 15 {
		c.Assign(page%3, page/3, int32(15-page))
	}
	for i, rows := range []int{0, 2, 2, 2, 1, 3, 3, 1, 1, 0, 2, 3, 3} {
		var x model.Rows
		for s := range max(rows, 1) {
			for range 1 + 4*max(0, 1-rows) { // a step of no rows is a prompt of five
				x.IDs, x.Slots, x.Pos = append(x.IDs, int32(r.IntN(50))), append(x.Slots, int32(s)),
					append(x.Pos, at[s])
				at[s]++
			}
			x.Want = append(x.Want, int32(len(x.IDs)-1))
		}
		y := make([]float32, len(x.Want)*50)
		if err := c.Step(x, y); err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprint(y))
		if i == 6 {
			if err := m.Score(text(r, 6, 20)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

// recordedDecoding checks decoding steps that are replayed against those that run op by op, each a kernel of its own.
func recordedDecoding(t *testing.T, d *Device, arch string) {
	d.unfused = true
	want := decodings(t, eager{d}, arch)
	d.unfused = false
	got := decodings(t, d, arch)
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s: step %d gives\n%.300s recorded,\n%.300s op by op", arch, i, got[i], want[i])
		}
	}
	if err := d.Sync(); err != nil || d.graphs != 0 {
		t.Errorf("%s: %d graphs left, %v", arch, d.graphs, err)
	}
}

// TestRecordedDecoding: decoding by graphs gives the bits of decoding without.
func TestRecordedDecoding(t *testing.T) {
	d := gpu(t, nil)
	for _, kind := range kinds() {
		recordedDecoding(t, d, kind)
	}
}

// counted counts the attention ops that take rows together.
type counted struct {
	*Device
	calls int
}

func (c *counted) Attention(a *device.Attn)         { c.calls++; c.Device.Attention(a) }
func (c *counted) DiffAttention(a *device.DiffAttn) { c.calls++; c.Device.DiffAttention(a) }

func (c *counted) AttentionChunks(a *device.Attn, k *device.Cache, list tensor.Tensor, longest int) bool {
	ok := c.Device.AttentionChunks(a, k, list, longest)
	c.calls += int(flag(ok))
	return ok
}

func (c *counted) DiffAttentionChunks(a *device.DiffAttn, k *device.Cache, list tensor.Tensor, longest int) bool {
	ok := c.Device.DiffAttentionChunks(a, k, list, longest)
	c.calls += int(flag(ok))
	return ok
}

// promptTogether holds a prompt whose rows attend together, in two pieces, to the same prompt row by row, in bf16.
func promptTogether(t *testing.T, d *Device, c model.Config, first, second int) {
	var logits [2][]float32
	together := &counted{Device: d}
	for i, dev := range []device.Device{eager{d}, together} {
		m := newModel(t, dev, c)
		const page = 16
		pages := ceil(c.Context, page)
		cache := m.NewCache(pages, page, 1, pages)
		for p := range pages {
			cache.Assign(0, p, int32(pages-1-p))
		}
		r := rand.New(rand.NewPCG(5, 6))
		pos := int32(0)
		for _, n := range []int{first, second} {
			var x model.Rows
			for range n {
				x.IDs, x.Slots, x.Pos = append(x.IDs, int32(r.IntN(c.Vocab))), append(x.Slots, 0), append(x.Pos, pos)
				pos++
			}
			x.Want = []int32{0, int32(n) / 2, int32(n) - 1}
			y := make([]float32, 3*c.Vocab)
			if err := cache.Step(x, y); err != nil {
				t.Fatal(err)
			}
			logits[i] = append(logits[i], y...)
		}
		cache.Free()
	}
	worst := 0.0
	for i, x := range logits[0] {
		worst = max(worst, math.Abs(float64(logits[1][i]-x)))
	}
	t.Logf("%s: logits of rows together and one by one differ by %.3g at most", c.Arch, worst)
	if !(worst < 0.1) || together.calls != 2*c.Layers {
		t.Errorf("%s: logits differ by %g; rows attended together %d times, want %d", c.Arch, worst,
			together.calls, 2*c.Layers)
	}
}

// TestPrompt: at the tiled kernels' sizes.
func TestPrompt(t *testing.T) {
	d := gpu(t, nil)
	for _, kind := range kinds() {
		for _, d.wgmma = range []bool{false, d.info.Major == 9} {
			promptTogether(t, d, ofKind(kind,
				model.Config{Vocab: 500, Context: 512, Layers: 3, Dim: 256, Heads: 4, KVHeads: 2, HeadDim: 64}), 301,
				150)
		}
	}
}

// TestDecodingIsOneLaunch: the third step of so many sequences asks the driver for one graph and nothing else.
func TestDecodingIsOneLaunch(t *testing.T) {
	for _, kind := range kinds() {
		d, drv := fakeDevice(t)
		m := small(t, d, kind)
		c := m.NewCache(8, 4, 2, 8)
		x := model.Rows{IDs: []int32{1, 2}, Slots: []int32{0, 1}, Pos: []int32{0, 0}, Want: []int32{0, 1}}
		y := make([]float32, 100)
		step := func() {
			x.Pos[0]++
			if err := c.Step(x, y); err != nil {
				t.Fatal(err)
			}
		}
		step()
		step()
		drv.Reset()
		if allocs := testing.AllocsPerRun(10, step); allocs != 0 || outside(drv) != 0 || drv.Graphs != 11 {
			t.Errorf("%s: 11 steps launched %d graphs and %d other calls, with %v allocations each", kind, drv.Graphs,
				outside(drv), allocs)
		}
		c.Free()
	}
}

// TestStepIsOneLaunch: from the third on, a training step asks the driver for one graph and nothing else, and allocates
// nothing.
func TestStepIsOneLaunch(t *testing.T) {
	for _, kind := range kinds() {
		d, drv := fakeDevice(t)
		m := small(t, d, kind)
		o := optim.New(d, m.Params, optim.Default())
		s := optim.NewStepper(m, o, 1)
		b := text(rand.New(rand.NewPCG(1, 2)), 4, 16)
		n := 0
		step := func() {
			n++
			if _, _, err := s.Step(b, n, 0.01); err != nil {
				t.Fatal(err)
			}
		}
		step()
		ops := len(drv.Launches) + len(drv.Products) + len(drv.Clears) + len(drv.Moves)
		step()
		if drv.Recorded != ops {
			t.Errorf("%s: %d calls recorded, %d run", kind, drv.Recorded, ops)
		}
		drv.Reset()
		if allocs := testing.AllocsPerRun(10, step); allocs != 0 {
			t.Errorf("%s: a step allocates %v times", kind, allocs)
		}
		if outside(drv) != 0 || drv.Graphs != 11 {
			t.Errorf("%s: 11 steps launched %d graphs and %d other calls", kind, drv.Graphs, outside(drv))
		}
		s.Free()
		o.Free()
	}
}

// outside counts what was asked of the driver outside graphs.
func outside(d *cutest.Driver) int {
	return len(d.Launches) + len(d.Products) + len(d.Clears) + len(d.Moves)
}
