//go:build unix

package dist

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// More ranks than the store admits strangers arrive at the same moment.
func TestManyRanksAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t)
	const world = 3 * pending
	jobs, errs := joinAll(t, "tcp://"+freePort(t), world, func(_ int, o *Options) {
		o.JoinTimeout, o.PeerTimeout = time.Minute, DefaultPeer
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, world)
	for _, j := range jobs {
		go func() { done <- j.Close() }()
	}
	for range world {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Connections that say nothing, or nonsense, do not keep the ranks out, not even for the time that a handshake may
// take.
func TestFloodedStore(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, text := range []string{"", "GET / HTTP/1.1\r\n\r\n"} {
		addr := freePort(t)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			flood(addr, text, stop)
		}()
		o := local("tcp://" + addr)
		o.JoinTimeout, o.PeerTimeout = 4*handshake, DefaultPeer
		late := make(chan error, 1)
		go func() {
			time.Sleep(300 * time.Millisecond) // the store is full by then
			j, err := Join(context.Background(), rank(1, 2), o)
			if err == nil {
				err = j.Close()
			}
			late <- err
		}()
		began := time.Now()
		j, err := Join(context.Background(), rank(0, 2), o)
		took := time.Since(began)
		if err == nil {
			err = j.Close()
		}
		if err = errors.Join(err, <-late); err != nil || took > handshake-time.Second {
			t.Errorf("%q: after %s: %v", text, took, err)
		}
		close(stop)
		<-stopped
	}
}

// flood opens connections until stop, and keeps the last ones open.
func flood(addr, text string, stop <-chan struct{}) {
	var open []net.Conn
	for {
		select {
		case <-stop:
			for _, c := range open {
				_ = c.Close()
			}
			return
		case <-time.After(time.Millisecond):
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			continue
		}
		_, _ = c.Write([]byte(text)) // the store may have closed it
		if open = append(open, c); len(open) > 64*pending {
			_ = open[0].Close()
			open = open[1:]
		}
	}
}

// Why rank 0 gives up reaches the others although its process, which holds the store, ends at once.
func TestFirstRankGivesUp(t *testing.T) {
	for range 20 {
		lost := make(chan error, 3)
		jobs, errs := joinAll(t, "tcp://"+freePort(t), 3, func(r int, o *Options) {
			if r > 0 {
				o.OnLost = func(err error) { lost <- err }
			}
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		jobs[0].Fail(errors.New("no such file"), 3)
		jobs[0].shut()
		for range 2 {
			err := <-lost
			if gave := new(GaveUp); !errors.As(err, &gave) || gave.Code != 3 ||
				!strings.Contains(err.Error(), "no such file") || !strings.Contains(err.Error(), "rank 0 (") {
				t.Errorf("got %v", err)
			}
		}
		jobs[1].shut()
		jobs[2].shut()
	}
}

// Values that do not fit into one message end the job instead of leaving everybody waiting.
func TestExchangeTooLarge(t *testing.T) {
	jobs, errs := joinAll(t, "tcp://"+freePort(t), 2, func(_ int, o *Options) { o.PeerTimeout = DefaultPeer })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	for _, j := range jobs {
		go func() {
			_, err := j.Exchange("much", bytes.Repeat([]byte("x"), maxFrame/2))
			done <- err
		}()
	}
	for range 2 {
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "too large") {
				t.Errorf("got %v", err)
			}
		case <-time.After(DefaultPeer):
			t.Fatal("nothing came back")
		}
	}
	for _, j := range jobs {
		j.shut()
	}
}
