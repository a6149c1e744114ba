package layer_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/ref"
	"antiphase/internal/golden"
	"antiphase/internal/safetensors"
	"antiphase/layer"
	"antiphase/tensor"
)

// devices are those that every golden module runs on.
var devices = map[string]func() device.Device{
	"cpu": func() device.Device { return cpu.New(cpu.Options{}) },
	"ref": func() device.Device { return ref.New() },
}

// module is config.json of one attention module of the authors' published code.
type module struct {
	Arch        string             `json:"arch"`
	Dim         int                `json:"d_model"`
	Layer       int                `json:"layer_index"`
	Heads       int                `json:"heads"`
	KVHeads     int                `json:"kv_heads"`
	HeadDim     int                `json:"head_dim"`
	ValueDim    int                `json:"value_dim"`
	Rope        string             `json:"rope"`
	RopeTheta   float64            `json:"rope_theta"`
	HeadNorm    layer.HeadNormMode `json:"head_norm"`
	HeadNormEps float64            `json:"head_norm_eps"`
	LambdaForm  layer.LambdaForm   `json:"lambda_form"`
	Pairing     layer.Pairing      `json:"pairing"`
}

// config is the module in our terms, for sequences of at most positions tokens.
func (m module) config(t *testing.T, d device.Device, positions int) layer.AttnConfig {
	t.Helper()
	arch, err := layer.LookupArch(m.Arch)
	if err != nil {
		t.Fatal(err)
	}
	if m.KVHeads == 0 {
		m.KVHeads = m.Heads
	}
	if m.HeadNorm == "" {
		m.HeadNorm = layer.HeadNormOff
	}
	if m.Rope != "interleaved" && m.Rope != "half" {
		t.Fatalf("rope %q is neither interleaved nor half", m.Rope)
	}
	if m.ValueDim != 0 && m.ValueDim != arch.Values*m.HeadDim {
		t.Fatalf("value_dim %d is not %d × head_dim", m.ValueDim, arch.Values)
	}
	c := layer.AttnConfig{
		Arch: arch, Layer: m.Layer, Dim: m.Dim, Heads: m.Heads, Groups: m.KVHeads, HeadDim: m.HeadDim,
		HeadNorm: m.HeadNorm, HeadNormEps: m.HeadNormEps, LambdaInit: layer.LambdaSchedule(m.Layer),
		LambdaForm: m.LambdaForm, Pairing: m.Pairing,
		Rope: layer.NewRope(d, layer.Frequencies(m.HeadDim, m.RopeTheta), positions, 1, m.Rope == "interleaved"),
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	return c
}

// released lists, for each of our parameters, the published ones that are stacked in it.
var released = map[string][]string{
	"qkv.weight":       {"q_proj.weight", "k_proj.weight", "v_proj.weight"},
	"out.weight":       {"out_proj.weight", "o_proj.weight"}, // V1 and V2 spell it differently; a file has one
	"head_norm.weight": {"subln.weight"},
	"lambda.weight":    {"lambda_proj.weight"},
	"lambda_q1":        {"lambda_q1"}, "lambda_k1": {"lambda_k1"}, "lambda_q2": {"lambda_q2"},
	"lambda_k2": {"lambda_k2"},
}

// TestGolden checks attention layers against the authors' published modules: output, input gradient, and every
// parameter's gradient.
func TestGolden(t *testing.T) {
	tried := 0
	for _, dir := range golden.Dirs(t, "testdata", "config.json", "attention.safetensors") {
		b, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		var m module
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		if m.Arch == "" {
			continue
		}
		tried++
		for _, name := range slices.Sorted(maps.Keys(devices)) {
			t.Run(filepath.Base(dir)+"/"+name, func(t *testing.T) {
				d := devices[name]()
				defer d.Close()
				testModule(t, d, dir, m)
			})
		}
	}
	if tried == 0 {
		t.Fatal("no golden module")
	}
}

func testModule(t *testing.T, d device.Device, dir string, m module) {
	f, err := safetensors.Open(filepath.Join(dir, "attention.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Info("x")
	r := newFixture(t, d, m.config(t, d, info.Shape[1]), info.Shape[0], info.Shape[1])
	used := map[string]bool{"x": true, "y": true, "dx": true, "dy": true}
	r.fill(func(p *layer.Param) []float64 { return stacked(t, f, "", p, used) })
	y, dx := r.run(floats(t, f, "x"), floats(t, f, "dy"))
	worst := 0.0
	defer func() { t.Logf("largest difference: %.2g of the norm", worst) }()
	compare := func(what string, got, want []float64) {
		diff := golden.Relative(got, want)
		worst = max(worst, diff)
		if !(diff <= 1e-5) {
			t.Errorf("%s is off by %g of its norm", what, diff)
		}
	}
	compare("y", y, floats(t, f, "y"))
	compare("dx", dx, floats(t, f, "dx"))
	for _, p := range r.params.List {
		got := r.grad(p)
		for _, name := range released[p.Name] {
			if _, ok := f.Info("grad/" + name); !ok {
				continue
			}
			want := floats(t, f, "grad/"+name)
			compare("gradient of "+name, got[:min(len(want), len(got))], want)
			got = got[min(len(want), len(got)):]
			used["grad/"+name] = true
		}
		if len(got) > 0 {
			t.Errorf("%d values of the gradient of %s have no golden ones", len(got), p.Name)
		}
	}
	for _, name := range f.Names() {
		if !used[name] {
			t.Errorf("tensor %s of the golden file was not used", name)
		}
	}
}

// stacked is the values of p: the published tensors it is made of, one after the other.
func stacked(t *testing.T, f *safetensors.File, prefix string, p *layer.Param, used map[string]bool) []float64 {
	t.Helper()
	var x []float64
	for _, name := range released[p.Name] {
		if _, ok := f.Info(prefix + name); ok {
			x = append(x, floats(t, f, prefix+name)...)
			used[prefix+name] = true
		}
	}
	if len(x) != p.Rows*p.Cols {
		t.Fatalf("%s has %d values, the file has %d in %s", p.Name, p.Rows*p.Cols, len(x),
			strings.Join(released[p.Name], ", "))
	}
	return x
}

func floats(t *testing.T, f *safetensors.File, name string) []float64 {
	t.Helper()
	x, err := f.Float64s(name)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// fixture is one attention layer with its memory, run forward and backward over B×T rows.
type fixture struct {
	dev    device.Device
	params *layer.ParamSet
	attn   *layer.Attention
	pass   *layer.Pass
	dim    int
}

func newFixture(t *testing.T, d device.Device, c layer.AttnConfig, b, seq int) *fixture {
	t.Helper()
	r := &fixture{dev: d, params: layer.NewParamSet(), dim: c.Dim}
	r.attn = layer.NewAttention(r.params, c)
	r.params.Alloc(d, layer.Memory{Train: true})
	pos := make([]int32, b*seq)
	for i := range pos {
		pos[i] = int32(i % seq)
	}
	r.pass = &layer.Pass{Dev: d, Arena: tensor.NewArena(d), B: b, T: seq, Pos: device.Empty(d, tensor.I32, 1, len(pos))}
	device.WriteI32(d, r.pass.Pos, pos)
	return r
}

// fill gives every parameter values.
func (r *fixture) fill(values func(p *layer.Param) []float64) {
	for _, p := range r.params.List {
		device.WriteFloats(r.dev, p.W, values(p))
	}
}

// run is y = attn(x), and dx and the gradients from dy.
func (r *fixture) run(x, dy []float64) (y, dx []float64) {
	in := func(v []float64) tensor.Tensor {
		t := device.Empty(r.dev, r.dev.Types().Act, r.pass.N(), r.dim)
		if v != nil {
			device.WriteFloats(r.dev, t, v)
		}
		return t
	}
	out := func(t tensor.Tensor) []float64 {
		v := make([]float64, t.Len())
		device.ReadFloats(r.dev, v, t)
		return v
	}
	r.params.ZeroGrad(r.dev)
	y = out(r.attn.Forward(r.pass, in(x), nil))
	dxT := in(nil)
	r.attn.Backward(r.pass, dxT, in(dy))
	return y, out(dxT)
}

func (r *fixture) grad(p *layer.Param) []float64 {
	g := make([]float64, p.Rows*p.Cols)
	device.ReadFloats(r.dev, g, p.G)
	return g
}
