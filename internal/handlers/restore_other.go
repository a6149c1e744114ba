//go:build !linux || !(amd64 || arm64)

package handlers

// Keep does nothing: no foreign library is loaded here.
func Keep() (restore func()) { return func() {} }
