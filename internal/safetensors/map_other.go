//go:build !unix

package safetensors

import (
	"fmt"
	"io"
)

// mapFile reads the whole file where there is no mmap.
func mapFile(path string) ([]byte, func() error, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	b := make([]byte, size)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", path, err)
	}
	return b, func() error { return nil }, nil
}
