//go:build linux || darwin || freebsd

package vfs

import (
	"math"
	"testing"

	"golang.org/x/sys/unix"
)

func TestBytesOfBlocks(t *testing.T) {
	for _, c := range []struct {
		blocks, size uint64
		want         int64
	}{
		{0, 0, 0}, {5, 0, 0}, {0, 4096, 0}, {3, 4096, 12288}, {1 << 40, 512, 1 << 49},
		{math.MaxInt64, 1, math.MaxInt64}, {1<<51 - 1, 4096, 1<<63 - 4096}, {1 << 51, 4096, math.MaxInt64},
		{1 << 52, 4096, math.MaxInt64}, {math.MaxUint64, 1, math.MaxInt64}, {math.MaxUint64, 1 << 20, math.MaxInt64},
	} {
		if got := bytes(c.blocks, c.size); got != c.want {
			t.Errorf("%d blocks of %d: %d bytes, want %d", c.blocks, c.size, got, c.want)
		}
	}
}

// A file system that does not count its blocks is not a full one.
func TestFreeOfUncounted(t *testing.T) {
	const proc = "/proc"
	var st unix.Statfs_t
	if err := unix.Statfs(proc, &st); err != nil || st.Blocks != 0 {
		t.Skip("no file system here that does not count its blocks:", err)
	}
	if n, err := free(proc); err != nil || n != math.MaxInt64 {
		t.Errorf("%d bytes, %v", n, err)
	}
}
