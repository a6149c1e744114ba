//go:build unix

package vfstest

import (
	"os"
	"syscall"
)

// Odd makes what is no regular file at a path, by its name: opening a pipe may never return, and a device has no end.
var Odd = map[string]func(path string) error{
	"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
	"device": func(path string) error { return os.Symlink("/dev/zero", path) },
	"folder": func(path string) error { return os.Mkdir(path, 0o755) },
}
