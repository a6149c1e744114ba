//go:build unix

package main

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// A signal ends an evaluation while a task draws its questions, before anything is asked.
func TestEvalStopsWhilePreparing(t *testing.T) {
	dir := t.TempDir()
	call(t, dir, 0, "train", "--size", "nano", "--dir", "m", "--steps", "1", "-q")
	for sig, want := range map[os.Signal]int{os.Interrupt: exitInterrupt, syscall.SIGTERM: exitTerminated} {
		cmd := self("eval", "--tasks", "lm", "--set", "lm.pieces=1000000", "-m", "m", "-q")
		cmd.Dir = dir
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(700 * time.Millisecond)
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Errorf("%v: exit code %d, want %d", sig, code, want)
		}
	}
}
