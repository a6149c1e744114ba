//go:build unix

package main

import (
	"syscall"
	"testing"
	"time"
)

// A signal ends an evaluation while a task draws its questions, before anything is asked.
func TestEvalStopsWhilePreparing(t *testing.T) {
	dir := t.TempDir()
	call(t, dir, 0, "train", "--size", "nano", "--dir", "m", "--steps", "1", "-q")
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: exitInterrupt, syscall.SIGTERM: exitTerminated} {
		code := -1
		for wait := 700 * time.Millisecond; code < 0 && wait < 10*time.Second; wait *= 2 {
			cmd := self("eval", "--tasks", "lm", "--set", "lm.pieces=1000000", "-m", "m", "-q")
			cmd.Dir = dir
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(wait)
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			_ = cmd.Wait()
			kill.Stop()
			code = cmd.ProcessState.ExitCode()
			if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() && s.Signal() != sig {
				t.Fatalf("%v: it did not stop", sig)
			} // killed by the signal itself: it came before the program could take it, on a busy machine
		}
		if code != want {
			t.Errorf("%v: exit code %d, want %d", sig, code, want)
		}
	}
}
