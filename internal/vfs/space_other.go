//go:build !linux && !darwin && !freebsd && !windows

package vfs

import (
	"errors"
	"math"
	"syscall"
)

// free is unknown here: a write will tell.
func free(string) (int64, error) { return math.MaxInt64, nil }

// IsNoSpace reports whether err means a full volume.
func IsNoSpace(err error) bool { return errors.Is(err, syscall.ENOSPC) }
