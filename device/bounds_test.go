package device

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"antiphase/tensor"
)

// checked is a call of a check with its tensors by name, and what may be changed about one of them alone: "x absent",
// "x rows", "x cols", "x type". Everything else must panic.
type checked struct {
	name string
	args map[string]*tensor.Tensor
	call func()
	free string
}

// tensors makes places for tensors by name.
func tensors(list map[string]tensor.Tensor) map[string]*tensor.Tensor {
	out := map[string]*tensor.Tensor{}
	for name, t := range list {
		out[name] = &t
	}
	return out
}

func rowChecks() []checked {
	var out []checked
	add := func(name, free string, list map[string]tensor.Tensor, call func(a map[string]*tensor.Tensor)) {
		args := tensors(list)
		out = append(out, checked{name, args, func() { call(args) }, free})
	}
	type m = map[string]tensor.Tensor
	add("Copy", "dst type, src type", m{"dst": a16(6, 8), "src": f32(6, 8)},
		func(a map[string]*tensor.Tensor) { CheckCopy(*a["dst"], *a["src"]) })
	add("AddBias", "y rows", m{"y": a16(6, 8), "b": a16(1, 8)},
		func(a map[string]*tensor.Tensor) { CheckAddBias(*a["y"], *a["b"], bf16) })
	add("BiasBackward", "dy rows", m{"dy": a16(6, 8), "db": f32(1, 8)},
		func(a map[string]*tensor.Tensor) { CheckBiasBackward(*a["db"], *a["dy"], bf16) })
	add("Embed", "table rows", m{"out": a16(6, 8), "table": a16(9, 8), "ids": i32(1, 6)},
		func(a map[string]*tensor.Tensor) { CheckEmbed(*a["out"], *a["table"], *a["ids"], bf16) })
	add("EmbedBackward", "dtable rows", m{"dout": a16(6, 8), "dtable": f32(9, 8), "ids": i32(1, 6)},
		func(a map[string]*tensor.Tensor) { CheckEmbedBackward(*a["dtable"], *a["dout"], *a["ids"], bf16) })
	for _, op := range []MatMul{{}, {TransA: true}, {TransB: true}, {TransA: true, TransB: true}} {
		x, y := a16(6, 8), a16(8, 5)
		if op.TransA {
			x = a16(8, 6)
		}
		if op.TransB {
			y = a16(5, 8)
		}
		add(op.String(), "c type", m{"c": a16(6, 5), "a": x, "b": y},
			func(a map[string]*tensor.Tensor) { CheckMatMul(*a["c"], *a["a"], *a["b"], op, bf16) })
	}
	add("RMSNorm", "rstd absent", m{"y": a16(6, 8), "rstd": f32(1, 6), "sum": a16(6, 8), "x": a16(6, 8),
		"delta": a16(6, 8), "w": a16(1, 8)}, func(a map[string]*tensor.Tensor) {
		CheckRMSNorm(*a["y"], *a["rstd"], *a["sum"], *a["x"], *a["delta"], *a["w"], bf16)
	})
	add("RMSNormBackward", "", m{"dx": a16(6, 8), "dw": f32(1, 8), "dy": a16(6, 8), "x": a16(6, 8), "w": a16(1, 8),
		"rstd": f32(1, 6)}, func(a map[string]*tensor.Tensor) {
		CheckRMSNormBackward(*a["dx"], *a["dw"], *a["dy"], *a["x"], *a["w"], *a["rstd"], bf16)
	})
	add("Rope", "table rows", m{"x": a16(6, 8), "table": f32(50, 4), "pos": i32(1, 6)},
		func(a map[string]*tensor.Tensor) { Rope{Heads: 2, Dim: 4}.Check(*a["x"], *a["table"], *a["pos"], bf16) })
	add("SwiGLU", "", m{"y": a16(6, 8), "gu": a16(6, 16)},
		func(a map[string]*tensor.Tensor) { CheckSwiGLU(*a["y"], *a["gu"], bf16) })
	add("SwiGLUBackward", "", m{"dgu": a16(6, 16), "y": a16(6, 8), "dy": a16(6, 8), "gu": a16(6, 16)},
		func(a map[string]*tensor.Tensor) { CheckSwiGLUBackward(*a["dgu"], *a["y"], *a["dy"], *a["gu"], bf16) })
	for _, lam := range []tensor.Tensor{f32(1, 1), f32(6, 4)} {
		add(fmt.Sprint("SubtractHeads ", lam), "", m{"out": a16(6, 8), "a": a16(6, 16), "lam": lam},
			func(a map[string]*tensor.Tensor) { CheckSubtractHeads(*a["out"], *a["a"], *a["lam"], 4, bf16) })
		add(fmt.Sprint("SubtractHeadsBackward ", lam), "",
			m{"da": a16(6, 16), "dlam": f32(6, 4), "dout": a16(6, 8), "a": a16(6, 16), "lam": lam},
			func(a map[string]*tensor.Tensor) {
				CheckSubtractHeadsBackward(*a["da"], *a["dlam"], *a["dout"], *a["a"], *a["lam"], 4, bf16)
			})
	}
	add("Lambda", "", m{"lam": f32(1, 1), "q1": f32(1, 8), "k1": f32(1, 8), "q2": f32(1, 8), "k2": f32(1, 8)},
		func(a map[string]*tensor.Tensor) {
			CheckLambda(*a["lam"], LambdaVecs{*a["q1"], *a["k1"], *a["q2"], *a["k2"]}, bf16)
		})
	add("LambdaBackward", "dlam rows, dlam cols",
		m{"dlam": f32(6, 4), "q1": f32(1, 8), "k1": f32(1, 8), "q2": f32(1, 8), "k2": f32(1, 8)},
		func(a map[string]*tensor.Tensor) {
			v := LambdaVecs{f32(1, 8), f32(1, 8), f32(1, 8), f32(1, 8)}
			CheckLambdaBackward(LambdaVecs{*a["q1"], *a["k1"], *a["q2"], *a["k2"]}, *a["dlam"], v, bf16)
		})
	add("Sigmoid", "", m{"y": a16(6, 8), "x": a16(6, 8)},
		func(a map[string]*tensor.Tensor) { CheckSigmoid(*a["y"], *a["x"], bf16) })
	add("SigmoidBackward", "", m{"y": a16(6, 8), "dy": a16(6, 8), "dx": a16(6, 8)},
		func(a map[string]*tensor.Tensor) { CheckSigmoidBackward(*a["dx"], *a["dy"], *a["y"], bf16) })
	add("ArgMax", "x cols", m{"ids": i32(1, 6), "x": f32(6, 9)},
		func(a map[string]*tensor.Tensor) { CheckArgMax(*a["ids"], *a["x"], bf16) })
	add("SumSquares", "x rows, x cols, x type", m{"dst": f32(1, 1), "x": a16(6, 9)},
		func(a map[string]*tensor.Tensor) { CheckSumSquares(*a["dst"], *a["x"], bf16) })
	add("Advance", "", m{"ids": i32(1, 6), "pos": i32(1, 6), "best": i32(1, 6)},
		func(a map[string]*tensor.Tensor) { CheckAdvance(*a["ids"], *a["pos"], *a["best"]) })
	add("Probs", "", m{"out": f32(2, 3), "q": a16(6, 8), "k": a16(6, 4)},
		func(a map[string]*tensor.Tensor) {
			CheckAttentionProbs(*a["out"], *a["q"], *a["k"], Probs{T: 3, D: 4, Seq: 1, Row: 1, QHead: 1}, bf16)
		})
	return out
}

func opChecks() []checked {
	var out []checked
	for _, norm := range []bool{false, true} {
		a, g := attn(norm)
		args := map[string]*tensor.Tensor{"Q": &a.Q, "K": &a.K, "V": &a.V, "Start": &a.Start, "LSE": &a.LSE}
		back := map[string]*tensor.Tensor{"DOut": &g.DOut, "DQ": &g.DQ, "DK": &g.DK, "DV": &g.DV}
		if norm {
			args["w"], args["Raw"], args["Rstd"], back["DNorm"] = &a.Norm.Weight, &a.Raw, &a.Rstd, &g.DNorm
		} else {
			args["Out"] = &a.Out
		}
		free := map[bool]string{false: "Start absent, LSE absent", true: "Start absent, LSE absent, w absent"}[norm]
		out = append(out, checked{fmt.Sprint("Attention ", norm), args, func() { a.Check(bf16) }, free},
			checked{fmt.Sprint("AttentionBackward ", norm), args, func() { a.CheckBackward(g, bf16) }, "Start absent"},
			checked{fmt.Sprint("AttentionBackward's gradients ", norm), back, func() { a.CheckBackward(g, bf16) }, ""})
	}
	for _, lam := range []tensor.Tensor{f32(1, 1), f32(6, 4)} {
		a, g := diff(2, lam)
		a.Norm.Weight, g.DNorm, a.Start = a16(1, 16), f32(1, 16), i32(1, 6)
		args := map[string]*tensor.Tensor{"Q": &a.Q, "K": &a.K, "V": &a.V, "Lam": &a.Lam, "Start": &a.Start,
			"LSE": &a.LSE, "Out2": &a.Out2, "Raw": &a.Raw, "Rstd": &a.Rstd, "w": &a.Norm.Weight}
		back := map[string]*tensor.Tensor{"DOut": &g.DOut, "DQ": &g.DQ, "DK": &g.DK, "DV": &g.DV, "DLam": &g.DLam,
			"DNorm": &g.DNorm}
		out = append(out, checked{fmt.Sprint("DiffAttention ", lam), args, func() { a.Check(bf16) },
			"Start absent, LSE absent, Out2 absent, w absent"},
			checked{fmt.Sprint("DiffAttentionBackward ", lam), args, func() { a.CheckBackward(g, bf16) },
				"Start absent"},
			checked{fmt.Sprint("DiffAttentionBackward's gradients ", lam), back,
				func() { a.CheckBackward(g, bf16) }, ""})
		c := cache(32, 32)
		ids, pos := i32(1, 6), i32(1, 6)
		cached := map[string]*tensor.Tensor{"Q": &a.Q, "Lam": &a.Lam, "Out": &a.Out, "Raw": &a.Raw, "Rstd": &a.Rstd,
			"w": &a.Norm.Weight, "slot": &ids, "pos": &pos, "K": &c.K, "V": &c.V, "Table": &c.Table}
		out = append(out, checked{fmt.Sprint("DiffAttentionCached ", lam), cached,
			func() { a.CheckCached(c, ids, pos, bf16) }, "Raw absent, Rstd absent, w absent, Table rows, Table cols"})
	}
	a, _ := attn(true)
	c := cache(16, 32)
	ids, pos, k, v := i32(1, 6), i32(1, 6), a16(6, 16), a16(6, 32)
	out = append(out, checked{"AttentionCached",
		map[string]*tensor.Tensor{"Q": &a.Q, "Out": &a.Out, "Raw": &a.Raw, "Rstd": &a.Rstd, "w": &a.Norm.Weight,
			"slot": &ids, "pos": &pos, "K": &c.K, "V": &c.V, "Table": &c.Table},
		func() { a.CheckCached(c, ids, pos, bf16) }, "Raw absent, Rstd absent, w absent, Table rows, Table cols"},
		checked{"CacheWrite", map[string]*tensor.Tensor{"k": &k, "v": &v, "slot": &ids, "pos": &pos, "K": &c.K,
			"V": &c.V, "Table": &c.Table}, func() { c.CheckWrite(k, v, ids, pos, bf16) }, "Table rows, Table cols"})
	cl := &Classifier{X: a16(6, 8), W: a16(9, 8), Targets: i32(1, 6), Loss: f32(1, 6), DX: a16(6, 8), DW: f32(9, 8)}
	part := &Classifier{X: a16(6, 8), W: a16(9, 8), Targets: i32(1, 6), Loss: f32(1, 6), Part: f32(2, 6)}
	parts := *cl
	parts.Parts = f32(4, 6)
	adam := &AdamW{W: a16(1, 10), Master: f32(1, 10), M: f32(1, 10), V: f32(1, 10), G: f32(1, 10), Rate: f32(1, 3),
		GradSq: f32(1, 1), RoundBF16: true}
	half := &AdamW{W: a16(1, 10), Master: at(tensor.I16, 1, 10), M: f32(1, 10), V: f32(1, 10), G: f32(1, 10),
		Rate: f32(1, 3), GradSq: f32(1, 1)}
	return append(out,
		checked{"Classify", map[string]*tensor.Tensor{"X": &cl.X, "W": &cl.W, "Targets": &cl.Targets, "Loss": &cl.Loss,
			"DX": &cl.DX, "DW": &cl.DW}, func() { cl.Check(bf16) }, ""},
		checked{"Classify of a part", map[string]*tensor.Tensor{"X": &part.X, "Targets": &part.Targets,
			"Loss": &part.Loss, "Part": &part.Part}, func() { part.Check(bf16) }, "Part absent"},
		checked{"Classify of parts", map[string]*tensor.Tensor{"Parts": &parts.Parts}, func() { parts.Check(bf16) },
			"Parts absent"},
		checked{"AdamW", map[string]*tensor.Tensor{"W": &adam.W, "Master": &adam.Master, "M": &adam.M, "V": &adam.V,
			"G": &adam.G, "Rate": &adam.Rate, "GradSq": &adam.GradSq}, func() { adam.Check(bf16) }, "W type"},
		checked{"AdamW in halves", map[string]*tensor.Tensor{"W": &half.W, "Master": &half.Master, "M": &half.M},
			func() { half.Check(bf16) }, "Master absent"})
}

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

// Geometry: every number must be positive but batch and length, and groups divide heads; an even rotary width; keys of
// one or two; chunks of four numbers; a cache with pages.
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
