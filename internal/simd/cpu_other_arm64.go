//go:build !linux && !darwin

package simd

// hasBF16 is unknown here.
func hasBF16() bool { return false }
