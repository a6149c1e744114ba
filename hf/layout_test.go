package hf

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/internal/golden"
	"antiphase/layer"
	"antiphase/model"
)

// tensors draws every tensor of a layout.
func tensors(l layout, seed uint64) map[string][]float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	out := map[string][]float32{}
	for p := range l.parts() {
		for _, q := range p.pieces {
			if out[q.name] != nil {
				continue
			}
			x := make([]float32, q.rows*q.width())
			for i := range x {
				x[i] = float32(0.3 * r.NormFloat64())
			}
			out[q.name] = x
		}
	}
	return out
}

// TestTableCoversModel checks the table against the model's own: the same parameters, in order and size, for all kinds
// of folder.
func TestTableCoversModel(t *testing.T) {
	for _, change := range []dict{{}, {"attention_bias": true}, {"tie_word_embeddings": true},
		{"num_key_value_heads": 1}, {"num_key_value_heads": 4}, {"head_dim": 10}} {
		for _, kind := range []string{"llama", "diffllama"} {
			f, err := parse(encode(t, with(small(kind), change)), nil)
			if err != nil {
				t.Fatal(err)
			}
			list := model.Table(f.Config).List
			for p := range f.layout.parts() {
				size := 0
				for _, q := range p.pieces {
					size += q.n * q.width()
				}
				if len(list) == 0 || list[0].Name != p.param || list[0].Rows*list[0].Cols != size {
					t.Fatalf("%s %v: %s of %d values does not match the model's table at %v", kind, change, p.param,
						size, list[:min(1, len(list))])
				}
				list = list[1:]
			}
			if len(list) > 0 {
				t.Errorf("%s %v: %s has no source", kind, change, list[0].Name)
			}
		}
	}
}

// TestPairsReadTheirHeads checks, for every grouping of up to 24 heads, that each pair finds in its group the key heads
// that transformers gives it: query head h reads key head h/(heads/kv heads), and pair i is query heads i and
// heads/2+i.
func TestPairsReadTheirHeads(t *testing.T) {
	for heads := 2; heads <= 24; heads += 2 {
		for kv := 1; kv <= heads; kv++ {
			if heads%kv != 0 {
				continue
			}
			l := layout{layers: 1, dim: 2, heads: heads, kvHeads: kv, values: kv, out: heads, headDim: 1, halves: true}
			pieces := l.qkv("", "weight", 2)
			pairs, groups := heads/2, l.groups()
			if pairs%groups != 0 || len(pieces) != 2*pairs+4*groups {
				t.Fatalf("%d heads, %d key heads: %d groups, %d pieces", heads, kv, groups, len(pieces))
			}
			q, k, v := pieces[:2*pairs], pieces[2*pairs:][:2*groups], pieces[2*pairs+2*groups:]
			for i := range pairs {
				g := i / (pairs / groups)
				for m, h := range []int{i, heads/2 + i} {
					want := h / (heads / kv)
					if q[2*i+m].from != h || k[2*g+m].from != want || v[2*g+m].from != want {
						t.Errorf("%d heads, %d key heads, pair %d, map %d: query %d, key %d, value %d; want %d, %d, %d",
							heads, kv, i, m, q[2*i+m].from, k[2*g+m].from, v[2*g+m].from, h, want, want)
					}
				}
			}
		}
	}
}

// TestOddKeyHeads loads a DiffLlama with an odd number of key heads and the same model with each key and value head
// written out for every query head: logits must agree, and a head's gradient be the sum over its copies.
func TestOddKeyHeads(t *testing.T) {
	const heads, dim = 6, 24
	for _, kv := range []int{1, 3} {
		change := dict{"num_attention_heads": heads, "num_key_value_heads": kv, "attention_bias": true}
		l := mustParse(t, with(small("diffllama"), change)).layout
		few := tensors(l, uint64(kv))
		wide := map[string][]float32{}
		for name, x := range few {
			wide[name] = x
			if strings.Contains(name, "k_proj") || strings.Contains(name, "v_proj") {
				head := len(x) / kv
				wide[name] = nil
				for h := range heads {
					k := h / (heads / kv)
					wide[name] = append(wide[name], x[k*head:(k+1)*head]...)
				}
			}
		}
		a := runFolder(t, writeFolder(t, with(small("diffllama"), change), few))
		change["num_key_value_heads"] = heads
		b := runFolder(t, writeFolder(t, with(small("diffllama"), change), wide))
		if d := golden.Relative(a.logits, b.logits); !(d <= 1e-6) {
			t.Errorf("%d key heads: logits are off by %g", kv, d)
		}
		for name, got := range a.grads {
			want := make([]float64, len(got))
			for i, x := range b.grads[name] {
				if len(b.grads[name]) > len(got) { // copy h of a head adds to head h/(heads/kv)
					head := len(got) / kv
					i = i/head/(heads/kv)*head + i%head
				}
				want[i] += x
			}
			if d := golden.Relative(got, want); !(d <= 1e-9) {
				t.Errorf("%d key heads: gradient of %s is off by %g", kv, name, d)
			}
		}
	}
}

type folderRun struct {
	logits []float64
	grads  map[string][]float64
}

// runFolder opens a folder on the oracle and runs one batch forward and backward.
func runFolder(t *testing.T, dir string) folderRun {
	t.Helper()
	m, f, err := Open(ref.New(), dir, layer.Memory{Train: true})
	if err != nil {
		t.Fatal(err)
	}
	b := &model.Batch{B: 1, T: 6, IDs: []int32{1, 5, 9, 5, 31, 0}, Targets: []int32{5, 9, 5, 31, 0, -1}}
	y := make([]float32, len(b.IDs)*m.Config.Vocab)
	if err := m.Logits(b, y); err != nil {
		t.Fatal(err)
	}
	if err := m.Backprop(b, 0.2); err != nil {
		t.Fatal(err)
	}
	return folderRun{wide(y), (&goldenRun{T: t, m: m, folder: f}).gradients()}
}

// TestOpenValues finds every tensor's values again in the model, in the rows that the table says.
func TestOpenValues(t *testing.T) {
	for _, kind := range []string{"llama", "diffllama"} {
		c := with(small(kind), dict{"tie_word_embeddings": true})
		l := mustParse(t, c).layout
		want := tensors(l, 3)
		m, f, err := Open(ref.New(), writeFolder(t, c, want), layer.Memory{})
		if err != nil {
			t.Fatal(err)
		}
		for p := range f.layout.parts() {
			param := m.Params.Lookup(p.param)
			got := make([]float32, param.Rows*param.Cols)
			device.ReadFloats(m.Device(), got, param.W)
			for _, q := range p.pieces {
				n := q.n * q.width()
				if !slices.Equal(got[:n], want[q.name][q.from*q.width():][:n]) {
					t.Fatalf("%s: rows of %s did not arrive", p.param, q.name)
				}
				got = got[n:]
			}
		}
	}
}

func mustParse(t *testing.T, c map[string]any) *Folder {
	t.Helper()
	f, err := parse(encode(t, c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
