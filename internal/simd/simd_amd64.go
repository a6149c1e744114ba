//go:build !purego

package simd

func native() []*kernels { return nil }
