//go:build !unix

package vfs

import (
	"io"
	"os"
)

// mapFile reads the first size bytes of f, on systems without mapping.
func mapFile(f *os.File, size int) (b []byte, unmap func() error, err error) {
	b = make([]byte, size)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, nil, &os.PathError{Op: "read", Path: f.Name(), Err: err}
	}
	return b, func() error { return nil }, nil
}
