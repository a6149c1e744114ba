// Package kill ends processes at random moments, in tests.
package kill

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"antiphase/internal/fault"
)

// Moments are when a process is killed: after a random time of at least From and less than To.
type Moments struct{ From, To time.Duration }

// Repeat starts processes one after the other and kills each (SIGKILL), until n have been killed. after is called for
// each, with the number of kills so far; finished means that the process ended by itself before its moment, which must
// be without an error.
func (m Moments) Repeat(t testing.TB, n int, start func() *exec.Cmd, after func(kills int, finished bool)) {
	t.Helper()
	g := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	for kills := 0; kills < n; {
		cmd := start()
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			defer fault.Guard()()
			done <- cmd.Wait()
		}()
		finished := false
		select {
		case err := <-done:
			if finished = true; err != nil {
				t.Fatalf("after %d kills: %v", kills, err)
			}
		case <-time.After(m.From + time.Duration(g.Int64N(int64(m.To-m.From)))):
			_ = cmd.Process.Kill() // it may just have ended
			<-done
			kills++
		}
		after(kills, finished)
	}
}

// Main runs a package's tests and exits. They share a home folder of their own, in which the processes to be killed
// find the machine's peak, measured once.
func Main(m *testing.M) {
	home, err := os.MkdirTemp("", "antiphase-test-")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("ANTIPHASE_HOME", home)
	code := m.Run()
	_ = os.RemoveAll(home)
	os.Exit(code)
}
