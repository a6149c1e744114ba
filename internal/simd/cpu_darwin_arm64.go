package simd

import "syscall"

func hasBF16() bool {
	x, err := syscall.SysctlUint32("hw.optional.arm.FEAT_BF16")
	return err == nil && x == 1
}
