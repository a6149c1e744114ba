// Package fault gives a panic one end, whichever goroutine it happens in.
//
// The Go runtime ends a program whose goroutine panics with exit code 2 and the stacks of all of them. Every goroutine
// of this program begins with
//
//	defer fault.Guard()()
//
// and a panic goes to the handler that the program has set, which reports it and chooses the exit code. A memory fault
// is a panic too: a mapped file that somebody cuts short faults where its bytes were.
package fault

import (
	"runtime/debug"
	"sync/atomic"
)

var handler atomic.Pointer[func(value any, stack []byte)]

// Handle sets what becomes of a panic. The handler must end the program; without one the panic goes on.
func Handle(f func(value any, stack []byte)) { handler.Store(&f) }

// Guard makes faults of the calling goroutine panics, and returns the function that catches them, to be deferred.
func Guard() func() {
	debug.SetPanicOnFault(true)
	return func() {
		f := handler.Load()
		if f == nil {
			return
		}
		if v := recover(); v != nil {
			(*f)(v, debug.Stack())
		}
	}
}

// Mapped says that a panic's value is a fault at an address: a mapped file became shorter, or its device failed.
func Mapped(value any) bool {
	_, ok := value.(interface{ Addr() uintptr })
	return ok
}
