package dist

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// search is a meeting that finds one place after another, and ends the search after the last.
type search struct {
	fixed
	list []place
	seen int
	end  func()
}

type place struct {
	addr  string
	stale bool
	err   error
}

func (p *search) find() (string, []byte, bool, error) {
	x := p.list[min(p.seen, len(p.list)-1)]
	if p.seen++; p.seen > len(p.list) {
		p.end()
	}
	return x.addr, []byte("secret"), x.stale, x.err
}

// answering is the address of a listener that serves each connection with f.
func answering(t *testing.T, f func(c net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			f(c)
			_ = c.Close()
		}
	}()
	return ln.Addr().String()
}

// A rank looks for rank 0 again where the place may be out of date, nobody listens yet, or a store is busy; it is
// refused at once by what is no store, or has another secret, at a place that is certain, and where no place can be
// found.
func TestWhenToDialAgain(t *testing.T) {
	none := errors.New("no place")
	good := answering(t, func(c net.Conn) { _, _ = accept(c, []byte("secret")) })
	secret := answering(t, func(c net.Conn) { _, _ = accept(c, []byte("another")) })
	other := answering(t, func(c net.Conn) { _, _ = c.Write([]byte("SSH-2.0 something\r\n")) })
	busy := answering(t, func(net.Conn) {})
	nobody := freePort(t)
	for name, x := range map[string]struct {
		first   place
		refused string // "" if it looks again
	}{
		"there": {place{addr: good}, "no"}, "there, may be stale": {place{addr: good, stale: true}, "no"},
		"no place": {place{err: none}, "refused at no place"}, "no place yet": {place{err: none, stale: true}, ""},
		"nobody": {place{addr: nobody}, ""}, "nobody at a stale place": {place{addr: nobody, stale: true}, ""},
		"busy": {place{addr: busy}, ""}, "busy at a stale place": {place{addr: busy, stale: true}, ""},
		"another secret":                  {place{addr: secret}, "refused at " + secret + ": the secret"},
		"another secret at a stale place": {place{addr: secret, stale: true}, ""},
		"no store":                        {place{addr: other}, "refused at " + other + ": something other"},
		"no store at a stale place":       {place{addr: other, stale: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := &search{list: []place{x.first, {addr: good}}, end: cancel}
			j := &Job{Launch: rank(1, 2), opt: local(""), meet: p}
			err := j.dial(ctx)
			if j.link != nil {
				_ = j.link.c.Close()
			}
			want := 1
			if x.refused == "" {
				want = 2
			}
			if failed := strings.HasPrefix(x.refused, "refused"); p.seen != want || (err != nil) != failed || failed &&
				!strings.Contains(err.Error(), "rank 1 of 2 is "+x.refused) {
				t.Errorf("looked %d times, want %d; %v", p.seen, want, err)
			}
		})
	}
}

// A rank that has waited long enough says for how long, where, and what was wrong before its time was over.
func TestDialTooLong(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	none := errors.New("no place")
	j := &Job{Launch: rank(1, 2), Where: "tcp://h:1", opt: local(""),
		meet: &search{list: []place{{err: none, stale: true}}, end: cancel}}
	if err := j.dial(ctx); !errors.Is(err, none) ||
		err.Error() != "dist: rank 1 of 2 waited 1m0s and did not reach rank 0 at tcp://h:1 (no place)" {
		t.Error(err)
	}
}

// Neither side repeats a number of a handshake: one that was recorded is of no use with either.
func TestHandshakesDiffer(t *testing.T) {
	var sides [2][][]byte
	for range 2 {
		a, b := net.Pipe()
		go func() { _, _ = connect(b, []byte("secret")) }()
		nonce := make([]byte, nonceSize)
		_, _ = a.Write(append([]byte(greeting), nonce...))
		if _, err := io.ReadFull(a, nonce); err != nil {
			t.Fatal(err)
		}
		sides[0] = append(sides[0], nonce)
		_, _ = a.Close(), b.Close()
		a, b = net.Pipe()
		go func() { _, _ = accept(b, []byte("secret")) }()
		hello := make([]byte, len(greeting)+nonceSize)
		if _, err := io.ReadFull(a, hello); err != nil {
			t.Fatal(err)
		}
		sides[1] = append(sides[1], hello)
		_, _ = a.Close(), b.Close()
	}
	for i, x := range sides {
		if bytes.Equal(x[0], x[1]) {
			t.Errorf("side %d repeats %x", i, x[0])
		}
	}
}

// Time-outs that are not given are the defaults, and OnLost is for a job that was joined and not left: before, Join
// returns the error.
func TestJoinByDefaults(t *testing.T) {
	before := goleak.IgnoreCurrent()
	var lost atomic.Int32
	o := Options{Rendezvous: "tcp://" + freePort(t), Secret: []byte("secret"), OnLost: func(error) { lost.Add(1) }}
	j, err := Join(t.Context(), rank(0, 1), o)
	if err != nil || j.opt.JoinTimeout != DefaultJoin || j.opt.PeerTimeout != DefaultPeer ||
		j.opt.StallTimeout != DefaultStall {
		t.Fatalf("%+v, %v", j, err)
	}
	closeAll(t, []*Job{j})
	meet, jobs, errs := "tcp://"+freePort(t), make(chan *Job, 2), make(chan error, 2)
	for r, world := range []int{2, 3} {
		go func() {
			o := local(meet)
			o.JoinTimeout, o.OnLost = 2*time.Second, func(error) { lost.Add(1) }
			j, err := Join(t.Context(), rank(r, world), o)
			jobs <- j
			errs <- err
		}()
	}
	for range 2 {
		if j, err := <-jobs, <-errs; err == nil || j != nil {
			t.Errorf("ranks of two worlds meet")
		}
	}
	goleak.VerifyNone(t, before) // whatever was started has ended
	if n := lost.Load(); n != 0 {
		t.Errorf("%d ranks that never joined, or have left, have lost a job", n)
	}
}

// A rank that gave up has its own error to print: OnLost comes for it much later than for one that has lost a rank.
func TestWhoGaveUpIsLeftAlone(t *testing.T) {
	calls := make(chan string, 2)
	for _, name := range []string{"gave up", "lost"} {
		j := &Job{over: make(chan struct{}), opt: Options{OnLost: func(error) { calls <- name }}}
		j.joined.Store(true)
		j.failed.Store(name == "gave up")
		j.lose(ErrPeer)
	}
	if first := <-calls; first != "lost" {
		t.Errorf("%s: called first", first)
	}
}

// A rank that leaves has lost nobody if the store ends before it says so.
func TestStoreEndsFirst(t *testing.T) {
	a, b := net.Pipe()
	o := Options{PeerTimeout: 50 * time.Millisecond, OnLost: func(err error) { t.Error(err) }}
	j := &Job{link: &link{c: a, key: []byte("k"), client: true}, over: make(chan struct{}),
		all: map[string]chan [][]byte{}, opt: o}
	j.joined.Store(true)
	j.wg.Add(1)
	go j.read()
	go func() {
		if m, err := (&link{c: b, key: []byte("k")}).receive(); err != nil || m.Kind != msgBye {
			t.Errorf("%+v, %v", m, err)
		}
		_ = b.Close()
	}()
	if err := j.Close(); err != nil || j.Err() != nil {
		t.Errorf("%v, %v", err, j.Err())
	}
}
