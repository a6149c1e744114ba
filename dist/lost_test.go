package dist

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// A rank whose connection ends without a goodbye has died; one that says nothing hangs. Every other rank learns
// which.
func TestLostRank(t *testing.T) {
	for name, lose := range map[string]func(j *Job){
		"has died":              func(j *Job) { _ = j.link.c.Close() },
		"has given no sign":     func(j *Job) { j.link.mu.Lock() }, // nothing is sent any more
		"the disk is on fire":   func(j *Job) { j.Fail(errors.New("the disk is on fire"), 0) },
		"waits in collective 8": func(j *Job) { j.count.Store(8); j.waits() },
	} {
		for victim := range 3 {
			lost := make(chan error, 3)
			jobs, errs := joinAll(t, "tcp://"+freePort(t), 3, func(r int, o *Options) {
				if o.StallTimeout = time.Millisecond; name == "has given no sign" {
					o.PeerTimeout = 500 * time.Millisecond
				}
				if r != victim {
					o.OnLost = func(err error) { lost <- err }
				}
			})
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			lose(jobs[victim])
			if s := jobs[0].store; name == "waits in collective 8" {
				s.until(t, "word of it", func() bool { return s.peers[victim].busy > 0 })
				s.looks()
			}
			for range 2 {
				select {
				case err := <-lost:
					if !errors.Is(err, ErrPeer) || !strings.Contains(err.Error(), name) {
						t.Errorf("rank %d: %v, want %q", victim, err, name)
					}
				case <-time.After(DefaultPeer - time.Second): // later they would notice the silence
					t.Fatalf("rank %d %s: not noticed", victim, name)
				}
			}
			for r, j := range jobs {
				if r == victim && name == "has given no sign" {
					j.link.mu.Unlock()
				}
				j.shut()
			}
		}
	}
}

// tells sends a heartbeat now, of a rank that has waited for so long.
func (j *Job) tells(busy time.Duration) {
	_ = j.link.send(message{Kind: msgBeat, Count: j.count.Load(), Busy: busy.Milliseconds()}, time.Minute)
}

// waits lets a rank wait in a collective since the beginning, and say so.
func (j *Job) waits() {
	j.began.Store(1)
	j.tells(time.Second)
}

// looks lets the store look at its ranks now.
func (s *store) looks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look(time.Now())
}

// A stall names the ranks that the others wait for.
func TestStallNamesTheLate(t *testing.T) {
	lost := make(chan error, 3)
	jobs, errs := joinAll(t, "tcp://"+freePort(t), 3, func(_ int, o *Options) {
		o.StallTimeout = time.Millisecond
		o.OnLost = func(err error) { lost <- err }
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	s := jobs[0].store
	for r, j := range jobs {
		if j.count.Store(4); r != 1 {
			j.count.Store(5)
		}
		j.tells(0)
		s.until(t, "a rank's place", func() bool { return s.peers[r].count == j.count.Load() })
	}
	jobs[0].waits()
	jobs[2].waits()
	s.until(t, "word of the stall", func() bool { return s.peers[0].busy > 0 && s.peers[2].busy > 0 })
	s.looks()
	if err := <-lost; !strings.Contains(err.Error(), "still missing: rank 1 (") || strings.Contains(err.Error(),
		"rank 2 (") {
		t.Errorf("got %v", err)
	}
	for _, j := range jobs {
		j.shut()
	}
}

// A rank that has left is not missed: the others go on for longer than a silent rank may be silent.
func TestLeavesEarly(t *testing.T) {
	defer goleak.VerifyNone(t)
	jobs, errs := joinAll(t, "tcp://"+freePort(t), 3, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	left := make(chan error, 1)
	go func() { left <- jobs[2].Close() }()
	s := jobs[0].store
	s.until(t, "rank 2 to leave", func() bool { return s.peers[2].left })
	s.mu.Lock()
	later := time.Now().Add(2 * s.timeout)
	s.peers[0].seen, s.peers[1].seen = later, later
	s.look(later)
	s.mu.Unlock()
	closeAll(t, jobs[:2])
	if err := <-left; err != nil {
		t.Error(err)
	}
}

// until waits for a state of the store.
func (s *store) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		ok := is()
		s.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// A rank that is lost before all have joined may come again, and takes its place.
func TestComesAgain(t *testing.T) {
	defer goleak.VerifyNone(t)
	s, err := listen("127.0.0.1:0", []byte("secret"), 2, local(""))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	meet := local("tcp://" + s.addr())
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := Join(ctx, rank(1, 2), meet)
		first <- err
	}()
	s.until(t, "rank 1", func() bool { return s.peers[1] != nil })
	cancel()
	if err := <-first; err == nil {
		t.Fatal("one of two ranks is a job")
	}
	s.until(t, "its end", func() bool { return s.peers[1] == nil })
	c, err := net.Dial("tcp", s.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := connect(c, s.secret) // rank 0, whose Join would open a store of its own
	if err != nil {
		t.Fatal(err)
	}
	if err := l.send(message{Kind: msgHello, World: 2}, time.Minute); err != nil {
		t.Fatal(err)
	}
	j, err := Join(t.Context(), rank(1, 2), meet)
	if err != nil {
		t.Fatal(err)
	}
	j.shut()
}
