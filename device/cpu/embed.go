package cpu

import (
	"fmt"

	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

type embedTask struct {
	grid
	out, table tensor.Tensor
	ids        []int32
}

type embedBackwardTask struct {
	dtable, dout mat
	ids          []int32
	d            *machine
}

// Embed: out[n,:] = table[ids[n],:]. The row of a wrong id becomes zero.
func (d *rowOps) Embed(out, table, ids tensor.Tensor) {
	device.CheckEmbed(out, table, ids, d.Types())
	d.touch(out)
	d.checkIDs("embed", i32(ids), table.Rows, true)
	d.embed = embedTask{gridOf(out.Rows, out.Cols), out, table, i32(ids)}
	d.run(d.embed.tiles(), &d.embed)
}

// checkIDs reports whether all ids are in [0,n), or Elsewhere if allowed, and records a fault for the first that is
// not.
func (d *rowOps) checkIDs(op string, ids []int32, n int, elsewhere bool) bool {
	for i, id := range ids {
		if (id < 0 || int(id) >= n) && !(elsewhere && id == device.Elsewhere) {
			d.fail(fmt.Errorf("cpu: %s: id %d of row %d is outside a table of %d rows", op, id, i, n))
			return false
		}
	}
	return true
}

func (t *embedTask) tile(i, _ int) {
	r0, r1, c0, c1 := t.bounds(i)
	for r := r0; r < r1; r++ {
		out, id := t.out.Buf.Host[place(t.out, r, c0):place(t.out, r, c1)], int(t.ids[r])
		if id < 0 || id >= t.table.Rows {
			clear(out)
			continue
		}
		copy(out, t.table.Buf.Host[place(t.table, id, c0):])
	}
}

// EmbedBackward accumulates: dtable[ids[n],:] += dout[n,:], rows in order of n. A wrong id adds nothing.
func (d *rowOps) EmbedBackward(dtable, dout, ids tensor.Tensor) {
	device.CheckEmbedBackward(dtable, dout, ids, d.Types())
	d.touch(dtable)
	d.checkIDs("embed backward", i32(ids), dtable.Rows, true)
	d.reserve(colStep)
	d.embedBackward = embedBackwardTask{matOf(dtable), matOf(dout), i32(ids), d.machine}
	d.run((dout.Cols+colStep-1)/colStep, &d.embedBackward)
}

func (t *embedBackwardTask) tile(i, worker int) {
	c0 := i * colStep
	c1 := min(c0+colStep, t.dout.cols)
	buf := t.d.buf(worker, colStep)
	for r, id := range t.ids {
		if id >= 0 && int(id) < t.dtable.rows {
			dst := t.dtable.piece(int(id), c0, c1)
			simd.Add(dst, dst, t.dout.read(r, c0, c1, buf))
		}
	}
}
