package pair_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/fstest"

	"antiphase/layer"
	"antiphase/model"
	"antiphase/pair"
	"antiphase/recipe"
	"antiphase/tokenizer"
)

// standIn is a small model with random weights.
func standIn(t *testing.T, arch string) *pair.Model {
	t.Helper()
	r, err := recipe.Nano(arch)
	if err != nil {
		t.Fatal(err)
	}
	g := rand.New(rand.NewPCG(1, 2))
	values := map[string][]float32{}
	for _, p := range model.Table(r.Model).List {
		x := make([]float32, p.Rows*p.Cols)
		for i := range x {
			x[i] = float32(g.NormFloat64())
		}
		values[p.Name] = x
	}
	return &pair.Model{Config: r.Model, Tokenizer: tokenizer.Bytes(), About: "random",
		Values: func(name string) ([]float32, error) { return values[name], nil }}
}

func written(t *testing.T, m *pair.Model) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := pair.Write(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What is read is what was written: matrices to half a step of their row's scale, everything else bit for bit.
func TestRoundTrip(t *testing.T) {
	for _, a := range layer.Archs() {
		m := standIn(t, a.Name)
		b := written(t, m)
		got, err := pair.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got.Config) != fmt.Sprint(m.Config) || got.Tokenizer.Hash() != m.Tokenizer.Hash() ||
			got.About != m.About {
			t.Errorf("%s: configuration, tokenizer or text changed", a.Name)
		}
		for _, p := range model.Table(m.Config).List {
			want, _ := m.Values(p.Name)
			have, err := got.Values(p.Name)
			if err != nil {
				t.Fatal(err)
			}
			for r := range p.Rows {
				row := want[r*p.Cols : (r+1)*p.Cols]
				most := 0.0
				for _, v := range row {
					most = max(most, math.Abs(float64(v)))
				}
				if p.Rows == 1 {
					most = 0
				}
				for i, v := range row {
					if d := math.Abs(float64(have[r*p.Cols+i] - v)); !(d <= most/127/2*1.001) {
						t.Fatalf("%s: %s[%d,%d] = %g, was %g", a.Name, p.Name, r, i, have[r*p.Cols+i], v)
					}
				}
			}
		}
		if n := model.Table(m.Config).Count(); len(b) > 2*n {
			t.Errorf("%s: %d bytes for %d parameters", a.Name, len(b), n)
		}
	}
}

// A damaged file is an error and never a panic.
func TestDamaged(t *testing.T) {
	b := written(t, standIn(t, "diff"))
	for _, cut := range []int{0, 7, 8, 100, len(b) / 2, len(b) - 1} {
		if _, err := pair.Parse(b[:cut]); err == nil {
			t.Errorf("%d of %d bytes were taken for a model", cut, len(b))
		}
	}
	for _, change := range [][2]string{{`\"layers\":2`, `\"layers\":3`}, {`\"arch\":\"diff\"`, `\"arch\":\"diff2\"`},
		{`antiphase.packed":"1"`, `antiphase.packed":"2"`}} {
		bad := bytes.Replace(b, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(bad, b) {
			t.Fatalf("%s is not in the file", change[0])
		}
		if len(bad) != len(b) { // the header's length is before it
			bad[0] += byte(len(bad) - len(b))
		}
		if _, err := pair.Parse(bad); err == nil {
			t.Errorf("%s in place of %s was taken for a model", change[1], change[0])
		}
	}
}

// The differential model comes first; without files there is a plain error.
func TestNames(t *testing.T) {
	old := pair.Files
	defer func() { pair.Files = old }()
	pair.Files = fstest.MapFS{"files/README.md": {Data: []byte("card")}}
	if _, err := pair.Open("diff"); !errors.Is(err, pair.ErrNone) || len(pair.Names()) > 0 {
		t.Errorf("no files: %v, %v", err, pair.Names())
	}
	pair.Files = fstest.MapFS{"files/transformer.safetensors": {Data: written(t, standIn(t, "transformer"))},
		"files/diff2.safetensors": {Data: written(t, standIn(t, "diff2"))}}
	if names := pair.Names(); !slices.Equal(names, []string{"diff2", "transformer"}) {
		t.Errorf("names %v", names)
	}
	if m, err := pair.Open("diff2"); err != nil || m.Config.Arch != "diff2" {
		t.Errorf("diff2: %v", err)
	}
	if _, err := pair.Open("diff"); err == nil || errors.Is(err, pair.ErrNone) {
		t.Errorf("a name that is not there: %v", err)
	}
}

// What is embedded fits its bounds.
func TestEmbedded(t *testing.T) {
	total := int64(0)
	for _, name := range pair.Names() {
		m, err := pair.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := model.Table(m.Config).Count(); n > 4e6 {
			t.Errorf("%s has %d parameters", name, n)
		}
		total += m.Bytes
	}
	if total > 8e6 {
		t.Errorf("%d bytes are embedded", total)
	}
}
