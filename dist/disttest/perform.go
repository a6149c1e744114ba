package disttest

import (
	"fmt"

	"antiphase/tensor"
)

// perform does a collective for all ranks, in plain loops.
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

// sum is Σ over ranks in their order.
func sum[E float32 | float64](k *call) []E {
	total := append([]E{}, tensor.Host[E](k.ins[0])...)
	for _, t := range k.ins[1:] {
		for i, x := range tensor.Host[E](t) {
			total[i] += x
		}
	}
	return total
}

func reduce[E float32 | float64](k *call) {
	total := sum[E](k)
	for _, t := range k.outs {
		copy(tensor.Host[E](t), total)
	}
}

func reduceScatter[E float32 | float64](k *call) {
	total := sum[E](k)
	for r, t := range k.outs {
		copy(tensor.Host[E](t), total[r*t.Len():])
	}
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
