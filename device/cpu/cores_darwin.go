package cpu

import "syscall"

// mixedCores reports whether the machine has cores of different speeds, as every Mac with Apple's processors does.
func mixedCores() bool {
	levels, err := syscall.SysctlUint32("hw.nperflevels")
	return err == nil && levels > 1
}
