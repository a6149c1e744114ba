//go:build !unix

package vfs

import (
	"fmt"
	"os"
)

// OpenFile is os.OpenFile that does not follow a symbolic link in the last part of the name.
func OpenFile(name string, flag int, perm os.FileMode) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return nil, fmt.Errorf("%s: %w", name, ErrLink)
	}
	return os.OpenFile(name, flag, perm)
}
