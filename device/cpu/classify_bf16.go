package cpu

import (
	"math"
	"slices"

	"antiphase/device"
	"antiphase/internal/half"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// classifyBF16 is Classify with bfloat16 operands: a block of rows processes the classes strip after strip, and the
// result of a product is turned into exponentials while it is in L2. With s = Σ exp(y − top) along a row,
//
//	loss = log s + top − y[target],  e = exp(y − top) − s·onehot,  f = Scale/s,  dy = f·e
//
// only e is kept, in bfloat16: f is the same along a row, so that DX = f·(e·W) and DW += eᵀ·(f·X), where f·X is rounded
// again. top only needs to keep exponentials in range. It comes from a coarse grid, and is almost always 0, so that
// strips need not wait for each other.
type classifyBF16 struct {
	d       *machine
	g       *gemmBF16
	e       mat // [rows, vocab], absent without gradients
	targets []int32
	loss    []float32
	scale   float64
	factor  []float32 // [rows]: f
	hit     []float32 // [rows]: the target's logit
	tops    []float32 // [rows, strips]
	sums    []float32 // [rows, strips]
	strips  int
	across  int // strips per tile
	ld      int // of a block of logits
	split   split
}

// classifyFinish combines the strips of a row. classifyGrad applies f to rows of x and of the product for dx.
type (
	classifyFinish classifyBF16
	classifyGrad   struct {
		d         *machine
		dx, raw   mat
		scaled, x mat
		factor    []float32
		step      int // rows per tile
	}
)

const (
	// classifyRows × classifyCols is a block of logits: it fills less than half of L2.
	classifyRows, classifyCols = 8 * panel, 24 * panel
	// tops are multiples of classifyGrid. exp(±classifyGrid/2) leaves room for the exponentials of smaller logits.
	classifyGrid = 64
)

// classifyBF16 runs over chunks of rows. DW's sum runs over the rows in order, chunk after chunk.
func (d *products) classifyBF16(x, w, dx, dw mat, targets []int32, loss []float32, scale float64, split split) {
	vocab, act, stat := w.rows, device.Types{Act: tensor.BF16, OddRows: true},
		device.Types{Act: tensor.F32, OddRows: true}
	strips, ld, short, wide := (vocab+classifyCols-1)/classifyCols, act.Stride(vocab), act.Stride(x.cols),
		stat.Stride(x.cols)
	if !dx.ok() {
		ld, short, wide = 0, 0, 0
	}
	step := min(x.rows, max(panel, d.maxLogits/(2*ld+2*short+4*wide+8*strips)/panel*panel))
	sizeE, sizeX := lineFloats(step*ld), lineFloats(step*short)
	room := d.logits.floats(&d.memory, sizeE+sizeX+step*(wide+2+2*strips))
	eRoom, xRoom, raw := simd.Halves(simd.Cut(&room, sizeE)), simd.Halves(simd.Cut(&room, sizeX)),
		simd.Cut(&room, step*wide)
	t := &d.classifyBlocks
	*t = classifyBF16{d: d.machine, g: &d.matmulBF16, scale: scale, factor: simd.Cut(&room, step),
		hit: simd.Cut(&room, step), tops: simd.Cut(&room, step*strips), sums: simd.Cut(&room, step*strips),
		strips: strips, ld: stat.Stride(classifyCols)}
	for n := 0; n < x.rows; n += step {
		rows := min(step, x.rows-n)
		some := x.rowsFrom(n, rows)
		t.targets, t.loss, t.split = targets[n:n+rows], loss[n:n+rows], split.from(n)
		if dx.ok() {
			t.e = mat{h: eRoom[:rows*ld], rows: rows, cols: vocab, ld: ld}
		}
		t.run(some, w)
		if !dx.ok() {
			continue
		}
		g := &d.classifyGrad
		*g = classifyGrad{d.machine, dx.rowsFrom(n, rows), mat{x: raw, rows: rows, cols: x.cols, ld: wide},
			mat{h: xRoom, rows: rows, cols: x.cols, ld: short}, some, t.factor, rowsPerTile(x.cols)}
		d.gemm(g.raw, t.e, w, vocab, device.MatMul{})
		d.reserve(x.cols)
		d.run((rows+g.step-1)/g.step, g)
		d.gemm(dw, t.e, g.scaled, rows, device.MatMul{TransA: true, Accumulate: true})
	}
}

// lineFloats is the number of floats in the cache lines of n bfloat16 values.
func lineFloats(n int) int { return (n + 31) / 32 * 16 }

// run computes losses, and e, of rows x. A tile is a block of rows and some strips, enough of them for all workers.
func (t *classifyBF16) run(x, w mat) {
	d, g := t.d, t.g
	*g = gemmBF16{d: d, c: mat{rows: x.rows, cols: w.rows}, a: x, b: w, transB: true, k: x.cols,
		direct: simd.RowsBF16(x.at(0, 0), x.cols), mb: classifyRows, nb: classifyCols}
	g.cutRun()
	g.packRight()
	g.packLeft()
	down := (x.rows + classifyRows - 1) / classifyRows
	across := min(t.strips, (4*len(d.workers)+down-1)/down)
	t.across = (t.strips + across - 1) / across
	d.reserve(classifyRows * t.ld)
	d.run(down*t.tilesAcross(), t)
	d.run(x.rows, (*classifyFinish)(t))
}

// tilesAcross is the number of tiles in a row of tiles.
func (t *classifyBF16) tilesAcross() int { return (t.strips + t.across - 1) / t.across }

func (t *classifyBF16) tile(i, worker int) {
	g, from, strip := t.g, i/t.tilesAcross()*classifyRows, i%t.tilesAcross()*t.across
	m := min(classifyRows, g.c.rows-from)
	logits := t.d.buf(worker, classifyRows*t.ld)
	for end := min(strip+t.across, t.strips); strip < end; strip++ {
		j := strip * classifyCols
		n := min(classifyCols, g.c.cols-j)
		g.block(simd.View{X: logits, Ld: t.ld}, from, m, j, n, worker)
		for r := range m {
			t.row(from+r, strip, logits[r*t.ld:][:n])
		}
	}
}

// target is row r's, if it has one; it is negative if another rank has the class.
func (t *classifyBF16) target(r int) (class int, ok bool) {
	class = int(t.targets[r])
	return class, class >= 0 && class < t.g.c.cols || t.split.on && class == device.Elsewhere
}

// row adds the logits of a strip to row r.
func (t *classifyBF16) row(r, strip int, y []float32) {
	class, ok := t.target(r)
	if !ok {
		return
	}
	at, j := r*t.strips+strip, strip*classifyCols
	if class >= j && class < j+len(y) {
		t.hit[r] = y[class-j]
	}
	top := classifyGrid * float32(math.Round(float64(simd.Max(y)/classifyGrid)))
	t.tops[at] = top
	switch {
	case t.e.ok() && simd.VectorsBF16():
		t.sums[at] = simd.ExpSumBF16(t.e.half(r, j, j+len(y)), y, 1, top)
	case t.e.ok():
		t.sums[at] = simd.ExpSum(y, y, 1, top)
		simd.NarrowBF16(t.e.half(r, j, j+len(y)), y)
	default:
		t.sums[at] = simd.ExpSum(y, y, 1, top)
	}
}

// tile: the loss and the factor of row r, and e at its target.
func (f *classifyFinish) tile(r, _ int) {
	t := (*classifyBF16)(f)
	class, ok := t.target(r)
	if !ok && t.split.part != nil {
		t.split.put(r, 0, 0)
		return
	}
	if !ok {
		t.loss[r], t.factor[r] = 0, 0
		if t.e.ok() {
			clear(t.e.half(r, 0, t.e.cols))
		}
		return
	}
	tops, sums := t.tops[r*t.strips:][:t.strips], t.sums[r*t.strips:][:t.strips]
	top, sum := slices.Max(tops), 0.0
	lse, hit := 0.0, float64(t.hit[r])
	if t.split.parts != nil {
		lse, hit = t.split.all(r)
		top = max(top, classifyGrid*float32(math.Round(lse/classifyGrid)))
	}
	for i := range sums {
		if tops[i] != top {
			sums[i] *= t.shrink(r, i, top-tops[i])
		}
		sum += float64(sums[i])
	}
	switch {
	case t.split.part != nil:
		if class < 0 {
			hit = 0
		}
		t.split.put(r, math.Log(sum)+float64(top), hit)
		return
	case t.split.parts != nil:
		sum = math.Exp(lse - float64(top))
		t.loss[r] = float32(lse - hit)
	default:
		t.loss[r] = float32(math.Log(sum) + float64(top) - hit)
	}
	t.factor[r] = float32(t.scale / sum)
	if t.e.ok() && class >= 0 {
		t.e.h[r*t.e.ld+class] = half.F32ToBF16(float32(math.Exp(float64(t.hit[r])-float64(top)) - sum))
	}
}

// shrink rescales the exponentials of a strip of row r to a top that is higher by by, and returns the factor. Values
// that are negligible in the row's sum become 0, before they become subnormal numbers, which are slow.
func (t *classifyBF16) shrink(r, strip int, by float32) float32 {
	const least = 1e-9
	var f float32
	if by < 2*classifyGrid {
		f = float32(math.Exp(-float64(by)))
	}
	if t.e.ok() {
		e := t.e.half(r, strip*classifyCols, min((strip+1)*classifyCols, t.e.cols))
		for i, h := range e {
			x := half.BF16ToF32(h)
			if x < least {
				x = 0
			}
			e[i] = half.F32ToBF16(x * f)
		}
	}
	return f
}

func (g *classifyGrad) tile(i, worker int) {
	c := g.x.cols
	buf := g.d.buf(worker, c)
	for r := i * g.step; r < min((i+1)*g.step, g.x.rows); r++ {
		raw := g.raw.row(r)
		simd.Scale(raw, g.factor[r])
		g.dx.store(r, 0, c, raw)
		x := g.x.read(r, 0, c, buf)
		simd.Scale(x, g.factor[r])
		g.scaled.store(r, 0, c, x)
	}
}
