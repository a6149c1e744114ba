package cpu

import (
	"fmt"
	"slices"

	"antiphase/internal/simd"
	"antiphase/tensor"
)

// Precision is how the device multiplies, and the dtype of its tensors. Sums are float32, except those of Int8.
type Precision int

// The precisions. BF16 keeps weights and activations in bfloat16, and master weights, statistics and gradients of
// weights in float32; the others have float32 tensors. Int8 is for inference: y = x·Wᵀ takes W as int8 with a scale per
// row and x as 16-bit integers with a scale per row, which is far finer than bfloat16, and sums them exactly; other
// products, and sums of more than 65,536, are as with BF16.
const (
	FP32 Precision = iota
	BF16
	Int8
)

var precisions = []string{"fp32", "bf16", "int8"}

// String is the precision's name.
func (p Precision) String() string { return precisions[p] }

// ParsePrecision is the precision of a name: fp32, bf16, int8, or auto for BestPrecision.
func ParsePrecision(name string) (Precision, error) {
	if name == "auto" {
		return BestPrecision(), nil
	}
	if i := slices.Index(precisions, name); i >= 0 {
		return Precision(i), nil
	}
	return 0, fmt.Errorf("%q is not a precision; there are auto, fp32, bf16 and int8", name)
}

// BestPrecision is the fastest one that is sound for training on this machine: BF16 if tiles multiply it many times
// faster than float32, otherwise FP32.
func BestPrecision() Precision {
	if simd.Name() == "amx" {
		return BF16
	}
	return FP32
}

// Precision is how this device multiplies.
func (d *machine) Precision() Precision { return d.precision }

// Products is the dtype that operands of products are rounded to.
func (d *machine) Products() tensor.DType {
	if d.precision == FP32 {
		return tensor.F32
	}
	return tensor.BF16
}

// act is the dtype of weights and activations. Int8 keeps float32: its weights are int8 anyway, and its rows are
// rounded to 16 bits.
func (p Precision) act() tensor.DType {
	if p == BF16 {
		return tensor.BF16
	}
	return tensor.F32
}
