package cpu

import (
	"antiphase/device"
	"antiphase/device/cpu/attn"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// The attention ops check their arguments and pass them to attn.Engine, which treats plain attention as differential
// attention with one map.

// lender is the machine as attn.Pool.
type lender struct {
	*machine
	task attnTask
}

// attnTask adapts an attention task to the pool.
type attnTask struct{ attn.Task }

func (t *attnTask) tile(i, worker int) { t.Tile(i, worker) }

// Workers is the number of workers.
func (l *lender) Workers() int { return len(l.workers) }

// Run distributes tiles 0…n−1 of t to the workers and waits for all.
func (l *lender) Run(n int, t attn.Task) {
	l.task.Task = t
	l.run(n, &l.task)
}

// Buf, Scratch and Room are buf, scratch and room.
func (l *lender) Buf(worker, n int) []float32      { return l.buf(worker, n) }
func (l *lender) Scratch(worker int) *simd.Scratch { return l.scratch(worker) }
func (l *lender) Room(n int) []float32             { return l.room(n) }

// matrix converts a tensor for attention.
func matrix(t tensor.Tensor) attn.Matrix {
	m := matOf(t)
	return attn.Matrix{View: simd.View{X: m.x, H: m.h, Ld: m.ld}, Rows: m.rows, Cols: m.cols}
}

// diffArgs are the arguments of differential attention.
func diffArgs(a *device.DiffAttn) attn.Args {
	return attn.Args{
		Shape: a.AttnShape, Maps: 2, Keys: a.Keys, Start: starts(a.Start),
		Norm: attn.Norm{On: a.Norm.On, Weight: matrix(a.Norm.Weight), Eps: a.Norm.Eps, Scale: a.Norm.Scale},
		Tensors: attn.Tensors{Q: matrix(a.Q), K: matrix(a.K), V: matrix(a.V), Lam: matrix(a.Lam), Out: matrix(a.Out),
			Raw: matrix(a.Raw), Out2: matrix(a.Out2), LSE: matrix(a.LSE), Rstd: matrix(a.Rstd)},
	}
}

// plainArgs are the arguments of plain attention.
func plainArgs(a *device.Attn) attn.Args {
	args := diffArgs(&device.DiffAttn{AttnShape: a.AttnShape, Keys: 1, Norm: a.Norm, Q: a.Q, K: a.K, V: a.V,
		Start: a.Start, Out: a.Out, Raw: a.Raw, LSE: a.LSE, Rstd: a.Rstd})
	args.Maps = 1
	return args
}

// starts are the first keys of rows, nil if absent.
func starts(t tensor.Tensor) []int32 {
	if !t.Ok() {
		return nil
	}
	return i32(t)
}

func attnCache(c *device.Cache) attn.Cache {
	return attn.Cache{K: matrix(c.K), V: matrix(c.V), Table: i32(c.Table), LdTable: c.Table.Ld,
		Slots: c.Table.Rows, Pages: c.Table.Cols, PageSize: c.PageSize}
}

func attnPlaces(slot, pos tensor.Tensor) attn.Places {
	return attn.Places{Slot: i32(slot), Pos: i32(pos)}
}
