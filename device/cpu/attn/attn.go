// Package attn is the CPU device's attention: plain attention (one softmax map per head) and differential attention
// (two), forward, backward and from a paged cache, on internal/simd. device/cpu checks the arguments and calls an
// Engine.
//
// A T×T map is never stored: a query tile attends to one key tile after the other with an online softmax. An op holds
// the arguments in progress, a shape (geometry and masks) and a packer (all that knows whether factors are float32 or
// bfloat16). The passes forward, backward and cached are built on an op; queries and column are one worker's state of a
// query tile and of a key tile. A pass hands tasks to the device's workers. However tasks are cut, every output element
// is one chain of operations in an order that depends on the shape alone: results do not depend on the number of
// workers.
//
// Files: one type per file, named after it; a pass that takes several files has its name in front, as in
// backward_prepare.go.
//
// Words: a panel is the strip of rows or columns that simd packs together. A tile is a range of queries or keys
// (queryTile, keyTile). A chunk is the sequences in progress, an area the memory of their packed operands. A band is
// the key tiles whose gradients one task owns. Of a cache: a slot is a sequence, a bundle rows of one slot at
// consecutive positions, a stretch two key tiles, a piece some groups of one stretch of one bundle, a block the 16
// positions of simd.AttnFew.
package attn

import (
	"antiphase/device"
	"antiphase/internal/simd"
)

// Task is a parallel loop: tile i is done by the given worker. The result must not depend on which worker gets a tile.
type Task interface{ Tile(i, worker int) }

// Pool is what attention borrows from the device: its workers and their memory.
type Pool interface {
	Workers() int
	Run(n int, t Task)                // does tiles 0…n−1 and returns when all are done
	Buf(worker, n int) []float32      // n floats of the worker's own, valid until its next call
	Scratch(worker int) *simd.Scratch // the worker's room for packed operands
	Room(n int) []float32             // n floats shared by all workers, valid until the next call
}

// Engine runs attention ops, one at a time. It keeps their arguments and memory, so that a step allocates nothing.
type Engine struct {
	// Budget bounds, in floats, the packed operands and partial sums that are alive at once: sequences are handled in
	// chunks that fit, at least one at a time. A sequence's bits do not depend on its chunk. A test lowers it.
	Budget int

	pool    Pool
	bf16    bool // operands of products are bfloat16
	workers []worker

	gain    []float32 // the head norm's weight, widened, or ones
	dnorm   []float64 // sum of the norm weight's gradient
	posts   []float32 // packer.post, for each row of a query tile
	bundles []bundle  // of a cached op

	forward  forward
	backward backward
	cached   cached
	write    cacheWrite
}

// worker is what attention keeps for one worker of the pool.
type worker struct {
	id       int
	pool     Pool
	scratch  *simd.Scratch
	softmax  simd.SoftmaxBack // factors of the current row
	tile     simd.AttnTile
	soft     simd.SoftTile
	softBack simd.SoftTileBack
	rows     simd.AttnRows
	grad     simd.AttnGrad
	few      simd.AttnFew
	norm     simd.NormBack
	mix      simd.MixNorm
	hi       []int32 // of few
	window   windows
	_        [64]byte // workers do not share cache lines
}

// buf is n floats owned by the worker, valid until its next call; their content is arbitrary.
func (w *worker) buf(n int) []float32 { return w.pool.Buf(w.id, n) }

// New makes an engine; half means that operands of products are bfloat16.
func New(p Pool, half bool) *Engine {
	e := &Engine{Budget: 8 << 20, pool: p, bf16: half, workers: make([]worker, p.Workers())}
	for i := range e.workers {
		w := &e.workers[i]
		w.id, w.pool, w.scratch = i, p, p.Scratch(i)
	}
	return e
}

// Matrix is a matrix in memory; the zero value is an absent one.
type Matrix struct {
	simd.View
	Rows, Cols int
}

// farLen is the number of elements above which a matrix is written with non-temporal stores.
const farLen = 1 << 18

func (m *Matrix) ok() bool  { return m.X != nil || m.H != nil }
func (m *Matrix) far() bool { return m.Rows*m.Cols >= farLen }

// Args are the arguments of plain attention, with one map, and of differential attention, with two.
type Args struct {
	Shape device.AttnShape
	Maps  int     // softmax maps per head
	Keys  int     // key heads per group
	Start []int32 // see device.Attn; nil: 0 for all rows
	Norm  Norm
	Tensors
}

// Norm is device.HeadNorm.
type Norm struct {
	On         bool
	Weight     Matrix
	Eps, Scale float64
}

// Tensors are the matrices of device.Attn and device.DiffAttn.
type Tensors struct {
	Q, K, V        Matrix
	Out, Raw, Out2 Matrix
	LSE, Rstd, Lam Matrix // float32
}

// Grads are the matrices of device.AttnGrad and device.DiffAttnGrad.
type Grads struct {
	DOut, DQ, DK, DV, DLam Matrix
	DNorm                  []float32
}

// Forward is Attention and DiffAttention.
func (e *Engine) Forward(a *Args) {
	e.forward = forward{op: e.op(a)}
	e.forward.run()
}

// Backward is AttentionBackward and DiffAttentionBackward.
func (e *Engine) Backward(a *Args, g *Grads) {
	e.backward = backward{backwardRoom: backwardRoom{op: e.op(a)}, grad: *g}
	e.backward.run()
}

// Cached is AttentionCached and DiffAttentionCached: rows attend to the cache. If a position has no page it returns an
// error and does nothing.
func (e *Engine) Cached(a *Args, c Cache, p Places) error {
	e.cached = cached{op: e.op(a), pages: pages{Cache: c}, at: p}
	if err := e.cached.check(p, true); err != nil {
		return err
	}
	e.cached.run()
	return nil
}

// CacheWrite stores rows of k and v in the cache, in its dtype, or returns an error as Cached does.
func (e *Engine) CacheWrite(c Cache, k, v Matrix, p Places) error {
	e.write = cacheWrite{pages: pages{Cache: c}, k: k, v: v, at: p}
	if err := e.write.check(p, false); err != nil {
		return err
	}
	e.pool.Run((len(p.Pos)+writeRows-1)/writeRows, &e.write)
	return nil
}
