//go:build amd64 || arm64

package handlers

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

const onStack, withInfo = 0x08000000, 4 // SA_ONSTACK, SA_SIGINFO

// spoil does to a handler what signal(2) does to the one it puts back: the flags are gone.
func spoil(sig syscall.Signal) {
	a, err := sigaction(int(sig), nil)
	if err != nil || a.handler == byDefault || a.handler == ignored {
		panic(fmt.Sprintf("%v has no handler: %+v, %v", sig, a, err))
	}
	a.flags &^= onStack | withInfo
	if _, err := sigaction(int(sig), &a); err != nil {
		panic(err)
	}
}

// SIGHUP and SIGINT are left out: where they are ignored at the start, as under nohup, the runtime does not handle them.
func TestRestoreFlags(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGALRM, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGQUIT} {
		before, _ := sigaction(int(sig), nil)
		spoil(sig)
		Restore()
		if after, _ := sigaction(int(sig), nil); after != before || after.flags&onStack == 0 {
			t.Errorf("%v: %+v, before %+v", sig, after, before)
		}
	}
}

// A library's own handler in place of the runtime's is replaced; a signal that the runtime began to handle later keeps
// the runtime's handler.
func TestRestoreHandler(t *testing.T) {
	before, _ := sigaction(int(syscall.SIGUSR2), nil)
	foreign := before
	foreign.handler += 64 // never called: nobody sends SIGUSR2
	if _, err := sigaction(int(syscall.SIGUSR2), &foreign); err != nil {
		t.Fatal(err)
	}
	Restore()
	if after, _ := sigaction(int(syscall.SIGUSR2), nil); after != before {
		t.Errorf("after a foreign handler %+v, before %+v", after, before)
	}

	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGTSTP) // by default not handled by the runtime
	defer signal.Stop(ch)
	spoil(syscall.SIGTSTP)
	Restore()
	if after, _ := sigaction(int(syscall.SIGTSTP), nil); after != golang {
		t.Errorf("SIGTSTP: %+v, want %+v", after, golang)
	}
}

func TestRestoreLeavesOthers(t *testing.T) {
	signal.Ignore(syscall.SIGTTIN)
	defer signal.Reset(syscall.SIGTTIN)
	for sig, want := range map[syscall.Signal]uintptr{syscall.SIGTTIN: ignored, syscall.SIGTTOU: byDefault} {
		Restore()
		if after, err := sigaction(int(sig), nil); err != nil || after.handler != want {
			t.Errorf("%v: %+v, %v, want handler %d", sig, after, err, want)
		}
	}
}

// TestMain makes the test binary the process that TestSignalAfterLibrary sends a signal to.
func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		waitForTerm()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const asChild = "ANTIPHASE_TEST_HANDLERS"

func init() {
	if os.Getenv(asChild) != "" {
		runtime.LockOSThread() // main stays on the main thread, to which the kernel sends a process's signals
	}
}

// waitForTerm computes until SIGTERM comes, so that the signal meets Go code.
func waitForTerm() {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGTERM)
	spoil(syscall.SIGTERM)
	Restore()
	if _, err := os.Stdout.WriteString("ready\n"); err != nil {
		panic(err)
	}
	for turns := 0; len(ch) == 0; turns++ {
		if turns == math.MaxInt {
			panic("a signal takes no centuries")
		}
	}
}

// A process whose handler of SIGTERM lost its flags receives the signal after Restore. Without it the runtime ends the
// process, hangs, or is lucky, by where the signal meets it.
func TestSignalAfterLibrary(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var messages strings.Builder
	cmd.Stderr = &messages
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, messages.String())
	}
}
