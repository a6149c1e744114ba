//go:build amd64 || arm64

package handlers

import (
	"sync"
	"syscall"
	"unsafe"
)

// action is the kernel's struct sigaction.
type action struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

const (
	byDefault, ignored = 0, 1 // SIG_DFL, SIG_IGN
	signals            = 31   // the classic ones; the C library keeps the real-time signals for itself
)

var (
	// atStart are the actions before any library was loaded.
	atStart = func() (a [signals + 1]action) {
		for sig := 1; sig <= signals; sig++ {
			a[sig], _ = sigaction(sig, nil) // SIGKILL and SIGSTOP too can be read
		}
		return a
	}()
	// golang is the action that the runtime sets for all signals alike. It cannot do without SIGURG's.
	golang = atStart[syscall.SIGURG]

	restoring sync.Mutex
)

// Restore gives every signal that the runtime handled when the program started, or handles now, the runtime's handler and
// flags again. Call it after a call into a library that may set handlers. Signals left to their default or ignored are
// not touched.
func Restore() {
	restoring.Lock()
	defer restoring.Unlock()
	for sig := 1; sig <= signals; sig++ {
		now, err := sigaction(sig, nil)
		if err != nil || now.handler == byDefault || now.handler == ignored {
			continue
		}
		lost := now.handler != golang.handler && atStart[sig].handler == golang.handler
		bare := now.handler == golang.handler && now.flags&golang.flags != golang.flags
		if lost || bare {
			_, _ = sigaction(sig, &golang) // fails only for SIGKILL and SIGSTOP, which have no handler
		}
	}
}

// sigaction reads the action of a signal and, where set is not nil, replaces it.
func sigaction(sig int, set *action) (old action, err error) {
	_, _, code := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(set)),
		uintptr(unsafe.Pointer(&old)), unsafe.Sizeof(old.mask), 0, 0)
	if code != 0 {
		return old, code
	}
	return old, nil
}
