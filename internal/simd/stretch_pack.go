package simd

// PackTurnedHalves is PackBBF16 with trans for b [n,k] of bfloat16.
func PackTurnedHalves(dst []uint16, k, n int, b []uint16, ldb int) {
	PackBBF16(dst, k, n, View{H: b, Ld: ldb}, true, k)
}

// PackHalves is PackBBF16 for b [k,n] of bfloat16, part of an operand with depth elements of k.
func PackHalves(dst []uint16, k, n int, b []uint16, ldb, depth int) {
	PackBBF16(dst, k, n, View{H: b, Ld: ldb}, false, depth)
}
