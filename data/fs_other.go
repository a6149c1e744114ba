//go:build !unix

package data

import (
	"io"
	"os"
)

// mapFile reads the first size bytes of f: the plain stand-in where mapping is not used.
func mapFile(f *os.File, size int) (b []byte, unmap func() error, err error) {
	b = make([]byte, size)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, nil, err
	}
	return b, func() error { return nil }, nil
}

// syncDir does nothing: directories cannot be synced here.
func syncDir(string) error { return nil }
