//go:build !purego

package simd

func fetch(at uintptr)
