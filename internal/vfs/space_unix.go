//go:build linux || darwin || freebsd

package vfs

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"
)

// free counts the blocks available to an ordinary user.
func free(name string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(name, &st); err != nil {
		return 0, err
	}
	blocks, size := uint64(st.Bavail), uint64(st.Bsize)
	if size != 0 && blocks > math.MaxInt64/size {
		return math.MaxInt64, nil
	}
	return int64(blocks * size), nil
}

// IsNoSpace reports whether err means a full volume or an exhausted quota.
func IsNoSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
