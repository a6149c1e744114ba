//go:build !linux

package hostmem

func available() int64 { return Unknown }
