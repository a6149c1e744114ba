package dist

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"antiphase/internal/fault"
)

// Options configure rendezvous and timeouts.
type Options struct {
	Rendezvous string // tcp://host:port or file:///folder; "" uses the launcher's address or a private folder
	Interface  string // name or address that rank 0 listens on if the rendezvous names none
	Secret     []byte // required for tcp://
	Via        Comm   // a connected engine that can carry rank 0's address: MPI

	JoinTimeout  time.Duration // until every rank has joined
	PeerTimeout  time.Duration // without a heartbeat from a rank or from rank 0's store
	StallTimeout time.Duration // in one collective

	// OnLost is called once, on its own goroutine, when the job is lost: a rank died, hung or gave up. The caller's
	// goroutine may be waiting in a collective that cannot be interrupted, so OnLost should end the process.
	OnLost func(error)
}

// Defaults of the timeouts.
const (
	DefaultJoin  = 5 * time.Minute
	DefaultPeer  = 30 * time.Second
	DefaultStall = 10 * time.Minute
)

func (o *Options) complete() {
	for _, x := range []struct {
		d *time.Duration
		v time.Duration
	}{{&o.JoinTimeout, DefaultJoin}, {&o.PeerTimeout, DefaultPeer}, {&o.StallTimeout, DefaultStall}} {
		if *x.d == 0 {
			*x.d = x.v
		}
	}
}

// Job is a rank's membership. Its methods are called by one goroutine.
type Job struct {
	Launch Launch
	Peers  []string // host and process of every rank
	Where  string   // how the ranks met

	opt   Options
	store *store // of rank 0
	meet  meeting
	link  *link

	count, began atomic.Uint64 // collectives begun; start time of the current one, in ms since start, plus 1
	start        time.Time
	seen         atomic.Int64 // time of the store's last message, in ms since start
	joined       atomic.Bool
	closing      atomic.Bool
	failed       atomic.Bool // this rank gave up itself, see Fail

	mu   sync.Mutex
	err  error // why the job ended
	over chan struct{}
	once sync.Once
	all  map[string]chan [][]byte
	wg   sync.WaitGroup
}

// Join meets the other ranks of l's world. It fails if they do not all join within Options.JoinTimeout.
func Join(ctx context.Context, l Launch, o Options) (*Job, error) {
	o.complete()
	meet, err := meetingOf(l, o)
	if err != nil {
		return nil, err
	}
	j := &Job{Launch: l, Where: meet.String(), opt: o, meet: meet, start: time.Now(), over: make(chan struct{}),
		all: map[string]chan [][]byte{}}
	ctx, cancel := context.WithTimeout(ctx, o.JoinTimeout)
	defer cancel()
	if err := j.join(ctx); err != nil {
		j.shut()
		return nil, err
	}
	j.wg.Add(1)
	go j.beat()
	return j, nil
}

func (j *Job) join(ctx context.Context) error {
	if j.Launch.Rank == 0 {
		if err := j.host(); err != nil {
			return err
		}
	}
	if err := j.dial(ctx); err != nil {
		return err
	}
	host, _ := os.Hostname() // only for messages
	if err := j.link.send(message{Kind: msgHello, Rank: j.Launch.Rank, World: j.Launch.World, Host: host,
		PID: os.Getpid()}, handshake); err != nil {
		return fmt.Errorf("dist: rank %d: %w", j.Launch.Rank, err)
	}
	joined := make(chan [][]byte, 1)
	j.all[msgJoined] = joined
	j.wg.Add(1)
	go j.read()
	select {
	case v := <-joined:
		for _, b := range v {
			j.Peers = append(j.Peers, string(b))
		}
		j.joined.Store(true)
		return j.Err()
	case <-j.over:
		return j.Err()
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return fmt.Errorf("dist: while the ranks met: %w", ctx.Err())
		}
		why := fmt.Sprintf("rank 0 is at %s, but not every rank came", j.link.c.RemoteAddr())
		if j.store != nil {
			why = j.store.missing()
		}
		return fmt.Errorf("dist: rank %d of %d waited %s at %s: %s", j.Launch.Rank, j.Launch.World, j.opt.JoinTimeout,
			j.Where, why)
	}
}

// host opens rank 0's store.
func (j *Job) host() error {
	addr, secret, err := j.meet.bind()
	if err != nil {
		return err
	}
	if j.store, err = listen(addr, secret, j.Launch.World, j.opt); err != nil {
		return err
	}
	return j.meet.publish(j.store.addr(), secret)
}

// dial retries until the store answers. A wrong answer may come from an old job's store; otherwise it is final.
func (j *Job) dial(ctx context.Context) error {
	var last error
	for {
		again := true
		addr, secret, stale, err := j.meet.find()
		if err == nil {
			var d net.Dialer
			var c net.Conn
			if c, err = d.DialContext(ctx, "tcp", addr); err == nil {
				if j.link, err = connect(c, secret); err == nil {
					return nil
				}
				_ = c.Close()
				again = stale || !errors.Is(err, errSecret) && !errors.Is(err, errNotStore) // busy, or about to end
			}
			err = fmt.Errorf("%s: %w", addr, err)
		} else if !stale {
			again = false
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if !again {
			return fmt.Errorf("dist: rank %d of %d is refused at %w", j.Launch.Rank, j.Launch.World, last)
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return fmt.Errorf("dist: while the ranks met: %w", ctx.Err())
			}
			return fmt.Errorf("dist: rank %d of %d waited %s and did not reach rank 0 at %s (%w)", j.Launch.Rank,
				j.Launch.World, j.opt.JoinTimeout, j.Where, last)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// read handles messages of the store.
func (j *Job) read() {
	defer fault.Guard()()
	defer j.wg.Done()
	for {
		m, err := j.link.receive()
		if err != nil {
			if !j.closing.Load() {
				j.lose(fmt.Errorf("%w: rank 0 has died: its connection ended (%w)", ErrPeer, err))
			}
			return
		}
		j.seen.Store(time.Since(j.start).Milliseconds())
		switch m.Kind {
		case msgJoined, msgAll:
			tag := m.Tag
			if m.Kind == msgJoined {
				tag = msgJoined
			}
			j.waiter(tag) <- m.Values
		case msgFail:
			j.lose(&GaveUp{m.Text, m.Code})
		case msgEnd:
			j.waiter(msgEnd) <- nil
		}
	}
}

func (j *Job) waiter(tag string) chan [][]byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.all[tag] == nil {
		j.all[tag] = make(chan [][]byte, 1)
	}
	return j.all[tag]
}

// lose ends the job on this rank.
func (j *Job) lose(err error) {
	j.once.Do(func() {
		j.mu.Lock()
		j.err = err
		j.mu.Unlock()
		if j.store != nil {
			j.meet.close() // OnLost may end the process
		}
		close(j.over)
		if j.opt.OnLost != nil && j.joined.Load() {
			wait := time.Duration(0)
			if j.failed.Load() {
				wait = lastResort
			}
			time.AfterFunc(wait, func() {
				defer fault.Guard()()
				j.opt.OnLost(err)
			})
		}
	})
}

// lastResort is the time a rank that gave up has to exit by itself before OnLost ends it. It has its own error to
// print, but closing may wait for a rank that is gone.
const lastResort = 15 * time.Second

// Err is why the job ended, nil while it runs.
func (j *Job) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// beat sends the store heartbeats with this rank's progress, and detects when the store does not answer.
func (j *Job) beat() {
	defer fault.Guard()()
	defer j.wg.Done()
	tick := time.NewTicker(j.opt.PeerTimeout / 8)
	defer tick.Stop()
	for {
		m := message{Kind: msgBeat, Count: j.count.Load()}
		if b := j.began.Load(); b > 0 {
			m.Busy = time.Since(j.start).Milliseconds() - int64(b-1)
		}
		_ = j.link.send(m, j.opt.PeerTimeout) // the reader detects problems of the connection
		if silent := time.Since(j.start) - time.Duration(j.seen.Load())*time.Millisecond; silent > j.opt.PeerTimeout {
			j.lose(fmt.Errorf(
				"%w: rank 0 (%s) has given no sign for %.1f s: it hangs, was stopped, or its network is gone",
				ErrPeer, j.Peers[0], silent.Seconds()))
		}
		select {
		case <-j.over:
			return
		case <-tick.C:
		}
	}
}

// Exchange returns every rank's value under a tag, in rank order, to every rank. A tag is used once.
func (j *Job) Exchange(tag string, value []byte) ([][]byte, error) {
	if err := j.link.send(message{Kind: msgPut, Tag: tag, Value: value}, j.opt.PeerTimeout); err != nil {
		return nil, fmt.Errorf("dist: %s: %w", tag, errors.Join(j.Err(), err))
	}
	select {
	case v := <-j.waiter(tag):
		j.mu.Lock()
		delete(j.all, tag)
		j.mu.Unlock()
		return v, nil
	case <-j.over:
		return nil, fmt.Errorf("dist: %s: %w", tag, j.Err())
	}
}

// Agree fails if a fact of this rank differs from rank 0's: the ranks would train different things. The error is the
// same on all ranks. Values are short: hashes and versions.
func (j *Job) Agree(tag string, facts map[string]string) error {
	names := make([]string, 0, len(facts))
	for n := range facts {
		names = append(names, n)
	}
	sort.Strings(names)
	var mine []string
	for _, n := range names {
		mine = append(mine, n+"="+facts[n])
	}
	all, err := j.Exchange(tag, []byte(strings.Join(mine, "\n")))
	if err != nil {
		return err
	}
	first := strings.Split(string(all[0]), "\n")
	for r, v := range all[1:] {
		got := strings.Split(string(v), "\n")
		for i := range max(len(first), len(got)) {
			if a, b := at(first, i), at(got, i); a != b {
				return fmt.Errorf(
					"%w: rank %d (%s) has %s, rank 0 (%s) has %s: start every rank with the same program, "+
						"recipe and data", ErrDiffer, r+1, j.Peers[r+1], b, j.Peers[0], a)
			}
		}
	}
	return nil
}

// ErrDiffer means that ranks were about to do different things.
var ErrDiffer = errors.New("ranks differ")

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "nothing"
}

// Fail tells all ranks that this one gives up, and why. Their error is a GaveUp with this exit code, 0 to suggest none.
func (j *Job) Fail(why error, code int) {
	j.failed.Store(true)
	m := message{Kind: msgFail, Text: why.Error(), Code: code}
	if j.store != nil {
		j.store.quit(m) // before this process ends, and the store with it
		j.meet.close()
		return
	}
	_ = j.link.send(m, handshake) // a rank that cannot receive it detects the end of the connection
}

// Close leaves normally: rank 0 waits until the others have left too, at most Options.PeerTimeout.
func (j *Job) Close() error {
	defer j.shut()
	if err := j.Err(); err != nil {
		return err
	}
	j.closing.Store(true)
	if err := j.link.send(message{Kind: msgBye}, j.opt.PeerTimeout); err != nil {
		return fmt.Errorf("dist: %w", err)
	}
	select {
	case <-j.waiter(msgEnd):
	case <-j.over:
		return j.Err()
	case <-time.After(j.opt.PeerTimeout):
	}
	return nil
}

// shut releases everything.
func (j *Job) shut() {
	j.once.Do(func() { close(j.over) }) // from here on nothing counts as a loss
	if j.link != nil {
		_ = j.link.c.Close()
	}
	if j.store != nil {
		j.store.close()
		j.meet.close()
	}
	j.wg.Wait()
}

// Watch counts the collectives of c, so that the store can name the rank that others are waiting for.
func (j *Job) Watch(c Comm) Comm { return &watched{c, j} }
