//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The first signal finishes the step, saves and exits 75; the same command continues.
func TestInterruptSavesAndResumes(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		dir := filepath.Join(t.TempDir(), "run")
		args := []string{"train", "--size", "nano", "--arch", "diff", "--dir", dir, "--steps", "100000", "--set",
			"train.save_every=0"}
		cmd := self(args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, filepath.Join(dir, "metrics.jsonl"))
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != exitTryAgain {
			t.Fatalf("%v: exit code %d (%v), want %d", sig, code, err, exitTryAgain)
		}
		found, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "step-*"))
		if len(found) != 1 {
			t.Fatalf("%v: checkpoints %v", sig, found)
		}
		cmd = self(append(args, "--steps", "1", "--set", "train.steps=1")...)
		var out strings.Builder
		cmd.Stderr = &out
		if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "resuming from step") {
			t.Errorf("%v: %v: %s", sig, err, out.String())
		}
	}
}

func waitFor(t *testing.T, path string) { t.Helper(); waitForMore(t, path, 0) }

// waitForMore waits until a file is longer than it was.
func waitForMore(t *testing.T, path string, size int64) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if s, err := os.Stat(path); err == nil && s.Size() > size {
			return
		}
	}
	t.Fatalf("%s has no more than %d bytes", path, size)
}

// SIGUSR1 writes a checkpoint and the run continues.
func TestSaveSignal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	cmd := self("train", "--size", "nano", "--dir", dir, "--steps", "1000000", "--set", "train.save_every=0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, filepath.Join(dir, "metrics.jsonl"))
	if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	waitFor(t, filepath.Join(dir, "checkpoints", "latest"))
	before, err := os.Stat(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	waitForMore(t, filepath.Join(dir, "metrics.jsonl"), before.Size()) // the run goes on
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitTryAgain {
		t.Errorf("exit code %d", code)
	}
}
