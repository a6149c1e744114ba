//go:build !amd64 || purego

package simd

func processorHasAMX() bool { return false }
