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
	if st.Blocks == 0 { // a tmpfs without a limit, a ramfs and some network file systems do not count
		return math.MaxInt64, nil
	}
	return bytes(uint64(st.Bavail), uint64(st.Bsize)), nil
}

// bytes is the size of blocks, the largest number where it is larger, as network file systems claim.
func bytes(blocks, size uint64) int64 {
	if size != 0 && blocks > math.MaxInt64/size {
		return math.MaxInt64
	}
	return int64(blocks * size)
}

// IsNoSpace reports whether err means a full volume or an exhausted quota.
func IsNoSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
