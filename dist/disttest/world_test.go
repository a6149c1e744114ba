package disttest

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"antiphase/dist"
)

func TestWorld(t *testing.T) {
	most := 4
	if testing.Short() {
		most = 3
	}
	for n := 1; n <= most; n++ {
		if err := NewWorld(n, Options{}).Run(Check); err != nil {
			t.Errorf("%d ranks: %v", n, err)
		}
	}
}

// A rank that fails ends the others' waiting, with its reason.
func TestAbort(t *testing.T) {
	bad := errors.New("disk on fire")
	err := NewWorld(3, Options{}).Run(func(c dist.Comm) error {
		if c.Rank() == 1 {
			return bad
		}
		return c.Barrier()
	})
	if !errors.Is(err, bad) || strings.Count(err.Error(), "disk on fire") != 3 {
		t.Errorf("got %v", err)
	}
}

// A rank that never comes is named.
func TestMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := NewWorld(3, Options{}).Run(func(c dist.Comm) error {
			if c.Rank() == 2 {
				return nil
			}
			return c.Barrier()
		})
		if err == nil || !strings.Contains(err.Error(), "missing ranks [2]") {
			t.Errorf("got %v", err)
		}
	})
}

// Ranks that come with different things are told so, instead of mixing memory.
func TestMismatch(t *testing.T) {
	err := NewWorld(2, Options{}).Run(func(c dist.Comm) error { return c.AllReduce(Floats(4 + c.Rank())) })
	if err == nil || !strings.Contains(err.Error(), "F32[1,5]") && !strings.Contains(err.Error(), "F32[1,4]") {
		t.Errorf("got %v", err)
	}
}

// The artificial wire takes the time of a ring: 2·(n−1)/n of the bytes for a sum.
func TestBandwidth(t *testing.T) {
	w := NewWorld(4, Options{Bandwidth: 100e6})
	began := time.Now()
	if err := w.Run(func(c dist.Comm) error { return c.AllReduce(Floats(250_000)) }); err != nil {
		t.Fatal(err)
	}
	const want = 15 * time.Millisecond // 1 MB · 1.5 / 100 MB/s
	if took := time.Since(began); took < want || w.Wire() != want {
		t.Errorf("took %s, %s on the wire, want %s", took, w.Wire(), want)
	}
}
