//go:build !linux

package hostmem

func available() int64 { return Unknown }

func space() int64 { return Unknown }
