// Package fault handles a panic in any goroutine in one place.
//
// The Go runtime ends a program whose goroutine panics with exit code 2 and all stacks. Every goroutine of this program
// begins with
//
//	defer fault.Guard()()
//
// so that a panic goes to the program's handler, which reports it and chooses the exit code. A memory fault is a panic
// too: accessing a mapped file that was truncated faults.
package fault

import (
	"runtime/debug"
	"sync/atomic"
)

var handler atomic.Pointer[func(value any, stack []byte)]

// Handle sets the handler of panics. It must end the program; without one the panic continues.
func Handle(f func(value any, stack []byte)) { handler.Store(&f) }

// Guard turns memory faults of the calling goroutine into panics, and returns the function that catches them, to be
// deferred.
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

// Mapped reports whether a panic's value is a memory fault: a mapped file was truncated, or its device failed.
func Mapped(value any) bool {
	_, ok := value.(interface{ Addr() uintptr })
	return ok
}
