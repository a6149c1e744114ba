//go:build !linux && !darwin && !windows

package simd

// hasBF16 is unknown here.
func hasBF16() bool { return false }
