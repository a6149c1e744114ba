//go:build unix

package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// openHere is os.OpenFile that fails with errLoop if the last part of the name is a symbolic link.
func openHere(name string, flag int, perm os.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag|unix.O_NOFOLLOW, perm)
}

const errLoop = unix.ELOOP
