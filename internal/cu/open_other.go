//go:build !linux || (!amd64 && !arm64) || nogpu

package cu

import "runtime"

// Open fails: this build does not support a GPU.
func Open(ordinal int, progress func(string)) (Driver, error) {
	return nil, unavailable("device %d was asked for, but this program was built for %s/%s without GPU support",
		ordinal, runtime.GOOS, runtime.GOARCH)
}

// NewCommID fails: this build does not support NCCL.
func NewCommID() (CommID, error) {
	return CommID{}, unavailable("no NCCL: this program was built for %s/%s without GPU support", runtime.GOOS,
		runtime.GOARCH)
}
