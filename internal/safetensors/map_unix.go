//go:build unix

package safetensors

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mapFile maps a whole file read-only. The mapping outlives the descriptor.
func mapFile(path string) ([]byte, func() error, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if size == 0 { // mmap refuses an empty range; the parser says what is wrong with it
		return nil, func() error { return nil }, nil
	}
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map %s: %w", path, err)
	}
	return b, func() error { return unix.Munmap(b) }, nil
}
