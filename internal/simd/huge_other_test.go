//go:build !linux

package simd

import "testing"

func huge(_ *testing.B, n int) []float32 { return Aligned(n) }
