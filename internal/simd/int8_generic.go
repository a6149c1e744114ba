package simd

import (
	"math"
	"unsafe"
)

var genericInt8 = int8Kernels{few: []fewInt8{fewInt8Generic}, top: topGeneric, split: splitGeneric, peak: goPeak}

// fewInt8Generic is the product of one row.
func fewInt8Generic(steps int, x *int16, step int, w *int8, head, c *float32, _ int, scale *float32,
	panels, stride int) {
	row := unsafe.Slice(x, (steps-1)*step/2+stepInt8)
	bytes, heads, out := unsafe.Slice(w, panels*stride), unsafe.Slice(head, panels*headInt8),
		unsafe.Slice(c, panels*PanelBF16)
	for q := range panels {
		panel := bytes[q*stride:]
		var sums [PanelBF16]int64
		for s := range steps {
			sumStep(&sums, row[s*step/2:][:stepInt8], panel[s*stepBytes:][:stepBytes])
		}
		for j, t := range sums {
			// The product is exact: it does not matter whether the addition swallows it.
			y := float32(t>>8)*256 + float32(t&255)
			out[q*PanelBF16+j] = float32(y*heads[q*headInt8+j]) * *scale
		}
	}
}

// sumStep adds the products of a step. Sums of 64 have room in 32 bits.
func sumStep(sums *[PanelBF16]int64, x []int16, w []int8) {
	var part [PanelBF16]int32
	for p := 0; p < stepInt8; p += 4 {
		x0, x1, x2, x3 := int32(x[p]), int32(x[p+1]), int32(x[p+2]), int32(x[p+3])
		for t := range PanelBF16 / tileBF16 {
			line := w[t*tileBF16*stepInt8+p/4*stepInt8:][:stepInt8]
			for j := range tileBF16 {
				q := line[4*j:][:4]
				part[t*tileBF16+j] += x0*int32(q[0]) + x1*int32(q[1]) + x2*int32(q[2]) + x3*int32(q[3])
			}
		}
	}
	for j, y := range part {
		sums[j] += int64(y)
	}
}

func topGeneric(x *float32, steps int) uint32 {
	var top uint32
	for _, y := range unsafe.Slice(x, steps*stepInt8) {
		top = max(top, math.Float32bits(y)&^(1<<31))
	}
	return top
}

func splitGeneric(dst *int16, x *float32, steps, stride int, inv float32) {
	out, in := unsafe.Slice(dst, (steps-1)*stride/2+stepInt8), unsafe.Slice(x, steps*stepInt8)
	for s := range steps {
		for p, y := range in[s*stepInt8:][:stepInt8] {
			out[s*stride/2+p] = int16(math.RoundToEven(float64(y * inv)))
		}
	}
}
