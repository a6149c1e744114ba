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

// SIGHUP and SIGINT are left out: where they are ignored at the start, as under nohup, the runtime does not handle
// them.
func TestRestoreFlags(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGALRM, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGQUIT} {
		before, _ := sigaction(int(sig), nil)
		restore := Keep()
		spoil(sig)
		restore()
		if after, _ := sigaction(int(sig), nil); after != before || after.flags&onStack == 0 {
			t.Errorf("%v: %+v, before %+v", sig, after, before)
		}
	}
}

// replace does to a handler what a library does that sets its own.
func replace(t *testing.T, sig syscall.Signal) {
	t.Helper()
	a, _ := sigaction(int(sig), nil)
	a.handler += 64 // never called: nobody sends the signal
	if _, err := sigaction(int(sig), &a); err != nil {
		t.Fatal(err)
	}
}

// A library's own handler is replaced by the runtime's, where that handled the signal: since the start, since Notify,
// or since Notify of a signal that was ignored, as SIGHUP is under nohup.
func TestRestoreHandler(t *testing.T) {
	restore := Keep()
	replace(t, syscall.SIGUSR2)
	restore()
	if after, _ := sigaction(int(syscall.SIGUSR2), nil); after != golang {
		t.Errorf("after a foreign handler %+v, want %+v", after, golang)
	}

	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	ch := make(chan os.Signal, 1)
	for _, sig := range []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTOU} { // by default not handled by the runtime
		signal.Notify(ch, sig)
		defer signal.Stop(ch)
		restore := Keep()
		spoil(sig)
		restore()
		if after, _ := sigaction(int(sig), nil); after != golang {
			t.Errorf("%v without flags: %+v, want %+v", sig, after, golang)
		}
		restore = Keep()
		replace(t, sig)
		restore()
		if after, _ := sigaction(int(sig), nil); after != golang {
			t.Errorf("%v with a foreign handler: %+v, want %+v", sig, after, golang)
		}
	}
}

func TestRestoreLeavesOthers(t *testing.T) {
	signal.Ignore(syscall.SIGTTIN)
	defer signal.Reset(syscall.SIGTTIN)
	for sig, want := range map[syscall.Signal]uintptr{syscall.SIGTTIN: ignored, syscall.SIGCONT: byDefault} {
		Keep()()
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
	restore := Keep()
	spoil(syscall.SIGTERM)
	restore()
	if _, err := os.Stdout.WriteString("ready\n"); err != nil {
		panic(err)
	}
	for turns := 0; len(ch) == 0; turns++ {
		if turns == math.MaxInt {
			panic("a signal takes no centuries")
		}
	}
}

// A process whose handler of SIGTERM lost its flags receives the signal after restore. Without it the runtime ends the
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
