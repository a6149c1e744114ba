package dist

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// Every rank knows all others by host and process, in the order of ranks, and where they met; values of one tag after
// another come to each, empty ones too, and are not kept.
func TestPeersByName(t *testing.T) {
	meet := "tcp://" + freePort(t)
	jobs, errs := joinAll(t, meet, 3, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	host, _ := os.Hostname()
	want := fmt.Sprintf("%s, process %d", host, os.Getpid())
	for r, j := range jobs {
		if len(j.Peers) != 3 || j.Peers[0] != want || j.Peers[2] != want || j.Where != meet || j.Launch.Rank != r ||
			j.Err() != nil {
			t.Errorf("rank %d: peers %q at %s, %v", r, j.Peers, j.Where, j.Err())
		}
	}
	var wg sync.WaitGroup
	stuck := time.AfterFunc(time.Minute, func() { jobs[0].Fail(errors.New("an exchange does not end"), 1) })
	for r, j := range jobs {
		wg.Go(func() {
			for _, tag := range []string{"first", "second"} {
				value := []byte(tag)[:r*2] // rank 0 sends nothing
				all, err := j.Exchange(tag, value)
				if got := fmt.Sprintf("%s", all); err != nil || got != fmt.Sprintf("[ %s %s]", tag[:2], tag[:4]) {
					t.Errorf("rank %d: %s, %v", r, got, err)
				}
			}
			j.mu.Lock()
			defer j.mu.Unlock()
			for tag := range j.all {
				if tag != msgJoined {
					t.Errorf("rank %d keeps %q", r, tag)
				}
			}
		})
	}
	wg.Wait()
	stuck.Stop()
	closeAll(t, jobs)
}

// A rank that gives up tells all others its reason, its name and the exit code it suggests, whichever rank it is.
func TestGaveUpReachesAll(t *testing.T) {
	for victim := range 2 {
		dir := t.TempDir()
		jobs, errs := joinAll(t, "file://"+dir, 3, nil)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if jobs[victim].Fail(errors.New("no room"), 4+victim); !jobs[victim].failed.Load() {
			t.Errorf("rank %d does not know that it gave up", victim)
		}
		if left, _ := os.ReadDir(dir); victim == 0 && len(left) > 0 { // its process may end now
			t.Errorf("rank 0 left %v", left)
		}
		for r, j := range jobs {
			if r == 0 && victim == 0 {
				continue // it knows
			}
			<-j.over
			var g *GaveUp
			if err := j.Err(); !errors.As(err, &g) || g.Code != 4+victim ||
				!strings.HasPrefix(g.Text, fmt.Sprintf("rank %d (", victim)) ||
				!strings.HasSuffix(g.Text, "): no room") {
				t.Errorf("rank %d gave up: rank %d has %v", victim, r, err)
			}
			if _, err := j.Exchange("late", nil); !errors.Is(err, ErrPeer) ||
				!strings.Contains(err.Error(), "dist: late: ") {
				t.Errorf("rank %d exchanges after the end: %v", r, err)
			}
			if err := j.Close(); !errors.Is(err, ErrPeer) {
				t.Errorf("rank %d closes: %v", r, err)
			}
		}
		jobs[0].shut()
	}
}

// A caller that has had enough of waiting is told so, as rank 0, which waits for others, and as another that looks for
// it.
func TestJoinIsCancelled(t *testing.T) {
	for r := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		_, err := Join(ctx, rank(r, 2), local("tcp://"+freePort(t)))
		if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "dist: while the ranks met: ") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// What answers at an address: a job's store that ends in the middle of its greeting may come again, anything else is
// not a store, however short.
func TestGreetings(t *testing.T) {
	for _, c := range []struct {
		says  string
		store bool
	}{
		{"", true}, {greeting[:3], true}, {greeting, true}, {greeting + "half a nonce", true},
		{"SSH-2.0\r\n", false}, {"x", false}, {strings.Repeat("HTTP", 20), false}, {greeting[:3] + "x", false},
		{"antiphase/2\n" + strings.Repeat("n", nonceSize), false},
	} {
		a, b := net.Pipe()
		go func() {
			_, _ = a.Write([]byte(c.says))
			_ = a.Close()
		}()
		l, err := connect(b, []byte("secret"))
		if _ = b.Close(); l != nil || err == nil || errors.Is(err, errNotStore) == c.store ||
			strings.Contains(err.Error(), "%!") {
			t.Errorf("%q: %v, want one of a store: %v", c.says, err, c.store)
		}
	}
}

// A store is told another kind of message first, or nothing it can read: the connection is not a rank. A rank that is
// there already is turned away, and rank 0 can say so.
func TestEnterNeedsHello(t *testing.T) {
	for kind, good := range map[string]bool{msgHello: true, msgBeat: false, msgPut: false, "": false, "twice": false} {
		s := bare(2, 0)
		if kind == "twice" {
			s = bare(3, 0, 1)
			kind = msgHello
		}
		s.secret = []byte("secret")
		a, b := net.Pipe()
		done := make(chan error, 1)
		go func() {
			p, err := s.enter(a)
			if err == nil && (p.rank != 1 || p.where != "h, process 5") {
				err = fmt.Errorf("rank %d, %s", p.rank, p.where)
			}
			_ = a.Close()
			done <- err
		}()
		l, err := connect(b, s.secret)
		if err != nil {
			t.Fatal(err)
		}
		s.peers[0].c = &sink{}
		go func() { _, _ = l.receive() }() // that all have joined
		if err := l.send(message{Kind: kind, Rank: 1, World: s.world, Host: "h", PID: 5}, time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := <-done; (err == nil) != good || (s.peers[1] != nil) != (kind == msgHello) {
			t.Errorf("%q: %v", kind, err)
		}
		if twice := strings.Contains(s.missing(),
			"turned away: rank 1 is here twice: host 1 and h, process 5"); twice != (s.world == 3) {
			t.Errorf("%q: %s", kind, s.missing())
		}
		_ = b.Close()
	}
}

// A rank that cannot send waits no longer than it was told; what it sends when nobody reads is not silently dropped.
func TestSendHasADeadline(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	l := &link{c: a, key: []byte("k")}
	if err := l.send(message{Kind: msgBeat}, time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("nobody reads: %v", err)
	}
}

// What the ranks exchange has a size: more ends the job on all ranks, with its tag, instead of leaving them to wait.
func TestTooMuchToExchange(t *testing.T) {
	s := bare(2, 0, 1)
	for r := range 2 {
		s.take(s.peers[r], message{Kind: msgPut, Tag: "big", Value: make([]byte, maxFrame/2)})
	}
	list := s.peers[1].told(t)
	if !s.over || !strings.HasPrefix(s.why, `what the ranks exchange as "big": dist: the message is too large`) ||
		len(list) != 1 || list[0].Kind != msgFail || list[0].Text != s.why {
		t.Errorf("over %v, %q, told %d messages", s.over, s.why, len(list))
	}
	jobs, errs := joinAll(t, "tcp://"+freePort(t), 1, nil)
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	if _, err := jobs[0].Exchange("huge", make([]byte, maxFrame)); !errors.Is(err, errTooLarge) ||
		!strings.HasPrefix(err.Error(), "dist: huge: ") {
		t.Error(err)
	}
	closeAll(t, jobs)
}
