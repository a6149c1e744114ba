//go:build !linux && !darwin

package simd

// hasBF16: nobody says so here.
func hasBF16() bool { return false }
