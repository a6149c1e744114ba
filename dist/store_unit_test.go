package dist

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"antiphase/tensor"
)

// sink is a connection that keeps what is written to it.
type sink struct {
	net.Conn
	mu   sync.Mutex
	sent bytes.Buffer
	read uint64 // frames
}

func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent.Write(b)
}
func (s *sink) SetWriteDeadline(time.Time) error { return nil }
func (s *sink) Close() error                     { return nil }

// Read gives what was written, for a link of the other side.
func (s *sink) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent.Read(b)
}

// told are the messages that a rank was sent.
func (p *peer) told(t *testing.T) (list []message) {
	t.Helper()
	c := p.c.(*sink)
	l := &link{c: c, key: p.key, client: true, got: c.read}
	for {
		m, err := l.receive()
		if err != nil {
			return list
		}
		c.read++
		list = append(list, m)
	}
}

// bare is a store without a listener, with as many ranks as are named.
func bare(world int, ranks ...int) *store {
	s := &store{world: world, timeout: time.Second, stall: 2 * time.Second, peers: make([]*peer, world),
		values: map[string][][]byte{}, done: make(chan struct{})}
	for _, r := range ranks {
		s.peers[r] = newPeer(r)
	}
	s.joined = len(ranks) == world
	return s
}

func newPeer(r int) *peer {
	return &peer{link: &link{c: &sink{}, key: []byte("k")}, rank: r, where: fmt.Sprintf("host %d", r),
		seen: time.Unix(1000, 0)}
}

// What the store concludes from the state of its ranks, case by case.
func TestLook(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		name   string
		change func(p []*peer)
		after  time.Duration
		why    string
	}{
		{"all is well", func([]*peer) {}, time.Second, ""},
		{"silent", func(p []*peer) { p[0].seen, p[2].seen = now.Add(time.Second), now.Add(time.Second) },
			1100 * time.Millisecond,
			"rank 1 (host 1) has given no sign for 1.1 s: it hangs, was stopped, or its network is gone"},
		{"silent and left", func(p []*peer) {
			p[0].seen, p[2].seen, p[1].left = now.Add(time.Second), now.Add(time.Second), true
		}, 1100 * time.Millisecond, ""},
		{"busy, not too long", func(p []*peer) { p[1].busy, p[1].count = 2*time.Second, 5 }, 0, ""},
		{"stuck, one missing", func(p []*peer) {
			p[0].count, p[1].count, p[2].count, p[1].busy = 5, 5, 4,
				2100*time.Millisecond
		}, 0, "rank 1 waits in collective 5 for 2.1 s; still missing: rank 2 (host 2)"},
		{"stuck, two missing",
			func(p []*peer) { p[0].count, p[1].count, p[2].count, p[1].busy = 4, 5, 4, 3*time.Second }, 0,
			"rank 1 waits in collective 5 for 3.0 s; still missing: rank 0 (host 0), rank 2 (host 2)"},
		{"stuck, the furthest behind is named",
			func(p []*peer) { p[0].count, p[1].count, p[2].count, p[1].busy = 3, 5, 4, 3*time.Second }, 0,
			"rank 1 waits in collective 5 for 3.0 s; still missing: rank 0 (host 0)"},
		{"stuck, all in it", func(p []*peer) { p[0].count, p[1].count, p[2].count, p[1].busy = 5, 5, 5, 3*time.Second },
			0, "rank 1 waits in collective 5 for 3.0 s; all ranks are in it"},
	} {
		s := bare(3, 0, 1, 2)
		c.change(s.peers)
		if s.look(now.Add(c.after)); s.why != c.why || s.over != (c.why != "") {
			t.Errorf("%s: %q, want %q", c.name, s.why, c.why)
		}
		for _, p := range s.peers[1:] { // rank 0 is told later
			if list := p.told(t); (len(list) == 1 && list[0].Kind == msgFail &&
				list[0].Text == c.why) != (c.why != "") {
				t.Errorf("%s: rank %d is told %+v", c.name, p.rank, list)
			}
		}
	}
}

// Who is admitted, and what the others are told.
func TestAdmit(t *testing.T) {
	s := bare(2)
	hello := func(r, world int) error { return s.admit(newPeer(r), message{Kind: msgHello, Rank: r, World: world}) }
	for r, want := range map[int]string{-1: "rank -1 (host -1) of 2 ranks", 2: "rank 2 (host 2) of 2 ranks"} {
		if err := hello(r, 2); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := hello(1, 2); err != nil || s.joined {
		t.Fatalf("%v, joined %v", err, s.joined)
	}
	if err := hello(1, 2); err == nil || err.Error() != "rank 1 is here twice: host 1 and host 1" {
		t.Error(err)
	}
	if got := s.missing(); got != "of 2 ranks these never came: 0" {
		t.Error(got)
	}
	s.turnAway("somebody")
	if got := s.missing(); got != "of 2 ranks these never came: 0; turned away: somebody" {
		t.Error(got)
	}
	if err := hello(0, 2); err != nil || !s.joined {
		t.Fatalf("%v, joined %v", err, s.joined)
	}
	for r, p := range s.peers {
		list := p.told(t)
		if len(list) != 1 || list[0].Kind != msgJoined || len(list[0].Values) != 2 ||
			string(list[0].Values[0]) != "host 0" || string(list[0].Values[1]) != "host 1" {
			t.Errorf("rank %d is told %+v", r, list)
		}
		if time.Since(p.seen) > time.Minute {
			t.Errorf("rank %d counts as silent since before the others came", r)
		}
	}
	if err := hello(1, 2); err == nil ||
		err.Error() != "rank 1 (host 1) comes too late: all 2 ranks are here, rank 1 is host 1" {
		t.Error(err)
	}
	s = bare(2, 0)
	if err := hello(1, 3); err == nil ||
		err.Error() != "rank 1 (host 1) was told of 3 ranks, rank 0 of 2: start all of them with the same number" ||
		!s.over {
		t.Error(err)
	}
	// The job has ended, and says why.
	if err := hello(1, 2); err == nil || !strings.Contains(err.Error(), "was told of 3 ranks") {
		t.Error(err)
	}
	for range 20 {
		s.turnAway("x")
	}
	if len(s.refused) != 8 {
		t.Errorf("%d that were turned away are kept", len(s.refused))
	}
}

// Values of a tag are sent when every rank has given one, in the order of ranks, an empty one too; the first of a rank
// counts, and tags do not mix. Beats and failures are taken beside them.
func TestPut(t *testing.T) {
	s := bare(2, 0, 1)
	put := func(r int, tag, v string) {
		s.take(s.peers[r], message{Kind: msgPut, Tag: tag, Value: []byte(v)})
	}
	put(1, "a", "one")
	put(1, "a", "again")
	put(1, "b", "")
	if list := s.peers[0].told(t); len(list) != 0 {
		t.Errorf("told %+v before all are there", list)
	}
	put(0, "b", "zero")
	put(0, "a", "")
	for r, p := range s.peers {
		list := p.told(t)
		if len(list) != 2 || list[0].Kind != msgAll || list[0].Tag != "b" ||
			string(bytes.Join(list[0].Values, []byte("|"))) != "zero|" || list[1].Tag != "a" ||
			string(bytes.Join(list[1].Values, []byte("|"))) != "|one" {
			t.Errorf("rank %d is told %+v", r, list)
		}
	}
	if len(s.values) != 0 {
		t.Errorf("%d tags are kept", len(s.values))
	}
	// A beat is answered, and its numbers are kept.
	s.take(s.peers[1], message{Kind: msgBeat, Count: 7, Busy: 1500})
	if p := s.peers[1]; p.count != 7 || p.busy != 1500*time.Millisecond || len(p.told(t)) != 1 ||
		len(s.peers[0].told(t)) != 0 {
		t.Errorf("%d, %v", p.count, p.busy)
	}
	// A rank that gives up ends the job, with its code; later ends change nothing.
	s.take(s.peers[1], message{Kind: msgFail, Text: "no disk", Code: 4})
	if list := s.peers[1].told(t); !s.over || s.why != "rank 1 (host 1): no disk" || len(list) != 1 ||
		list[0].Kind != msgFail || list[0].Code != 4 || list[0].Text != s.why {
		t.Errorf("%q, told %+v", s.why, list)
	}
	if s.fail("another"); s.why != "rank 1 (host 1): no disk" {
		t.Error(s.why)
	}
	for _, p := range s.peers { // all may say goodbye afterwards
		s.take(p, message{Kind: msgBye})
	}
	if list := s.peers[1].told(t); s.why != "rank 1 (host 1): no disk" || len(list) != 0 {
		t.Errorf("%q, told %+v", s.why, list)
	}
}

// The job ends well when all have said goodbye, and not before. A connection that ends before all have come leaves its
// place, afterwards it is a loss.
func TestJobEnds(t *testing.T) {
	s := bare(2, 0, 1)
	s.take(s.peers[1], message{Kind: msgBye})
	if s.over || !s.peers[1].left {
		t.Error("over when one of two has left")
	}
	s.gone(s.peers[1], errors.New("EOF")) // one that has left may go
	if s.take(s.peers[0], message{Kind: msgBye}); !s.over || s.why != "the job has ended" ||
		s.peers[0].told(t)[0].Kind != msgEnd {
		t.Errorf("%q", s.why)
	}
	s = bare(3, 0, 1)
	if s.gone(s.peers[1], errors.New("EOF")); s.peers[1] != nil || s.over {
		t.Error("a rank may come again before all are there")
	}
	s = bare(2, 0, 1)
	if s.gone(s.peers[1], errors.New("EOF")); s.why != "rank 1 (host 1) has died: its connection ended (EOF)" {
		t.Error(s.why)
	}
	s = bare(2, 0, 1)
	if s.quit(message{Kind: msgFail, Text: "full", Code: 4}); s.why != "rank 0 (host 0): full" ||
		s.peers[1].told(t)[0].Code != 4 {
		t.Error(s.why)
	}
}

// Ranks that differ are told the same: which rank, what it has, and what rank 0 has.
func TestAgreeNames(t *testing.T) {
	two, one, more, other := map[string]string{"a": "1", "b": "2"}, map[string]string{"a": "1"},
		map[string]string{"a": "1", "b": "2", "c": "0"}, map[string]string{"a": "1", "b": "3"}
	for _, c := range []struct {
		facts [3]map[string]string
		want  string
	}{
		{[3]map[string]string{two, two, {"b": "2", "a": "1"}}, ""},
		{[3]map[string]string{two, two, other}, "rank 2 (p2) has b=3, rank 0 (p0) has b=2: "},
		{[3]map[string]string{two, other, one}, "rank 1 (p1) has b=3, rank 0 (p0) has b=2: "},
		{[3]map[string]string{two, two, more}, "rank 2 (p2) has c=0, rank 0 (p0) has nothing: "},
		{[3]map[string]string{two, one, two}, "rank 1 (p1) has nothing, rank 0 (p0) has b=2: "},
		{[3]map[string]string{other, two, two}, "rank 1 (p1) has b=2, rank 0 (p0) has b=3: "},
	} {
		jobs, errs := joinAll(t, "tcp://"+freePort(t), 3, nil)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for r, j := range jobs {
			j.Peers = []string{"p0", "p1", "p2"}
			wg.Go(func() { errs[r] = j.Agree("x", c.facts[r]) })
		}
		wg.Wait()
		for r, err := range errs {
			if (err == nil) != (c.want == "") || err != nil &&
				(!errors.Is(err, ErrDiffer) || !strings.Contains(err.Error(), c.want) ||
					err.Error() != errs[0].Error()) {
				t.Errorf("rank %d: %v, want %q", r, err, c.want)
			}
		}
		closeAll(t, jobs)
	}
	var o Options
	if o.complete(); o.JoinTimeout != 5*time.Minute || o.PeerTimeout != 30*time.Second ||
		o.StallTimeout != 10*time.Minute {
		t.Errorf("%+v", o)
	}
	o = Options{JoinTimeout: 1, PeerTimeout: 2, StallTimeout: 3}
	if o.complete(); o.JoinTimeout != 1 || o.PeerTimeout != 2 || o.StallTimeout != 3 {
		t.Errorf("%+v", o)
	}
	if g := (&GaveUp{Text: "full", Code: 4}); g.Error() != "a rank was lost: full" || !errors.Is(g, ErrPeer) {
		t.Error(g)
	}
}

// The shapes that collectives take.
func TestCheckShapes(t *testing.T) {
	of := func(ty tensor.DType, rows, cols, ld int) tensor.Tensor {
		return tensor.Tensor{Buf: &tensor.Buffer{Host: make([]byte, 1024), Size: 1024}, Type: ty, Rows: rows,
			Cols: cols, Ld: ld}
	}
	panics := func(f func()) (did bool) {
		defer func() { did = recover() != nil }()
		f()
		return false
	}
	for name, c := range map[string]struct {
		f    func()
		good bool
	}{
		"scatter":      {func() { CheckScatter("x", of(tensor.F32, 2, 4, 4), of(tensor.F32, 6, 4, 4), 3) }, true},
		"too few":      {func() { CheckScatter("x", of(tensor.F32, 2, 4, 4), of(tensor.F32, 6, 4, 4), 2) }, false},
		"another type": {func() { CheckScatter("x", of(tensor.F64, 2, 4, 4), of(tensor.F32, 6, 4, 4), 3) }, false},
		"a view as part": {func() { CheckScatter("x", of(tensor.F32, 2, 4, 5), of(tensor.F32, 6, 4, 4), 3) },
			false},
		"a view as whole": {func() { CheckScatter("x", of(tensor.F32, 2, 4, 4), of(tensor.F32, 6, 4, 5), 3) }, false},
		"sum":             {func() { CheckSum("x", of(tensor.F32, 2, 4, 4)) }, true},
		"sum of doubles":  {func() { CheckSum("x", of(tensor.F64, 2, 4, 4)) }, true},
		"sum of a view":   {func() { CheckSum("x", of(tensor.F32, 2, 4, 5)) }, false},
		"sum of halves":   {func() { CheckSum("x", of(tensor.BF16, 2, 4, 4)) }, false},
		"sum of nothing":  {func() { CheckSum("x", tensor.Tensor{}) }, false},
	} {
		if panics(c.f) == c.good {
			t.Errorf("%s: good %v", name, !c.good)
		}
	}
}
