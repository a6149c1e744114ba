//go:build !linux && !darwin && !freebsd && !windows

package vfs

import (
	"errors"
	"math"
	"syscall"
)

// free cannot be asked here: a write will tell.
func free(string) (int64, error) { return math.MaxInt64, nil }

// IsNoSpace says whether err means a full volume.
func IsNoSpace(err error) bool { return errors.Is(err, syscall.ENOSPC) }
