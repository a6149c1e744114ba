//go:build !linux || !(amd64 || arm64)

package handlers

// Restore does nothing: no foreign library is loaded here.
func Restore() {}
