package device

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"antiphase/tensor"
)

// Every tensor of every op: absent, of another type, a row or a column too many, each alone. What the contract leaves
// free passes, everything else panics.
func TestEveryTensorIsChecked(t *testing.T) {
	other := map[tensor.DType]tensor.DType{tensor.BF16: tensor.F32, tensor.F32: tensor.BF16, tensor.I32: tensor.F32,
		tensor.I16: tensor.I32}
	for _, c := range append(rowChecks(), opChecks()...) {
		if s := text(c.call); s != "" {
			t.Errorf("%s: %s", c.name, s)
			continue
		}
		var free []string
		for name, place := range c.args {
			right := *place
			for what, change := range map[string]func(x *tensor.Tensor){
				"absent":  func(x *tensor.Tensor) { x.Buf = nil },
				"type":    func(x *tensor.Tensor) { x.Type = other[x.Type] },
				"rows":    func(x *tensor.Tensor) { x.Rows++ },
				"cols":    func(x *tensor.Tensor) { x.Cols, x.Ld = x.Cols+1, x.Ld+1 },
				"overlap": func(x *tensor.Tensor) { x.Ld = x.Cols - 1 },
			} {
				if change(place); what == "overlap" && right.Rows <= 1 {
					*place = right
					continue
				}
				if text(c.call) == "" {
					free = append(free, name+" "+what)
				}
				*place = right
			}
		}
		want := strings.Split(c.free, ", ")
		if c.free == "" {
			want = nil
		}
		slices.Sort(free)
		slices.Sort(want)
		if !slices.Equal(free, want) {
			t.Errorf("%s takes %q, want %q", c.name, free, want)
		}
	}
}

// The heads and rows that a map is asked for: both ends of each, and what is beyond.
func TestProbsBounds(t *testing.T) {
	for _, c := range []struct {
		p    Probs
		rows int
		good bool
	}{
		{Probs{T: 3, D: 4}, 3, true}, {Probs{T: 3, D: 4, Seq: 1, Row: 2, QHead: 1, KHead: 2}, 1, true},
		{Probs{T: 3, D: 4, Row: 1}, 3, false},
		{Probs{T: 3, D: 4, Seq: 2}, 1, false}, {Probs{T: 3, D: 4, Seq: -1}, 1, false},
		{Probs{T: 3, D: 4, Row: -1}, 1, false},
		{Probs{T: 3, D: 4, QHead: 2}, 1, false}, {Probs{T: 3, D: 4, QHead: -1}, 1, false},
		{Probs{T: 3, D: 4, KHead: 3}, 1, false}, {Probs{T: 3, D: 4, KHead: -1}, 1, false},
		{Probs{T: 3, D: 0}, 1, false}, {Probs{T: 0, D: 4}, 1, false}, {Probs{T: 4, D: 4}, 1, false},
		{Probs{T: 3, D: 3}, 1, false}, {Probs{T: 3, D: 8}, 1, false},
	} {
		s := text(func() { CheckAttentionProbs(f32(c.rows, c.p.T), a16(6, 8), a16(6, 12), c.p, bf16) })
		if (s == "") != c.good || s != "" && !strings.HasPrefix(s, "device: AttentionProbs") {
			t.Errorf("%+v, %d rows: %q", c.p, c.rows, s)
		}
	}
}

// shaped are the attention ops on tensors that fit a geometry, whatever it is.
func shaped(s AttnShape) map[string]func() {
	n, q, k, w, v := s.B*s.T, s.Heads*s.D, s.Groups*s.D, s.Heads*s.DV, s.Groups*s.DV
	ids := i32(1, n)
	a := &Attn{AttnShape: s, Q: a16(n, q), K: a16(n, k), V: a16(n, v), Out: a16(n, w), LSE: f32(n, s.Heads)}
	g := &AttnGrad{DOut: a.Out, DQ: a.Q, DK: a.K, DV: a.V}
	d := &DiffAttn{AttnShape: s, Keys: 1, Q: a16(n, 2*q), K: a.K, V: a.V, Lam: f32(1, 1), Out: a.Out, Out2: a.Out,
		LSE: f32(n, 2*s.Heads)}
	dg := &DiffAttnGrad{DOut: d.Out, DQ: d.Q, DK: d.K, DV: d.V, DLam: f32(n, s.Heads)}
	return map[string]func(){
		"Attention": func() { a.Check(bf16) }, "AttentionBackward": func() { a.CheckBackward(g, bf16) },
		"AttentionCached": func() { a.CheckCached(cache(k, v), ids, ids, bf16) },
		"DiffAttention":   func() { d.Check(bf16) }, "DiffAttentionBackward": func() { d.CheckBackward(dg, bf16) },
		"DiffAttentionCached": func() { d.CheckCached(cache(k, v), ids, ids, bf16) },
	}
}

// Geometry of attention: every number must be positive but batch and length, and groups divide heads.
func TestGeometryBounds(t *testing.T) {
	for _, c := range []struct {
		s    AttnShape
		good bool
	}{
		{AttnShape{2, 3, 4, 2, 8, 16, 1}, true}, {AttnShape{0, 0, 1, 1, 1, 1, 0}, true},
		{AttnShape{-1, 3, 4, 2, 8, 16, 1}, false}, {AttnShape{2, -1, 4, 2, 8, 16, 1}, false},
		{AttnShape{2, 3, 0, 2, 8, 16, 1}, false},
		{AttnShape{2, 3, 4, 0, 8, 16, 1}, false}, {AttnShape{2, 3, 4, 3, 8, 16, 1}, false},
		{AttnShape{2, 3, 4, 2, 0, 16, 1}, false}, {AttnShape{2, 3, 4, 2, 8, 0, 1}, false},
	} {
		if c.s.valid() != c.good {
			t.Errorf("%v: %v", &c.s, !c.good)
		}
		for name, call := range shaped(c.s) {
			if s := text(call); (s == "") != c.good || s != "" && !strings.HasPrefix(s, "device: "+name+" of ") {
				t.Errorf("%s of %v: %q", name, &c.s, s)
			}
		}
	}
}

// Geometry elsewhere: an even rotary width; keys of one or two; chunks of four numbers; a cache with pages.
func TestOtherGeometryBounds(t *testing.T) {
	rope := func(dim int) string {
		return text(func() { Rope{Heads: 2, Dim: dim}.Check(a16(1, 2*dim), f32(5, dim), i32(1, 1), bf16) })
	}
	if rope(4) != "" || rope(3) == "" || rope(0) == "" {
		t.Error("rotary widths")
	}
	for keys, good := range map[int]bool{1: true, 2: true, 0: false, 3: false} {
		a, _ := diff(max(keys, 1), f32(1, 1))
		a.Keys, a.K = keys, a16(6, 16*keys)
		if (text(func() { a.Check(bf16) }) == "") != good ||
			(text(func() { a.CheckCached(cache(16*keys, 32), i32(1, 6), i32(1, 6), bf16) }) == "") != good {
			t.Errorf("%d keys: %v", keys, !good)
		}
	}
	for _, x := range []struct {
		t    tensor.Tensor
		good bool
	}{{i32(3, 4), true}, {i32(3, 5), false}, {f32(3, 4), false}, {i32(3, 8).Columns(0, 4), false}} {
		if (text(func() { CheckChunks(x.t) }) == "") != x.good {
			t.Errorf("chunks %v: %v", x.t, !x.good)
		}
	}
	c := cache(16, 32)
	c.PageSize = 0
	if text(func() { c.CheckWrite(a16(6, 16), a16(6, 32), i32(1, 6), i32(1, 6), bf16) }) == "" {
		t.Error("pages of nothing")
	}
}

// A classifier has classes, and a part of them or all parts, of two rows each.
func TestClassifierBounds(t *testing.T) {
	cl := &Classifier{X: a16(6, 8), W: a16(0, 8), Targets: i32(1, 6), Loss: f32(1, 6)}
	if text(func() { cl.Check(bf16) }) == "" {
		t.Error("no classes")
	}
	both := &Classifier{X: a16(6, 8), W: a16(9, 8), Targets: i32(1, 6), Loss: f32(1, 6), Part: f32(2, 6),
		Parts: f32(4, 6)}
	if text(func() { both.Check(bf16) }) == "" {
		t.Error("a part and all parts")
	}
	odd := &Classifier{X: a16(6, 8), W: a16(9, 8), Targets: i32(1, 6), Loss: f32(1, 6), Parts: f32(3, 6)}
	part := &Classifier{Part: f32(2, 6)}
	if text(func() { odd.Check(bf16) }) == "" || !odd.Split() || !part.Split() || (&Classifier{}).Split() {
		t.Error("three rows of parts")
	}
}

// A row of an int8 cache has a byte per element, then 4 bytes per head, each part up to 16 bytes; other caches have
// their elements. A write of either is checked by its own widths.
func TestCacheColumns(t *testing.T) {
	for _, c := range []struct {
		t                  tensor.DType
		heads, width, want int
	}{{tensor.BF16, 3, 20, 60}, {tensor.F32, 1, 1, 1}, {tensor.I8, 4, 16, 64 + 16}, {tensor.I8, 5, 16, 80 + 32},
		{tensor.I8, 1, 17, 32 + 16}, {tensor.I8, 4, 15, 64 + 16}} {
		if got := CacheCols(c.t, c.heads, c.width); got != c.want {
			t.Errorf("%v of %d × %d: %d columns, want %d", c.t, c.heads, c.width, got, c.want)
		}
	}
	types := Types{Act: tensor.BF16, Stat: tensor.F32, Cache: tensor.I8}
	c := &Cache{K: at(tensor.I8, 32, CacheCols(tensor.I8, 4, 8)), V: at(tensor.I8, 32, CacheCols(tensor.I8, 2, 16)),
		Table: i32(2, 4), PageSize: 4, KHeads: 4, VHeads: 2, D: 8, DV: 16}
	if k, v := c.Widths(); k != 32 || v != 32 {
		t.Errorf("%d and %d elements", k, v)
	}
	write := func(k, v int) string {
		return text(func() { c.CheckWrite(a16(6, k), a16(6, v), i32(1, 6), i32(1, 6), types) })
	}
	if s := write(32, 32); s != "" {
		t.Error(s)
	}
	if write(c.K.Cols, 32) == "" || write(32, c.V.Cols) == "" {
		t.Error("rows with their scales were taken for elements")
	}
	plain := cache(16, 24)
	if k, v := plain.Widths(); k != 16 || v != 24 {
		t.Errorf("%d and %d elements", k, v)
	}
}

// named is a device that says what it is.
type named struct{ Device }

func (named) Identity() Identity    { return Identity{"gpu", "bf16", "sm90"} }
func (named) Machine() string       { return "box" }
func (named) Spare() int64          { return 77 }
func (named) Wrote(x tensor.Tensor) { panic(fmt.Sprint("wrote ", x.Rows)) }

// unnamed is one that does not.
type unnamed struct{ Device }

func (unnamed) Name() string { return "plain" }
func (unnamed) Types() Types { return bf16 }

func TestIdentity(t *testing.T) {
	if got := IdentityOf(named{}).String(); got != "gpu, bf16, sm90" || MachineOf(named{}) != "box" ||
		SpareOf(named{}) != 77 {
		t.Errorf("%s", got)
	}
	if got := IdentityOf(unnamed{}).String(); got != "plain, BF16" || MachineOf(unnamed{}) != "unknown" ||
		SpareOf(unnamed{}) != 1<<63-1 {
		t.Errorf("%s", got)
	}
	Wrote(unnamed{}, f32(3, 1))
	if text(func() { Wrote(named{}, f32(3, 1)) }) != "wrote 3" {
		t.Error("the device was not told")
	}
}
