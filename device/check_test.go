package device

import (
	"fmt"
	"strings"
	"testing"

	"antiphase/tensor"
)

var bf16 = Types{Act: tensor.BF16, Stat: tensor.F32, Cache: tensor.BF16}

func at(d tensor.DType, rows, cols int) tensor.Tensor {
	return tensor.Tensor{Buf: &tensor.Buffer{}, Type: d, Rows: rows, Cols: cols, Ld: cols}
}

func a16(rows, cols int) tensor.Tensor { return at(tensor.BF16, rows, cols) }
func f32(rows, cols int) tensor.Tensor { return at(tensor.F32, rows, cols) }
func i32(rows, cols int) tensor.Tensor { return at(tensor.I32, rows, cols) }

var none tensor.Tensor

// text is the panic of f, or "".
func text(f func()) (s string) {
	defer func() {
		if r := recover(); r != nil {
			s = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

// attn is a valid attention of B=2 T=3 H=4 G=2 D=8 DV=16 with its gradients.
func attn(norm bool) (*Attn, *AttnGrad) {
	a := &Attn{AttnShape: AttnShape{B: 2, T: 3, Heads: 4, Groups: 2, D: 8, DV: 16}, Q: a16(6, 32), K: a16(6, 16),
		V: a16(6, 32), Start: i32(1, 6), Out: a16(6, 64), LSE: f32(6, 4)}
	g := &AttnGrad{DOut: a16(6, 64), DQ: a.Q, DK: a.K, DV: a.V}
	if norm {
		a.Norm = HeadNorm{On: true, Weight: a16(1, 16)}
		a.Raw, a.Rstd, g.DNorm = a16(6, 64), f32(6, 4), f32(1, 16)
	}
	return a, g
}

// diff is a valid differential attention of the same shape.
func diff(keys int, lam tensor.Tensor) (*DiffAttn, *DiffAttnGrad) {
	a := &DiffAttn{AttnShape: AttnShape{B: 2, T: 3, Heads: 4, Groups: 2, D: 8, DV: 16}, Keys: keys,
		Norm: HeadNorm{On: true}, Q: a16(6, 64), K: a16(6, 16*keys), V: a16(6, 32), Lam: lam, Out: a16(6, 64),
		Raw: a16(6, 64), Out2: a16(6, 64), LSE: f32(6, 8), Rstd: f32(6, 4)}
	return a, &DiffAttnGrad{DOut: a16(6, 64), DQ: a.Q, DK: a.K, DV: a.V, DLam: f32(6, 4)}
}

func cache(kw, vw int) *Cache {
	return &Cache{K: a16(32, kw), V: a16(32, vw), Table: i32(2, 4), PageSize: 4}
}

// right is a call of every check that must pass; the same list shows that passing allocates nothing.
func right() func() {
	plain, pg := attn(false)
	normed, ng := attn(true)
	one, og := diff(1, f32(1, 1))
	two, tg := diff(2, f32(6, 4))
	bare := *normed
	bare.Raw, bare.Rstd = none, none
	vecs := LambdaVecs{f32(1, 8), f32(1, 8), f32(1, 8), f32(1, 8)}
	cl := &Classifier{X: a16(6, 8), W: a16(9, 8), Targets: i32(1, 6), Loss: f32(1, 6)}
	grad := *cl
	grad.DX, grad.DW = a16(6, 8), f32(9, 8)
	adam := &AdamW{W: a16(2, 5), Master: f32(1, 10), M: f32(1, 10), V: f32(1, 10), G: f32(2, 5), Rate: f32(1, 3),
		GradSq: f32(1, 1), RoundBF16: true}
	c1, c2, c3 := cache(16, 32), cache(16, 32), cache(32, 32)
	ids, x, y, w := i32(1, 6), a16(6, 8), a16(6, 8), a16(1, 8)
	wide, table, dtable, vec, row, one1 := a16(6, 16), a16(9, 8), f32(9, 8), f32(1, 8), f32(1, 6), f32(1, 1)
	six9, wide16 := a16(6, 9), a16(8, 16)
	probs, angles, k, v := f32(2, 3), f32(50, 4), a16(6, 16), a16(6, 32)
	return func() {
		CheckZero(ids)
		CheckCopy(x, y)
		CheckAdd(table, dtable)
		CheckAddBias(x, w, bf16)
		CheckBiasBackward(vec, x, bf16)
		CheckEmbed(x, table, ids, bf16)
		CheckEmbedBackward(dtable, x, ids, bf16)
		CheckMatMul(wide, x, wide16, MatMul{}, bf16)
		CheckMatMul(dtable, six9, x, MatMul{TransA: true, Accumulate: true}, bf16)
		CheckMatMul(six9, x, table, MatMul{TransB: true}, bf16)
		CheckRMSNorm(x, none, none, y, none, w, bf16)
		CheckRMSNorm(x, row, y, y, x, w, bf16)
		CheckRMSNormBackward(x, vec, y, x, w, row, bf16)
		Rope{Heads: 2, Dim: 4}.Check(x, angles, ids, bf16)
		CheckSwiGLU(x, wide, bf16)
		CheckSwiGLUBackward(wide, x, x, wide, bf16)
		CheckSubtractHeads(x, wide, one1, 2, bf16)
		CheckSubtractHeadsBackward(wide, dtable.RowRange(0, 6), x, wide, dtable.RowRange(1, 7), 8, bf16)
		plain.Check(bf16)
		plain.CheckBackward(pg, bf16)
		normed.Check(bf16)
		normed.CheckBackward(ng, bf16)
		bare.CheckCached(c1, ids, ids, bf16)
		one.Check(bf16)
		one.CheckBackward(og, bf16)
		one.CheckCached(c2, ids, ids, bf16)
		two.Check(bf16)
		two.CheckBackward(tg, bf16)
		two.CheckCached(c3, ids, ids, bf16)
		c1.CheckWrite(k, v, ids, ids, bf16)
		CheckAttentionProbs(probs, x, y, Probs{T: 3, D: 4, Seq: 1, Row: 1, QHead: 1}, bf16)
		CheckLambda(one1, vecs, bf16)
		CheckLambdaBackward(vecs, probs, vecs, bf16)
		CheckSigmoid(row, row, bf16)
		CheckSigmoidBackward(x, y, x, bf16)
		cl.Check(bf16)
		grad.Check(bf16)
		CheckSumSquares(one1, x, bf16)
		adam.Check(bf16)
	}
}

func TestChecksPass(t *testing.T) {
	if s := text(right()); s != "" {
		t.Fatal(s)
	}
	if n := testing.AllocsPerRun(10, right()); n != 0 {
		t.Errorf("checks that pass allocate %v times", n)
	}
}

// wrong are calls that must panic, with what their text must say.
var wrong = map[string]struct {
	do   func()
	want []string
}{
	"matmul": {func() { CheckMatMul(f32(3, 4), a16(3, 5), a16(4, 6), MatMul{TransB: true, Accumulate: true}, bf16) },
		[]string{"MatMul c += a·bᵀ", "c F32[3,4]", "a BF16[3,5]", "b BF16[4,6]"}},
	"matmul of stats": {func() { CheckMatMul(f32(3, 4), f32(3, 5), a16(5, 4), MatMul{}, bf16) },
		[]string{"a F32[3,5]"}},
	"sum alone": {func() { CheckRMSNorm(a16(2, 3), none, a16(2, 3), a16(2, 3), none, a16(1, 3), bf16) },
		[]string{"delta absent"}},
	"odd rope": {func() { Rope{Heads: 2, Dim: 3}.Check(a16(2, 6), f32(5, 3), i32(1, 2), bf16) },
		[]string{"2 heads of 3"}},
	"copy of ids":     {func() { CheckCopy(f32(1, 3), i32(1, 3)) }, []string{"src I32[1,3]"}},
	"zero of nothing": {func() { CheckZero(none) }, []string{"t absent"}},
	"rows that overlap": {func() {
		x := a16(4, 8)
		x.Ld = 7
		CheckCopy(x, a16(4, 8))
	}, []string{"BF16[4,8 ld 7]"}},
	"raw without norm": {func() {
		a, _ := attn(false)
		a.Raw = a16(6, 64)
		a.Check(bf16)
	}, []string{"Attention of B=2 T=3 H=4 G=2 D=8 DV=16", "Raw BF16[6,64]"}},
	"heads that do not divide": {func() {
		a, _ := attn(false)
		a.Groups = 3
		a.Check(bf16)
	}, []string{"G=3"}},
	"backward without lse": {func() {
		a, g := attn(true)
		a.LSE = none
		a.CheckBackward(g, bf16)
	}, []string{"LSE absent"}},
	"backward without dnorm": {func() {
		a, g := attn(true)
		g.DNorm = none
		a.CheckBackward(g, bf16)
	}, []string{"DNorm absent"}},
	"three keys": {func() {
		a, _ := diff(3, f32(1, 1))
		a.Check(bf16)
	}, []string{"Keys=3", "K BF16[6,48]"}},
	"λ in bf16": {func() {
		a, _ := diff(2, a16(6, 4))
		a.Check(bf16)
	}, []string{"Lam BF16[6,4]"}},
	"a cache of other heads": {func() {
		a, _ := diff(2, f32(1, 1))
		a.CheckCached(cache(16, 32), i32(1, 6), i32(1, 6), bf16)
	}, []string{"DiffAttentionCached", "cache K BF16[32,16]"}},
	"dx without dw": {func() {
		(&Classifier{X: a16(6, 8), W: a16(9, 8), Targets: i32(1, 6), Loss: f32(1, 6), DX: a16(6, 8)}).Check(bf16)
	}, []string{"DW absent"}},
	"rounding without master": {func() {
		(&AdamW{W: f32(1, 4), M: f32(1, 4), V: f32(1, 4), G: f32(1, 4), Rate: f32(1, 3), GradSq: f32(1, 1),
			RoundBF16: true}).Check(bf16)
	}, []string{"Master absent"}},
	"probs of a row beyond": {func() {
		CheckAttentionProbs(f32(2, 3), a16(6, 8), a16(6, 8), Probs{T: 3, D: 4, Row: 2}, bf16)
	}, []string{"Row:2", "out F32[2,3]"}},
}

func TestChecksFail(t *testing.T) {
	for name, c := range wrong {
		got := text(c.do)
		if !strings.HasPrefix(got, "device: ") {
			t.Errorf("%s: panicked with %q", name, got)
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q does not say %q", name, got, want)
			}
		}
	}
}

func TestStride(t *testing.T) {
	for _, c := range []struct {
		types      Types
		cols, want int
	}{
		{Types{Act: tensor.BF16}, 384, 384},
		{Types{Act: tensor.BF16, OddRows: true}, 384, 416}, // 12 lines become 13
		{Types{Act: tensor.BF16, OddRows: true}, 416, 416},
		{Types{Act: tensor.BF16, OddRows: true}, 385, 416},
		{Types{Act: tensor.F32, OddRows: true}, 384, 400}, // 24 lines become 25
		{Types{Act: tensor.F32, OddRows: true}, 6, 6},
	} {
		if got := c.types.Stride(c.cols); got != c.want {
			t.Errorf("%v columns of %+v lie %d apart, want %d", c.cols, c.types, got, c.want)
		}
	}
}
