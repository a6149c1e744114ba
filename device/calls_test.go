package device

import (
	"fmt"
	"slices"

	"antiphase/tensor"
)

// list and places are the tensors of a call by name.
type (
	list   = map[string]tensor.Tensor
	places = map[string]*tensor.Tensor
)

// checked is a call of a check with its tensors by name, and what may be changed about one of them alone: "x absent",
// "x rows", "x cols", "x type". Everything else must panic.
type checked struct {
	name string
	args places
	call func()
	free string
}

type checks []checked

// add makes places for the tensors of a call.
func (c *checks) add(name, free string, of list, call func(a places)) {
	args := places{}
	for name, t := range of {
		args[name] = &t
	}
	*c = append(*c, checked{name, args, func() { call(args) }, free})
}

// rowChecks are the ops on rows, without attention.
func rowChecks() []checked {
	return slices.Concat(weightChecks(), headChecks(), numberChecks())
}

// weightChecks are the ops on rows with a weight or a table, and those between them.
func weightChecks() (out checks) {
	out.add("Copy", "dst type, src type", list{"dst": a16(6, 8), "src": f32(6, 8)},
		func(a places) { CheckCopy(*a["dst"], *a["src"]) })
	out.add("AddBias", "y rows", list{"y": a16(6, 8), "b": a16(1, 8)},
		func(a places) { CheckAddBias(*a["y"], *a["b"], bf16) })
	out.add("BiasBackward", "dy rows", list{"dy": a16(6, 8), "db": f32(1, 8)},
		func(a places) { CheckBiasBackward(*a["db"], *a["dy"], bf16) })
	out.add("Embed", "table rows", list{"out": a16(6, 8), "table": a16(9, 8), "ids": i32(1, 6)},
		func(a places) { CheckEmbed(*a["out"], *a["table"], *a["ids"], bf16) })
	out.add("EmbedBackward", "dtable rows", list{"dout": a16(6, 8), "dtable": f32(9, 8), "ids": i32(1, 6)},
		func(a places) { CheckEmbedBackward(*a["dtable"], *a["dout"], *a["ids"], bf16) })
	for _, op := range []MatMul{{}, {TransA: true}, {TransB: true}, {TransA: true, TransB: true}} {
		x, y := a16(6, 8), a16(8, 5)
		if op.TransA {
			x = a16(8, 6)
		}
		if op.TransB {
			y = a16(5, 8)
		}
		out.add(op.String(), "c type", list{"c": a16(6, 5), "a": x, "b": y},
			func(a places) { CheckMatMul(*a["c"], *a["a"], *a["b"], op, bf16) })
	}
	out.add("RMSNorm", "rstd absent", list{"y": a16(6, 8), "rstd": f32(1, 6), "sum": a16(6, 8), "x": a16(6, 8),
		"delta": a16(6, 8), "w": a16(1, 8)}, func(a places) {
		CheckRMSNorm(*a["y"], *a["rstd"], *a["sum"], *a["x"], *a["delta"], *a["w"], bf16)
	})
	out.add("RMSNormBackward", "", list{"dx": a16(6, 8), "dw": f32(1, 8), "dy": a16(6, 8), "x": a16(6, 8),
		"w": a16(1, 8), "rstd": f32(1, 6)}, func(a places) {
		CheckRMSNormBackward(*a["dx"], *a["dw"], *a["dy"], *a["x"], *a["w"], *a["rstd"], bf16)
	})
	out.add("Rope", "table rows", list{"x": a16(6, 8), "table": f32(50, 4), "pos": i32(1, 6)},
		func(a places) { Rope{Heads: 2, Dim: 4}.Check(*a["x"], *a["table"], *a["pos"], bf16) })
	out.add("SwiGLU", "", list{"y": a16(6, 8), "gu": a16(6, 16)},
		func(a places) { CheckSwiGLU(*a["y"], *a["gu"], bf16) })
	out.add("SwiGLUBackward", "", list{"dgu": a16(6, 16), "y": a16(6, 8), "dy": a16(6, 8), "gu": a16(6, 16)},
		func(a places) { CheckSwiGLUBackward(*a["dgu"], *a["y"], *a["dy"], *a["gu"], bf16) })
	return out
}

// headChecks are those of differential heads outside of attention.
func headChecks() (out checks) {
	for _, lam := range []tensor.Tensor{f32(1, 1), f32(6, 4)} {
		out.add(fmt.Sprint("SubtractHeads ", lam), "", list{"out": a16(6, 8), "a": a16(6, 16), "lam": lam},
			func(a places) { CheckSubtractHeads(*a["out"], *a["a"], *a["lam"], 4, bf16) })
		out.add(fmt.Sprint("SubtractHeadsBackward ", lam), "",
			list{"da": a16(6, 16), "dlam": f32(6, 4), "dout": a16(6, 8), "a": a16(6, 16), "lam": lam},
			func(a places) {
				CheckSubtractHeadsBackward(*a["da"], *a["dlam"], *a["dout"], *a["a"], *a["lam"], 4, bf16)
			})
	}
	out.add("Lambda", "", list{"lam": f32(1, 1), "q1": f32(1, 8), "k1": f32(1, 8), "q2": f32(1, 8), "k2": f32(1, 8)},
		func(a places) {
			CheckLambda(*a["lam"], LambdaVecs{*a["q1"], *a["k1"], *a["q2"], *a["k2"]}, bf16)
		})
	out.add("LambdaBackward", "dlam rows, dlam cols",
		list{"dlam": f32(6, 4), "q1": f32(1, 8), "k1": f32(1, 8), "q2": f32(1, 8), "k2": f32(1, 8)},
		func(a places) {
			v := LambdaVecs{f32(1, 8), f32(1, 8), f32(1, 8), f32(1, 8)}
			CheckLambdaBackward(LambdaVecs{*a["q1"], *a["k1"], *a["q2"], *a["k2"]}, *a["dlam"], v, bf16)
		})
	return out
}

// numberChecks are those of single numbers, of tokens and of a map.
func numberChecks() (out checks) {
	out.add("Sigmoid", "", list{"y": a16(6, 8), "x": a16(6, 8)},
		func(a places) { CheckSigmoid(*a["y"], *a["x"], bf16) })
	out.add("SigmoidBackward", "", list{"y": a16(6, 8), "dy": a16(6, 8), "dx": a16(6, 8)},
		func(a places) { CheckSigmoidBackward(*a["dx"], *a["dy"], *a["y"], bf16) })
	out.add("ArgMax", "x cols", list{"ids": i32(1, 6), "x": f32(6, 9)},
		func(a places) { CheckArgMax(*a["ids"], *a["x"], bf16) })
	out.add("SumSquares", "x rows, x cols, x type", list{"dst": f32(1, 1), "x": a16(6, 9)},
		func(a places) { CheckSumSquares(*a["dst"], *a["x"], bf16) })
	out.add("Advance", "", list{"ids": i32(1, 6), "pos": i32(1, 6), "best": i32(1, 6)},
		func(a places) { CheckAdvance(*a["ids"], *a["pos"], *a["best"]) })
	out.add("Probs", "", list{"out": f32(2, 3), "q": a16(6, 8), "k": a16(6, 4)},
		func(a places) {
			CheckAttentionProbs(*a["out"], *a["q"], *a["k"], Probs{T: 3, D: 4, Seq: 1, Row: 1, QHead: 1}, bf16)
		})
	return out
}

// opChecks are the ops whose tensors are fields of a struct.
func opChecks() []checked {
	return slices.Concat(attnChecks(), diffChecks(), cacheChecks(), classifyChecks(), adamChecks())
}

func attnChecks() (out []checked) {
	for _, norm := range []bool{false, true} {
		a, g := attn(norm)
		args := places{"Q": &a.Q, "K": &a.K, "V": &a.V, "Start": &a.Start, "LSE": &a.LSE}
		back := places{"DOut": &g.DOut, "DQ": &g.DQ, "DK": &g.DK, "DV": &g.DV}
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
	return out
}

func diffChecks() (out []checked) {
	for _, lam := range []tensor.Tensor{f32(1, 1), f32(6, 4)} {
		a, g := diff(2, lam)
		a.Norm.Weight, g.DNorm, a.Start = a16(1, 16), f32(1, 16), i32(1, 6)
		args := places{"Q": &a.Q, "K": &a.K, "V": &a.V, "Lam": &a.Lam, "Start": &a.Start,
			"LSE": &a.LSE, "Out2": &a.Out2, "Raw": &a.Raw, "Rstd": &a.Rstd, "w": &a.Norm.Weight}
		back := places{"DOut": &g.DOut, "DQ": &g.DQ, "DK": &g.DK, "DV": &g.DV, "DLam": &g.DLam,
			"DNorm": &g.DNorm}
		out = append(out, checked{fmt.Sprint("DiffAttention ", lam), args, func() { a.Check(bf16) },
			"Start absent, LSE absent, Out2 absent, w absent"},
			checked{fmt.Sprint("DiffAttentionBackward ", lam), args, func() { a.CheckBackward(g, bf16) },
				"Start absent"},
			checked{fmt.Sprint("DiffAttentionBackward's gradients ", lam), back,
				func() { a.CheckBackward(g, bf16) }, ""})
		c := cache(32, 32)
		ids, pos := i32(1, 6), i32(1, 6)
		cached := places{"Q": &a.Q, "Lam": &a.Lam, "Out": &a.Out, "Raw": &a.Raw, "Rstd": &a.Rstd,
			"w": &a.Norm.Weight, "slot": &ids, "pos": &pos, "K": &c.K, "V": &c.V, "Table": &c.Table}
		out = append(out, checked{fmt.Sprint("DiffAttentionCached ", lam), cached,
			func() { a.CheckCached(c, ids, pos, bf16) }, "Raw absent, Rstd absent, w absent, Table rows, Table cols"})
	}
	return out
}

func cacheChecks() []checked {
	a, _ := attn(true)
	c := cache(16, 32)
	ids, pos, k, v := i32(1, 6), i32(1, 6), a16(6, 16), a16(6, 32)
	return []checked{
		{"AttentionCached", places{"Q": &a.Q, "Out": &a.Out, "Raw": &a.Raw, "Rstd": &a.Rstd, "w": &a.Norm.Weight,
			"slot": &ids, "pos": &pos, "K": &c.K, "V": &c.V, "Table": &c.Table},
			func() { a.CheckCached(c, ids, pos, bf16) }, "Raw absent, Rstd absent, w absent, Table rows, Table cols"},
		{"CacheWrite", places{"k": &k, "v": &v, "slot": &ids, "pos": &pos, "K": &c.K,
			"V": &c.V, "Table": &c.Table}, func() { c.CheckWrite(k, v, ids, pos, bf16) }, "Table rows, Table cols"},
	}
}

func classifyChecks() []checked {
	cl := &Classifier{X: a16(6, 8), W: a16(9, 8), Targets: i32(1, 6), Loss: f32(1, 6), DX: a16(6, 8), DW: f32(9, 8)}
	part := &Classifier{X: a16(6, 8), W: a16(9, 8), Targets: i32(1, 6), Loss: f32(1, 6), Part: f32(2, 6)}
	parts := *cl
	parts.Parts = f32(4, 6)
	return []checked{
		{"Classify", places{"X": &cl.X, "W": &cl.W, "Targets": &cl.Targets, "Loss": &cl.Loss,
			"DX": &cl.DX, "DW": &cl.DW}, func() { cl.Check(bf16) }, ""},
		{"Classify of a part", places{"X": &part.X, "Targets": &part.Targets,
			"Loss": &part.Loss, "Part": &part.Part}, func() { part.Check(bf16) }, "Part absent"},
		{"Classify of parts", places{"Parts": &parts.Parts}, func() { parts.Check(bf16) }, "Parts absent"},
	}
}

func adamChecks() []checked {
	adam := &AdamW{W: a16(1, 10), Master: f32(1, 10), M: f32(1, 10), V: f32(1, 10), G: f32(1, 10), Rate: f32(1, 3),
		GradSq: f32(1, 1), RoundBF16: true}
	half := &AdamW{W: a16(1, 10), Master: at(tensor.I16, 1, 10), M: f32(1, 10), V: f32(1, 10), G: f32(1, 10),
		Rate: f32(1, 3), GradSq: f32(1, 1)}
	return []checked{
		{"AdamW", places{"W": &adam.W, "Master": &adam.Master, "M": &adam.M, "V": &adam.V,
			"G": &adam.G, "Rate": &adam.Rate, "GradSq": &adam.GradSq}, func() { adam.Check(bf16) }, "W type"},
		{"AdamW in halves", places{"W": &half.W, "Master": &half.Master, "M": &half.M},
			func() { half.Check(bf16) }, "Master absent"},
	}
}
