package pair_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"antiphase/internal/safetensors"
	"antiphase/model"
	"antiphase/pair"
)

// Rows by hand: the largest value is 127 steps, halves are rounded away from zero, and a row of zeros stays one.
func TestQuantizeByHand(t *testing.T) {
	m := standIn(t, "diff")
	old := m.Values
	m.Values = func(name string) ([]float32, error) {
		x, err := old(name)
		if name == "embed.weight" {
			x = slices.Clone(x)
			cols := m.Config.Dim
			clear(x[:5*cols])
			copy(x, []float32{127, -127, 63.5, -63.5, 0.4, -0.4, 0.6})
			copy(x[2*cols:], []float32{-254, 254, 1, 3}) // steps of 2
			copy(x[3*cols:], []float32{1})
			copy(x[4*cols:], []float32{-127. / 1024, 3. / 1024, 1. / 4096})
		}
		return x, err
	}
	b := written(t, m)
	got, err := pair.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	x, err := got.Values("embed.weight")
	if err != nil {
		t.Fatal(err)
	}
	cols := m.Config.Dim
	for r, want := range [][]float32{{127, -127, 64, -64, 0, 0, 1}, {0, 0, 0, 0, 0, 0, 0}, {-254, 254, 2, 4, 0, 0, 0},
		{1, 0, 0}, {-127. / 1024, 3. / 1024, 0}} {
		if row := x[r*cols : r*cols+len(want)]; !slices.Equal(row, want) {
			t.Errorf("row %d is %v, want %v", r, row, want)
		}
	}
	sum := sha256.Sum256(b)
	if got.Hash != fmt.Sprintf("%x", sum[:12]) || got.Bytes != int64(len(b)) || got.About != "random" {
		t.Errorf("hash %s, %d bytes, about %q", got.Hash, got.Bytes, got.About)
	}
}

// In a packed file matrices are bytes with a scale per row; vectors and λ are whole.
func TestPackedTensors(t *testing.T) {
	m := standIn(t, "diff")
	b := written(t, m)
	got, err := pair.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Parse(b)
	if err != nil || !pair.IsPacked(f) {
		t.Fatal(err)
	}
	for _, p := range model.Table(m.Config).List {
		info, _ := f.Info(p.Name)
		scale, scaled := f.Info(p.Name + ".scale")
		whole := p.Rows == 1 || p.Cols < 16
		if (info.DType == safetensors.F32) != whole || (info.DType == safetensors.I8) == whole || scaled == whole ||
			scaled && !slices.Equal(scale.Shape, []int{p.Rows}) {
			t.Errorf("%s of %d × %d is %s, scaled %v", p.Name, p.Rows, p.Cols, info.DType, scaled)
		}
	}
	if _, err := got.Values("nothing"); err == nil || !strings.Contains(err.Error(), `no parameter "nothing"`) {
		t.Errorf("%v", err)
	}
	var plain bytes.Buffer
	if err := safetensors.Write(&plain, nil, nil); err != nil {
		t.Fatal(err)
	}
	if f, err := safetensors.Parse(plain.Bytes()); err != nil || pair.IsPacked(f) {
		t.Errorf("another file is taken for a packed model: %v", err)
	}
}

// rewritten is the file f without the tensor drop, with other metadata and more tensors.
func rewritten(t *testing.T, f *safetensors.File, drop string, meta map[string]string,
	add ...safetensors.Entry) []byte {
	t.Helper()
	var list []safetensors.Entry
	for _, info := range f.Infos() {
		b, err := f.Bytes(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Name != drop {
			list = append(list, safetensors.FromBytes(info.Name, info.DType, info.Shape, b))
		}
	}
	all := maps.Clone(f.Metadata())
	maps.Copy(all, meta)
	var out bytes.Buffer
	if err := safetensors.Write(&out, append(list, add...), all); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// What cannot be written or read is said: values that are missing or too few, another tokenizer, scales of another
// length.
func TestPairRefuses(t *testing.T) {
	lost := errors.New("lost")
	for want, values := range map[string]func(string) ([]float32, error){
		"lost":                                  func(string) ([]float32, error) { return nil, lost },
		"has 3 values, the configuration wants": func(string) ([]float32, error) { return make([]float32, 3), nil },
	} {
		m := standIn(t, "diff")
		m.Values = values
		if err := pair.Write(new(bytes.Buffer), m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	m := standIn(t, "diff")
	f, err := safetensors.Parse(written(t, m))
	if err != nil {
		t.Fatal(err)
	}
	again := func(drop string, meta map[string]string, add ...safetensors.Entry) []byte {
		t.Helper()
		return rewritten(t, f, drop, meta, add...)
	}
	if _, err := pair.Parse(again("", nil)); err != nil {
		t.Fatal(err)
	}
	got, err := pair.Parse(again("embed.weight.scale", nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := got.Values("embed.weight"); err == nil ||
		!strings.Contains(err.Error(), `the scales of "embed.weight" are missing`) {
		t.Errorf("%v", err)
	}
	short := safetensors.FromFloat32s("embed.weight.scale", safetensors.F32, []int{2}, []float32{1, 1})
	if got, err = pair.Parse(again("embed.weight.scale", nil, short)); err == nil {
		_, err = got.Values("embed.weight")
	}
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("are not %d numbers", m.Config.Vocab)) {
		t.Errorf("two scales: %v", err)
	}
	small := strings.Replace(f.Metadata()["config"], fmt.Sprintf(`"vocab":%d`, m.Config.Vocab), `"vocab":100`, 1)
	for want, b := range map[string][]byte{
		`parameter "embed.weight" is missing`:  again("embed.weight", nil),
		"tokenizer has 260 ids, the model 100": again("", map[string]string{"config": small}),
		"pair: config":                         again("", map[string]string{"config": "{"}),
		"pair: tokenizer":                      again("", map[string]string{"tokenizer": "{}"}),
		`it says "2"`:                          again("", map[string]string{"antiphase.packed": "2"}),
		"kv_heads": again("", map[string]string{"config": strings.Replace(f.Metadata()["config"], `"kv_heads":`,
			`"kv_heads":9`, 1)}),
	} {
		if _, err := pair.Parse(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
