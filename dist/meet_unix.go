//go:build unix

package dist

import (
	"io/fs"
	"os"
	"syscall"
)

// private reports whether only this user may enter a folder.
func private(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid() && info.Mode().Perm()&0o077 == 0
}
