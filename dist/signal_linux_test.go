package dist_test

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"antiphase/dist"
)

func init() { children["signal"] = signalChild }

// signalChild joins through MPI, then sends itself signals and reads through a nil pointer.
func signalChild() error {
	signals := []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGUSR1}
	ch := make(chan os.Signal, len(signals))
	signal.Notify(ch, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGUSR1)
	l, c, err := openMPI(dist.MPIOptions{})
	if err != nil {
		return err
	}
	for _, sig := range signals {
		if err := syscall.Kill(os.Getpid(), sig); err != nil {
			return err
		}
		select {
		case got := <-ch:
			if got != sig {
				return fmt.Errorf("%v came as %v", sig, got)
			}
		case <-time.After(20 * time.Second):
			return fmt.Errorf("%v did not come", sig)
		}
	}
	if err := faults(); err != nil {
		return err
	}
	fmt.Printf("rank %d received all\n", l.Rank)
	return c.Close()
}

// faults is nil if a memory fault is a panic.
func faults() (err error) {
	defer func() {
		if recover() == nil {
			err = fmt.Errorf("a nil pointer was read")
		}
	}()
	var p *launcher
	fmt.Println(p.name)
	return nil
}

// MPICH's libraries replace the handlers of SIGHUP, SIGUSR1 and memory faults, which save, save and go on, and are
// reported.
func TestMPISignals(t *testing.T) {
	for _, l := range mpiLaunchers(t) {
		if out, err := l.run(t, 2, "signal"); err != nil || strings.Count(out, "received all") != 2 {
			t.Errorf("%s: %v\n%s", l.name, err, out)
		}
	}
}
