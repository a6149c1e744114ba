//go:build !unix

package vfs

import (
	"os"
	"syscall"
)

// openHere is os.OpenFile.
func openHere(name string, flag int, perm os.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}

const errLoop = syscall.ELOOP
