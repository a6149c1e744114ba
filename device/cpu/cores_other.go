//go:build !linux && !darwin

package cpu

// mixedCores reports whether the machine has cores of different speeds; unknown here.
func mixedCores() bool { return false }
