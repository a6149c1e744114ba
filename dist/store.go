package dist

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"antiphase/internal/fault"
)

// store runs in rank 0's process. Every rank, including rank 0, holds one connection to it. It exchanges values,
// detects the loss of a rank and tells the others.
type store struct {
	ln      net.Listener
	secret  []byte
	world   int
	timeout time.Duration // without a message from a rank
	stall   time.Duration // in one collective

	mu      sync.Mutex
	peers   []*peer // by rank; nil until it has joined
	conns   map[net.Conn]bool
	waiting []net.Conn // connections that are not authenticated yet, the oldest first
	joined  bool
	over    bool
	closed  bool
	why     string              // why the job ended
	values  map[string][][]byte // by tag, one per rank; complete ones are sent and dropped
	refused []string            // rejected connections before all ranks joined, for the error of those who wait
	done    chan struct{}       // closed when the job ends
	wg      sync.WaitGroup
}

// peer is a rank as the store sees it.
type peer struct {
	*link
	rank  int
	where string // host and process
	seen  time.Time
	count uint64
	busy  time.Duration
	left  bool
}

// pending bounds the connections that are not authenticated yet, besides one for each rank.
const pending = 64

// listen opens the store on one address of this machine. Port 0 picks a free one.
func listen(addr string, secret []byte, world int, o Options) (*store, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("dist: rank 0 cannot listen on %s: %w; name another port", addr, err)
	}
	s := &store{ln: ln, secret: secret, world: world, timeout: o.PeerTimeout, stall: o.StallTimeout,
		peers: make([]*peer, world), conns: map[net.Conn]bool{}, values: map[string][][]byte{},
		done: make(chan struct{})}
	s.wg.Add(2)
	go s.acceptAll()
	go s.watch()
	return s, nil
}

func (s *store) addr() string { return s.ln.Addr().String() }

func (s *store) acceptAll() {
	defer fault.Guard()()
	defer s.wg.Done()
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		if !s.track(c, true) {
			return
		}
		s.wg.Add(1)
		go func() {
			defer fault.Guard()()
			defer s.wg.Done()
			defer s.track(c, false)
			p, err := s.enter(c)
			s.known(c)
			if err == nil {
				s.serve(p)
			}
		}()
	}
}

// known takes c off the list of those that are not authenticated.
func (s *store) known(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(w net.Conn) bool { return w == c })
}

// track records the open connections, so that close can close them; after the end it closes c and returns false. In a
// flood it closes the connection that has said nothing for longest: a rank needs milliseconds, and tries again.
func (s *store) track(c net.Conn, open bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open && !s.closed {
		s.conns[c] = true
		if s.waiting = append(s.waiting, c); len(s.waiting) > pending+s.world {
			_ = s.waiting[0].Close()
			s.waiting = s.waiting[1:]
		}
		return true
	}
	delete(s.conns, c)
	_ = c.Close()
	return false
}

// enter admits a connection as a rank.
func (s *store) enter(c net.Conn) (*peer, error) {
	l, err := accept(c, s.secret)
	if err != nil {
		s.turnAway(fmt.Sprintf("%s (%v)", c.RemoteAddr(), err))
		return nil, err
	}
	_ = c.SetReadDeadline(time.Now().Add(handshake)) // fails only for a closed connection, and then so does receive
	m, err := l.receive()
	if err != nil || m.Kind != msgHello {
		return nil, errors.Join(err, errNotStore)
	}
	_ = c.SetReadDeadline(time.Time{})
	p := &peer{link: l, rank: m.Rank, where: fmt.Sprintf("%s, process %d", m.Host, m.PID), seen: time.Now()}
	if err := s.admit(p, m); err != nil {
		_ = l.send(message{Kind: msgFail, Text: err.Error()}, handshake)
		s.turnAway(err.Error())
		return nil, err
	}
	return p, nil
}

func (s *store) turnAway(who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.joined && len(s.refused) < 8 {
		s.refused = append(s.refused, who)
	}
}

// admit gives p its place, and tells all ranks when the last has joined.
func (s *store) admit(p *peer, m message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return errors.New(s.why)
	case m.World != s.world:
		err := fmt.Errorf("rank %d (%s) was told of %d ranks, rank 0 of %d: start all of them with the same number",
			p.rank, p.where, m.World, s.world)
		s.fail(err.Error())
		return err
	case p.rank < 0 || p.rank >= s.world:
		return fmt.Errorf("rank %d (%s) of %d ranks", p.rank, p.where, s.world)
	case s.peers[p.rank] != nil && s.joined:
		return fmt.Errorf("rank %d (%s) comes too late: all %d ranks are here, rank %d is %s", p.rank, p.where, s.world,
			p.rank, s.peers[p.rank].where)
	case s.peers[p.rank] != nil:
		return fmt.Errorf("rank %d is here twice: %s and %s", p.rank, s.peers[p.rank].where, p.where)
	}
	s.peers[p.rank] = p
	if slices.Contains(s.peers, nil) {
		return nil
	}
	s.joined = true
	var table [][]byte
	for _, q := range s.peers {
		q.seen = time.Now()
		table = append(table, []byte(q.where))
	}
	s.tell(message{Kind: msgJoined, Values: table})
	return nil
}

// tell sends m to every rank that has joined; s.mu is held. If a connection fails the rank's own reader notices.
func (s *store) tell(m message) {
	for _, p := range s.peers {
		if p == nil {
			continue
		}
		if err := p.send(m, s.timeout); errors.Is(err, errTooLarge) {
			s.fail(fmt.Sprintf("what the ranks exchange as %q: %v", m.Tag, err))
			return
		}
	}
}

// quit is end for rank 0, which gives up.
func (s *store) quit(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.peers[0]; p != nil {
		m.Text = fmt.Sprintf("rank %d (%s): %s", p.rank, p.where, m.Text)
	}
	s.end(m)
}

// grace is how long rank 0, whose process holds the store, stays after telling the others why the job ended.
const grace = 250 * time.Millisecond

// fail ends the job for all ranks, rank 0 last; s.mu is held.
func (s *store) fail(text string) { s.end(message{Kind: msgFail, Text: text}) }

// end is fail with a message that may suggest an exit code.
func (s *store) end(m message) {
	if s.over {
		return
	}
	s.over, s.why = true, m.Text
	for _, p := range s.peers[1:] {
		if p != nil {
			_ = p.send(m, s.timeout) // a rank that cannot receive it detects the end of the connection
		}
	}
	if first := s.peers[0]; first != nil {
		time.AfterFunc(grace, func() { _ = first.send(m, s.timeout) })
	}
	close(s.done)
}

// serve reads a rank's messages until it leaves.
func (s *store) serve(p *peer) {
	for {
		m, err := p.receive()
		s.mu.Lock()
		if err != nil {
			s.gone(p, err)
			s.mu.Unlock()
			return
		}
		p.seen = time.Now()
		s.take(p, m)
		s.mu.Unlock()
	}
}

// gone handles the end of a connection; s.mu is held.
func (s *store) gone(p *peer, err error) {
	switch {
	case s.over || p.left:
	case !s.joined:
		s.peers[p.rank] = nil // it may connect again
	default:
		s.fail(fmt.Sprintf("rank %d (%s) has died: its connection ended (%v)", p.rank, p.where, err))
	}
}

// take handles one message; s.mu is held.
func (s *store) take(p *peer, m message) {
	switch m.Kind {
	case msgBeat:
		p.count, p.busy = m.Count, time.Duration(m.Busy)*time.Millisecond
		_ = p.send(message{Kind: msgBeat}, s.timeout)
	case msgPut:
		s.put(p, m)
	case msgFail:
		s.end(message{Kind: msgFail, Text: fmt.Sprintf("rank %d (%s): %s", p.rank, p.where, m.Text), Code: m.Code})
	case msgBye:
		p.left = true
		if s.everyone(func(q *peer) bool { return q != nil && q.left }) && !s.over {
			s.over, s.why = true, "the job has ended"
			s.tell(message{Kind: msgEnd})
			close(s.done)
		}
	}
}

func (s *store) everyone(is func(*peer) bool) bool {
	return !slices.ContainsFunc(s.peers, func(p *peer) bool { return !is(p) })
}

// put stores a value until every rank has sent one under the same tag.
func (s *store) put(p *peer, m message) {
	all := s.values[m.Tag]
	if all == nil {
		all = make([][]byte, s.world)
		s.values[m.Tag] = all
	}
	if all[p.rank] == nil {
		all[p.rank] = append([]byte{}, m.Value...)
	}
	if !slices.ContainsFunc(all, func(v []byte) bool { return v == nil }) {
		delete(s.values, m.Tag)
		s.tell(message{Kind: msgAll, Tag: m.Tag, Values: all})
	}
}

// watch looks for ranks that have become silent or are stuck.
func (s *store) watch() {
	defer fault.Guard()()
	defer s.wg.Done()
	tick := time.NewTicker(s.timeout / 8)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case now := <-tick.C:
			s.mu.Lock()
			if s.joined {
				s.look(now)
			}
			s.mu.Unlock()
		}
	}
}

// look ends the job if necessary; s.mu is held.
func (s *store) look(now time.Time) {
	var least uint64
	stuck := -1
	for i, p := range s.peers {
		if silent := now.Sub(p.seen); silent > s.timeout && !p.left {
			s.fail(fmt.Sprintf(
				"rank %d (%s) has given no sign for %.1f s: it hangs, was stopped, or its network is gone",
				p.rank, p.where, silent.Seconds()))
			return
		}
		if p.busy > s.stall {
			stuck = i
		}
		if i == 0 || p.count < least {
			least = p.count
		}
	}
	if stuck < 0 {
		return
	}
	var late []string
	for _, p := range s.peers {
		if p.count == least && least < s.peers[stuck].count {
			late = append(late, fmt.Sprintf("rank %d (%s)", p.rank, p.where))
		}
	}
	who := "all ranks are in it"
	if late != nil {
		who = "still missing: " + strings.Join(late, ", ")
	}
	p := s.peers[stuck]
	s.fail(fmt.Sprintf("rank %d waits in collective %d for %.1f s; %s", p.rank, p.count, p.busy.Seconds(), who))
}

// missing lists the ranks that have not joined, for the error of a join that timed out.
func (s *store) missing() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for r, p := range s.peers {
		if p == nil {
			out = append(out, fmt.Sprint(r))
		}
	}
	text := fmt.Sprintf("of %d ranks these never came: %s", s.world, strings.Join(out, ", "))
	if len(s.refused) > 0 {
		text += "; turned away: " + strings.Join(s.refused, "; ")
	}
	return text
}

// close ends the store and closes open connections.
func (s *store) close() {
	_ = s.ln.Close()
	s.mu.Lock()
	if !s.over {
		s.over = true
		close(s.done)
	}
	s.closed = true
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}
