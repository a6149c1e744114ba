//go:build amd64 || arm64

package handlers

import (
	"errors"
	"syscall"
	"testing"
)

// TestEverySignalInEveryState: what is restored depends on whether the runtime handles the signal and on what it was
// changed to, for all classic signals alike.
func TestEverySignalInEveryState(t *testing.T) {
	foreign := golang
	foreign.handler += 64 // never called: nobody sends the signals
	bare, foreignBare, more := golang, foreign, golang
	bare.flags &^= onStack
	foreignBare.flags &^= onStack
	more.flags |= 0x40000000 // SA_NODEFER
	byDef, ignore := action{handler: byDefault}, action{handler: ignored}
	for _, c := range []struct {
		name         string
		now          action
		own, notOwns action // afterwards, where the runtime handles the signal and where it does not
	}{
		{"the runtime's", golang, golang, golang}, {"the runtime's with more flags", more, more, more},
		{"the runtime's without its flag", bare, golang, golang},
		{"a library's", foreign, golang, foreign}, {"a library's without the flag", foreignBare, golang, foreignBare},
		{"default", byDef, byDef, byDef}, {"ignored", ignore, ignore, ignore},
	} {
		handles, others := 0, 0
		for sig := 1; sig <= 31; sig++ {
			switch syscall.Signal(sig) {
			case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGURG: // no handler; the runtime sends itself SIGURG
				continue
			case syscall.SIGTSTP, syscall.SIGTTOU: // another test has the runtime handle them
				continue
			}
			before := get(t, sig)
			want := c.notOwns
			if others++; before.handler == golang.handler {
				want, handles, others = c.own, handles+1, others-1
			}
			for _, late := range []bool{false, true} { // a library may have changed it before Keep, too
				was := owned
				restore := Keep()
				set(t, sig, &c.now)
				if late {
					restore = Keep()
				}
				restore()
				if after := get(t, sig); after.handler != want.handler ||
					after.flags&^restorer != want.flags&^restorer {
					t.Errorf("signal %d, %s, before Keep: %v: %+v, want %+v", sig, c.name, late, after, want)
				}
				set(t, sig, &before)
				owned = was
			}
		}
		if handles < 15 || others < 2 {
			t.Errorf("the runtime handles %d signals and not %d others", handles, others)
		}
	}
}

// restorer is a flag that the kernel adds.
const restorer = 0x04000000

func get(t *testing.T, sig int) action {
	t.Helper()
	a, err := sigaction(sig, nil)
	if err != nil {
		t.Fatal(sig, err)
	}
	return a
}

func set(t *testing.T, sig int, a *action) {
	t.Helper()
	if _, err := sigaction(sig, a); err != nil {
		t.Fatal(sig, err)
	}
}

// The kernel's refusals come back as errors.
func TestSigactionFails(t *testing.T) {
	for _, sig := range []int{0, int(syscall.SIGKILL), int(syscall.SIGSTOP), 65} {
		if _, err := sigaction(sig, &golang); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("signal %d: %v", sig, err)
		}
	}
}
