package disttest

import (
	"fmt"

	"antiphase/tensor"
)

// perform executes a collective for all ranks, in plain loops.
func (k *call) perform() {
	switch k.op {
	case "AllReduce":
		switch k.ins[0].Type {
		case tensor.F32:
			reduce[float32](k)
		case tensor.F64:
			reduce[float64](k)
		}
	case "ReduceScatter":
		switch k.ins[0].Type {
		case tensor.F32:
			reduceScatter[float32](k)
		case tensor.F64:
			reduceScatter[float64](k)
		}
	case "AllGather":
		k.gather()
	case "Broadcast":
		src := bytesOf(k.ins[k.root])
		for _, t := range k.outs {
			copy(bytesOf(t), src)
		}
	case "Barrier":
	default:
		panic("disttest: " + k.op)
	}
}

// piece is the number of elements summed at a time, which stay in cache until every rank has them.
const piece = 1 << 12

// sums computes Σ over ranks in rank order, piece by piece, and passes it to put; at is the start of a piece.
func sums[E float32 | float64](k *call, put func(at int, sum []E)) {
	var room [piece]E
	n := k.ins[0].Len()
	for at := 0; at < n; at += piece {
		end := min(at+piece, n)
		sum := room[:end-at]
		copy(sum, tensor.Host[E](k.ins[0])[at:end])
		for _, t := range k.ins[1:] {
			for i, x := range tensor.Host[E](t)[at:end] {
				sum[i] += x
			}
		}
		put(at, sum)
	}
}

func reduce[E float32 | float64](k *call) {
	sums(k, func(at int, sum []E) {
		for _, t := range k.outs {
			copy(tensor.Host[E](t)[at:], sum)
		}
	})
}

// reduceScatter gives every rank its part. A rank's out may alias its in: each element is read before it is written.
func reduceScatter[E float32 | float64](k *call) {
	sums(k, func(at int, sum []E) {
		for r, t := range k.outs {
			part := t.Len()
			from, to := max(at, r*part), min(at+len(sum), (r+1)*part)
			if from < to {
				copy(tensor.Host[E](t)[from-r*part:], sum[from-at:to-at])
			}
		}
	})
}

func (k *call) gather() {
	var whole []byte
	for _, t := range k.ins {
		whole = append(whole, bytesOf(t)...)
	}
	for _, t := range k.outs {
		copy(bytesOf(t), whole)
	}
}

func bytesOf(t tensor.Tensor) []byte {
	if t.Buf.Host == nil {
		panic(fmt.Sprintf("disttest: %v is not in host memory", t))
	}
	return t.Buf.Host[t.Off : t.Off+t.Len()*t.Type.Size()]
}
