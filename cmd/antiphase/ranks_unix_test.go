//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mpirun starts this binary as n ranks of a run that would take a minute, and waits until it has saved something.
func mpirun(t *testing.T, n int, dir string, more ...string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	args := []string{"--allow-run-as-root", "--oversubscribe", "-np", fmt.Sprint(n)}
	path, err := exec.LookPath("mpirun.openmpi")
	if err != nil {
		if path, err = exec.LookPath("mpirun.mpich"); err != nil {
			t.Skip("no MPI launcher is installed (Debian: openmpi-bin or mpich)")
		}
		args = args[2:]
	}
	args = append(args, os.Args[0], "train", "--size", "nano", "--device", "cpu", "--dir", dir, "--data",
		"synthetic:docs=60", "--peer-timeout", "2s", "--quiet")
	args = append(args, "train.batch=12", "train.micro_batch=2", "train.steps=100000", "train.save_every=5",
		"train.eval_every=0")
	cmd := exec.Command(path, append(args, more...)...)
	cmd.Env = append(os.Environ(), asAntiphase+"=1")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 600 {
		if found, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "step-*")); len(found) > 0 {
			return cmd, &out
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("nothing was saved\n%s", out.String())
	return nil, nil
}

// pidOf finds the process of a rank by its environment.
func pidOf(t *testing.T, dir string, rank int) int {
	t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		line, _ := os.ReadFile(path)
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
		args := strings.Split(string(line), "\x00")
		if args[0] == os.Args[0] && strings.Contains(string(line), dir) {
			for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMI_RANK"} {
				if strings.Contains("\x00"+string(env), fmt.Sprintf("\x00%s=%d\x00", name, rank)) {
					var pid int
					_, _ = fmt.Sscan(filepath.Base(filepath.Dir(path)), &pid)
					return pid
				}
			}
		}
	}
	t.Skip("processes cannot be found by their environment here")
	return 0
}

// SIGTERM to any one rank: all finish the step, save and leave with 75; the same command goes on.
func TestRanksTerminate(t *testing.T) {
	for rank := range 2 {
		dir := t.TempDir()
		cmd, out := mpirun(t, 2, dir)
		if err := syscall.Kill(pidOf(t, dir, rank), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err := cmd.Wait()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitTryAgain || strings.Count(out.String(),
			"run the same command again") != 1 {
			t.Errorf("rank %d: %v after %s\n%s", rank, err, time.Since(began), out.String())
		}
	}
}

// A rank that is killed or stopped ends the others, which say so in one line each.
func TestRanksLost(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		dir := t.TempDir()
		cmd, out := mpirun(t, 2, dir)
		pid := pidOf(t, dir, 1)
		began := time.Now()
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
		// some launchers wait for a stopped process
		time.AfterFunc(15*time.Second, func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		for range 200 {
			if time.Sleep(50 * time.Millisecond); strings.Contains(out.String(), "a rank was lost") {
				break
			}
		}
		took := time.Since(began)
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_ = cmd.Wait()
		text := out.String()
		killedByLauncher := sig == syscall.SIGKILL && strings.Contains(text, "signal 9")
		if !killedByLauncher && (!strings.Contains(text, "a rank was lost: rank 1") || !strings.Contains(text,
			"is saved, run the same command again")) || took > 10*time.Second {
			t.Errorf("%v: after %s\n%s", sig, took, text)
		}
		t.Logf("%v: after %s", sig, took.Round(time.Millisecond))
	}
}
