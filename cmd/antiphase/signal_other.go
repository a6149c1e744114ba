//go:build !unix

package main

import (
	"os"
	"syscall"
)

// endings are the signals that end work in an orderly way: work is saved.
var endings = []os.Signal{os.Interrupt, syscall.SIGTERM}

// saveSignal has no signal on this system.
func saveSignal() (ask <-chan struct{}, stop func()) { return nil, func() {} }
