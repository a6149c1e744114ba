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
	// golang is the action that the runtime sets for all signals alike. It cannot do without SIGURG's.
	golang, _ = sigaction(int(syscall.SIGURG), nil)

	mu    sync.Mutex
	owned = handled() // signals that the runtime has been seen to handle, by number
)

// Keep notes which signals the runtime handles, and returns a function that gives them the runtime's handler and flags
// again where they have lost one or the other. Use it around a call into a library that may set handlers:
//
//	defer handlers.Keep()()
//
// A signal that is left to its default or ignored afterwards is not touched.
func Keep() (restore func()) {
	mu.Lock()
	defer mu.Unlock()
	for sig, own := range handled() { // a signal that was ignored at the start may be handled since
		owned[sig] = owned[sig] || own
	}
	return put
}

// put sets the runtime's action where a library has changed it.
func put() {
	mu.Lock()
	defer mu.Unlock()
	for sig, own := range owned {
		now, err := sigaction(sig, nil)
		if err != nil || now.handler == byDefault || now.handler == ignored {
			continue
		}
		lost := now.handler != golang.handler && own
		bare := now.handler == golang.handler && now.flags&golang.flags != golang.flags
		if lost || bare {
			_, _ = sigaction(sig, &golang) // fails only for SIGKILL and SIGSTOP, which have no handler
		}
	}
}

// handled reports for every signal whether the runtime handles it now.
func handled() (own [signals + 1]bool) {
	for sig := 1; sig <= signals; sig++ {
		a, err := sigaction(sig, nil)
		own[sig] = err == nil && a.handler == golang.handler
	}
	return own
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
