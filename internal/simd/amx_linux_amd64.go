//go:build !purego

package simd

import "syscall"

// allowTiles asks the kernel for tile registers, once for the whole process and its later threads.
func allowTiles() bool {
	const archPrctl, reqXcompPerm, tileData = 158, 0x1023, 18
	_, _, errno := syscall.RawSyscall(archPrctl, reqXcompPerm, tileData, 0)
	return errno == 0
}
