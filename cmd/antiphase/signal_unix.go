//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"antiphase/internal/fault"
)

// endings are the signals that end work in an orderly way: work is saved.
var endings = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// saveSignal returns a channel on which SIGUSR1 requests a checkpoint.
func saveSignal() (ask <-chan struct{}, stop func()) {
	signals, out, done := make(chan os.Signal, 1), make(chan struct{}, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		defer fault.Guard()()
		for {
			select {
			case <-signals:
				select {
				case out <- struct{}{}:
				default: // one is asked for already
				}
			case <-done:
				return
			}
		}
	}()
	return out, func() { signal.Stop(signals); close(done) }
}
