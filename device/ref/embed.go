package ref

import (
	"fmt"

	"antiphase/device"
	"antiphase/tensor"
)

// Embed: out[n,:] = table[ids[n],:]. An id outside the table is a fault and gives a row of zeros.
func (d *rowOps) Embed(out, table, ids tensor.Tensor) {
	device.CheckEmbed(out, table, ids, d.types)
	y, tab := newMatrix(out.Rows, out.Cols), load(table)
	for n, id := range integers(ids) {
		if d.inTable("Embed", id, table) {
			copy(y.row(n), tab.row(int(id)))
		}
	}
	store(out, y)
}

// EmbedBackward: dtable[ids[n],:] += dout[n,:].
func (d *rowOps) EmbedBackward(dtable, dout, ids tensor.Tensor) {
	device.CheckEmbedBackward(dtable, dout, ids, d.types)
	grad, dy := load(dtable), load(dout)
	for n, id := range integers(ids) {
		if d.inTable("EmbedBackward", id, dtable) {
			axpy(grad.row(int(id)), 1, dy.row(n))
		}
	}
	store(dtable, grad)
}

func (d *rowOps) inTable(op string, id int32, table tensor.Tensor) bool {
	if id == device.Elsewhere {
		return false
	}
	if id < 0 || int(id) >= table.Rows {
		d.fail(fmt.Errorf("ref: %s: id %d outside a table of %d rows", op, id, table.Rows))
		return false
	}
	return true
}
