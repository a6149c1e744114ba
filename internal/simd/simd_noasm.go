//go:build (!amd64 && !arm64) || purego

package simd

// native has no assembly to offer here.
func native() []*kernels { return nil }

// chooser has nothing to choose from here.
type chooser struct{}

func peaks() []PeakLoop { return nil }

func read(x []float32) { readGeneric(x) }

// fetch has no instruction for it here.
func fetch(uintptr) {}
