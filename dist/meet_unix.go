//go:build unix

package dist

import (
	"io/fs"
	"os"
	"syscall"
)

// openNow opens a file for reading. It neither follows a link nor waits for the other end of a pipe.
func openNow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
}

// private reports whether only this user may use a file or enter a folder.
func private(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid() && info.Mode().Perm()&0o077 == 0
}
