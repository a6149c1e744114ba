//go:build !amd64 || purego

package simd

// native has no assembly to offer here.
func native() []*kernels { return nil }
