//go:build !linux && !purego

package simd

// allowTiles: how other systems grant tile registers has not been tried.
func allowTiles() bool { return false }
