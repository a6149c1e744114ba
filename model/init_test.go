package model

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/tensor"
)

// TestInitStatistics: initial weights have the deviations of PyTorch's defaults, 1/√(3·in) for a matrix (uniform within
// ±1/√in), 1/√dim for the embedding and the output, 0.1 for λ; output projections are smaller by √(2·layers) where
// asked for; gains are 1, biases 0.
func TestInitStatistics(t *testing.T) {
	for _, residual := range []bool{false, true} {
		for _, a := range layer.Archs() {
			c, err := Config{Arch: a.Name, Vocab: 300, Context: 16, Layers: 3, Dim: 96, Heads: 4, HeadDim: 16,
				FFN: 160, Bias: true, InitResidual: residual}.Complete()
			if err != nil {
				t.Fatal(err)
			}
			m := newModel(t, ref.New(), c)
			for _, p := range m.Params.List {
				mean, dev := moments(tensor.Host[float64](p.W))
				wantMean, wantDev := 0.0, 0.0
				switch {
				case strings.HasSuffix(p.Name, ".bias"):
				case p.Kind == layer.Gain:
					wantMean = 1
				case p.Name == "embed.weight" || p.Name == "head.weight":
					wantDev = 1 / math.Sqrt(float64(c.Dim))
				case strings.Contains(p.Name, "lambda_"):
					wantDev = 0.1
				default:
					wantDev = 1 / math.Sqrt(3*float64(p.Cols))
					if residual && (strings.HasSuffix(p.Name, "attn.out.weight") ||
						strings.HasSuffix(p.Name, "mlp.down.weight")) {
						wantDev /= math.Sqrt(2 * float64(c.Layers))
					}
				}
				within := 6 / math.Sqrt(float64(p.Rows*p.Cols)) // of the deviation: six standard errors
				if !(math.Abs(mean-wantMean) <= within*wantDev+1e-12) ||
					!(math.Abs(dev-wantDev) <= within*wantDev+1e-12) {
					t.Errorf("%s, residual %v: %s has mean %.4g and deviation %.4g, want %.4g and %.4g", a.Name,
						residual, p.Name, mean, dev, wantMean, wantDev)
				}
			}
		}
	}
}

func moments(x []float64) (mean, dev float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		dev += (v - mean) * (v - mean) / float64(len(x))
	}
	return mean, math.Sqrt(dev)
}

// TestInitFollowsSeed: the seed decides every random weight, and the same seed repeats.
func TestInitFollowsSeed(t *testing.T) {
	c := configs(t)["diff/base"]
	read := func(seed uint64) map[string]string {
		m := newModel(t, ref.New(), c)
		m.Init(seed)
		out := map[string]string{}
		for _, p := range m.Params.List {
			if p.Std > 0 {
				out[p.Name] = fmt.Sprint(tensor.Host[float64](p.W))
			}
		}
		return out
	}
	one, two := read(1), read(2)
	for name, x := range read(1) {
		if x != one[name] {
			t.Errorf("%s differs from itself", name)
		}
		if x == two[name] {
			t.Errorf("%s is the same for another seed", name)
		}
		for other, y := range one {
			if other != name && len(x) > 40 && x == y {
				t.Errorf("%s and %s are the same", name, other)
			}
		}
	}
}

// TestYarnTemperature: the published formula, 0.1·ln(factor) + 1, and the ratio where a file states both scales.
func TestYarnTemperature(t *testing.T) {
	for _, c := range []struct {
		s    RopeScaling
		want float64
	}{
		{RopeScaling{Factor: 4}, 1.1386294361119891},
		{RopeScaling{Factor: 1}, 1},
		{RopeScaling{Factor: 40, MScale: 1, MScaleAllDim: 1}, 1},
		{RopeScaling{Factor: 40, MScale: 0.707, MScaleAllDim: 1}, 1.2608032110815263 / 1.3688879454113936},
		{RopeScaling{Factor: 40, MScale: 0.707}, 1.3688879454113936},
		{RopeScaling{Factor: 40, MScaleAllDim: 0.707}, 1.3688879454113936}, // one scale alone counts for nothing
		{RopeScaling{Factor: 4, AttentionFactor: 0.7}, 0.7},
	} {
		if got := yarnTemperature(&c.s); !(math.Abs(got-c.want) <= 1e-6) {
			t.Errorf("%+v: %.10g, want %.10g", c.s, got, c.want)
		}
	}
}

// replays is a device that records: what it recorded is stale once memory has moved.
type replays struct {
	device.Device
	records, launches, freed int
}

type replay struct {
	r *replays
	f func()
}

func (r *replays) Record(f func()) (device.Replay, error) { r.records++; return replay{r, f}, nil }
func (p replay) Launch()                                  { p.r.launches++; p.f() }
func (p replay) Free() error                              { p.r.freed++; return nil }

// TestDecodeForgetsMovedMemory: a larger pass between steps moves the activations; the next step must not be a replay.
func TestDecodeForgetsMovedMemory(t *testing.T) {
	d := &replays{Device: ref.New()}
	m := newModel(t, d, configs(t)["diff/base"])
	cache := m.NewCache(8, 2, 2, 8)
	defer cache.Free()
	for i := range int32(8) {
		cache.Assign(1, int(i), i)
	}
	pos := int32(0)
	step := func() {
		t.Helper()
		rows := Rows{IDs: []int32{3}, Slots: []int32{1}, Pos: []int32{pos}, Want: []int32{0}}
		pos++
		if err := cache.Step(rows, make([]float32, m.Config.Vocab)); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		step()
	}
	if d.launches == 0 {
		t.Fatal("five equal steps and none was a replay")
	}
	version := m.Version()
	b := &Batch{B: 256, T: 16, IDs: make([]int32, 4096), Targets: make([]int32, 4096)}
	if err := m.Score(b); err != nil {
		t.Fatal(err)
	}
	launches := d.launches
	step()
	if m.Version() == version {
		t.Fatal("the larger pass did not move anything")
	}
	if d.launches != launches {
		t.Error("the first step on other memory was a replay")
	}
}
