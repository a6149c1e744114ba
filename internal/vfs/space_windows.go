package vfs

import (
	"errors"
	"math"
	"syscall"

	"golang.org/x/sys/windows"
)

// free returns the bytes available to this user, including quota.
func free(name string) (int64, error) {
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return 0, err
	}
	var n uint64
	if err := windows.GetDiskFreeSpaceEx(path, &n, nil, nil); err != nil {
		return 0, err
	}
	return int64(min(n, math.MaxInt64)), nil
}

// IsNoSpace reports whether err means a full volume or an exhausted quota.
func IsNoSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, syscall.ENOSPC)
}
