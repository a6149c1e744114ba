package infer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/model"
	"antiphase/tensor"
)

// behind is a device that appears asynchronous: a fetch returns the contents at the time it was started.
type behind struct {
	device.Device
	advanced int
	at       map[int]func() // called by that Advance
	fault    error          // of the work so far
	ids, pos []int32
}

func (b *behind) Advance(ids, pos, best tensor.Tensor) {
	device.CheckAdvance(ids, pos, best)
	n := ids.Cols
	b.ids, b.pos = slices.Grow(b.ids[:0], n)[:n], slices.Grow(b.pos[:0], n)[:n]
	device.ReadI32(b.Device, b.ids, best)
	device.ReadI32(b.Device, b.pos, pos)
	for i := range n {
		b.ids[i] = max(b.ids[i], 0)
		b.pos[i]++
	}
	device.WriteI32(b.Device, ids, b.ids)
	device.WriteI32(b.Device, pos, b.pos)
	b.advanced++
	if f := b.at[b.advanced]; f != nil {
		f()
	}
}

func (b *behind) Sync() error {
	err := b.fault
	b.fault = nil
	return errors.Join(err, b.Device.Sync())
}

func (b *behind) NewFetch(bytes int) device.Fetch { return &copied{b: b, room: make([]byte, bytes)} }

type copied struct {
	b    *behind
	room []byte
	n    int
	err  error
}

func (c *copied) Start(src tensor.Tensor) {
	c.n = 4 * src.Cols
	c.b.Read(c.room[:c.n], src)
	c.err = c.b.Sync()
}

func (c *copied) Wait(dst []byte) error {
	if len(dst) != c.n {
		panic(fmt.Sprintf("%d bytes of a copy of %d", len(dst), c.n))
	}
	copy(dst, c.room)
	return c.err
}

func (c *copied) Free() {}

// onBehind is the same tiny model on the oracle and on an asynchronous one. Large weights keep it from repeating
// itself.
func onBehind(t testing.TB, arch string) (plain, ahead *model.Model, b *behind) {
	b = &behind{Device: ref.New(), at: map[int]func(){}}
	plain, ahead = tiny(t, ref.New(), arch), tiny(t, b, arch)
	for _, m := range []*model.Model{plain, ahead} {
		for _, p := range m.Params.List {
			if p.Rows > 1 {
				x := make([]float32, p.Rows*p.Cols)
				device.ReadFloats(m.Device(), x, p.W)
				for i := range x {
					x[i] *= 20
				}
				m.Params.Set(m.Device(), p, x)
			}
		}
	}
	return plain, ahead, b
}

// drained holds an engine to what it must be when no call is in flight.
func drained(t testing.TB, e *Engine) {
	t.Helper()
	if s := e.Stats(); s.FreePages != s.Pages || s.Running+s.Waiting > 0 || e.pass.underWay() || e.stepping {
		t.Errorf("left behind %+v, a step under way: %v", s, e.pass.underWay())
	}
}

// A step ahead is a step like any other: as many of them, with as many rows, and the same tokens.
func TestAheadTakesTheSameSteps(t *testing.T) {
	plain, ahead, b := onBehind(t, "diff")
	reqs := []Request{{IDs: []int32{1, 2, 3}, Sampling: Sampling{MaxTokens: 20}},
		{IDs: []int32{4}, Sampling: Sampling{MaxTokens: 12}}, {IDs: []int32{5, 6}, Sampling: Sampling{MaxTokens: 20}}}
	p, a := engine(t, plain, nil, Options{PageSize: 4}), engine(t, ahead, nil, Options{PageSize: 4})
	if d := cmp.Diff(generate(t, p, reqs...), generate(t, a, reqs...)); d != "" {
		t.Errorf("in step (-) and ahead (+):\n%s", d)
	}
	if d := cmp.Diff(p.Stats(), a.Stats()); d != "" || b.advanced < 15 {
		t.Errorf("%d steps could be followed:\n%s", b.advanced, d)
	}
	drained(t, a)
	// An unforeseen end costs one row of each sequence that had it.
	alone := generate(t, p, Request{IDs: []int32{1, 2, 3}, Sampling: Sampling{MaxTokens: 20}})[0].IDs
	stop := Request{IDs: []int32{1, 2, 3}, Sampling: Sampling{MaxTokens: 20, StopIDs: alone[6:7]}}
	used := slices.Index(alone, alone[6]) + 1
	before := a.Stats()
	got := generate(t, a, stop)[0]
	if !slices.Equal(got.IDs, alone[:used]) || got.Reason != ReasonStop {
		t.Errorf("%v for %q, want %v", got.IDs, got.Reason, alone[:used])
	}
	if s := a.Stats(); s.Steps-before.Steps != used+1 || s.Rows-before.Rows != 2+used+1 {
		t.Errorf("%d tokens took %d steps and %d rows", used, s.Steps-before.Steps, s.Rows-before.Rows)
	}
	drained(t, a)
}

// anyRequest is a random request, most of them greedy.
func anyRequest(r *rand.Rand, free []int32) Request {
	q := Request{Sampling: Sampling{MaxTokens: 1 + r.IntN(30), Seed: r.Uint64()}}
	for range 1 + r.IntN(20) {
		q.IDs = append(q.IDs, int32(r.IntN(50)))
	}
	switch r.IntN(8) {
	case 0:
		q.Sampling.Temperature = 1
	case 1:
		q.Sampling.Logprobs = 2
	case 2:
		q.Sampling.Echo = true
	case 3, 4:
		q.Sampling.StopIDs = []int32{free[r.IntN(len(free))]}
	}
	return q
}

// Whatever comes together, by whatever calls, in caches of whatever size, and whenever it leaves: everybody gets the
// tokens of being alone in step.
func TestAheadChangesNothing(t *testing.T) {
	preempted, advanced := 0, 0
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 1))
		plain, ahead, b := onBehind(t, []string{"diff", "diff2", "transformer"}[seed%3])
		alone := engine(t, plain, nil, Options{Slots: 1, EOS: []int32{17}})
		free := generate(t, alone, Request{IDs: []int32{1, 2},
			Sampling: Sampling{MaxTokens: 40, IgnoreEOS: true}})[0].IDs
		e := engine(t, ahead, nil, Options{Slots: 1 + r.IntN(8), PageSize: 1 + r.IntN(5), CacheTokens: 50 + r.IntN(30),
			PrefillChunk: 1 + r.IntN(12), EOS: []int32{17}})
		var wg sync.WaitGroup
		for range 3 {
			reqs := make([]Request, 1+r.IntN(6))
			want, leave := make([]answer, len(reqs)), make([]int, len(reqs))
			for i := range reqs {
				reqs[i] = anyRequest(r, free)
				want[i] = generate(t, alone, reqs[i])[0]
				if leave[i] = 1 << 30; r.IntN(4) == 0 {
					leave[i] = 1 + r.IntN(10)
				}
			}
			wg.Go(func() {
				got := make([]answer, len(reqs))
				err := e.Generate(context.Background(), reqs, func(i int, ev Event) bool {
					got[i].add(t, ev)
					return len(got[i].IDs) < leave[i]
				})
				for i := range reqs {
					if n := min(leave[i], len(want[i].IDs)); err != nil || !slices.Equal(got[i].IDs, want[i].IDs[:n]) ||
						n < leave[i] && got[i].Reason != want[i].Reason {
						t.Errorf("seed %d, %+v: %v for %q, want %v for %q (%v)", seed, reqs[i], got[i].IDs,
							got[i].Reason, want[i].IDs[:n], want[i].Reason, err)
					}
				}
			})
		}
		wg.Wait()
		drained(t, e)
		preempted, advanced = preempted+e.Stats().Preempted, advanced+b.advanced
	}
	if preempted == 0 || advanced == 0 {
		t.Errorf("%d sequences were preempted and %d steps could be followed: nothing was tested", preempted, advanced)
	}
}

// A new request waits only for the step in flight, and does not change the others.
func TestAheadLetsOthersIn(t *testing.T) {
	plain, ahead, _ := onBehind(t, "diff")
	long, short := Request{IDs: []int32{1, 2}, Sampling: Sampling{MaxTokens: 40}},
		Request{IDs: []int32{3, 4, 5}, Sampling: Sampling{MaxTokens: 4}}
	want := generate(t, engine(t, plain, nil, Options{}), long, short)
	e := engine(t, ahead, nil, Options{})
	var first, second answer
	if err := e.Generate(context.Background(), []Request{long}, func(_ int, ev Event) bool {
		if first.add(t, ev); len(first.IDs) == 5 {
			steps := e.Stats().Steps
			second = generate(t, e, short)[0]
			if n := e.Stats().Steps - steps; n != 1+4 {
				t.Errorf("four tokens took %d steps", n)
			}
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, []answer{first, second}); d != "" {
		t.Errorf("in step (-) and ahead (+):\n%s", d)
	}
	drained(t, e)
}

// A session keeps what its owner has seen, and not the row that was computed ahead of its end.
func TestAheadSessions(t *testing.T) {
	plain, ahead, _ := onBehind(t, "diff2")
	p, a := engine(t, plain, nil, Options{PageSize: 2, CacheTokens: 64}),
		engine(t, ahead, nil, Options{PageSize: 2, CacheTokens: 64})
	want, got := p.NewSession(), a.NewSession()
	for turn := range 6 {
		s := Sampling{MaxTokens: 7}
		if turn%2 == 1 && len(want.Tokens()) > 3 {
			s.StopIDs = want.Tokens()[3:9]
		}
		for _, x := range []*Session{want, got} {
			x.Append(int32(turn), 9)
			n := 0
			if err := x.Generate(context.Background(), s,
				func(Event) bool { n++; return turn != 2 || n < 4 }); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got.Tokens(), want.Tokens()) || got.seq.cached != want.seq.cached ||
			len(got.seq.pages) != len(want.seq.pages) || a.pass.underWay() {
			t.Fatalf("turn %d: %v with %d cached in %d pages, want %v with %d in %d", turn, got.Tokens(),
				got.seq.cached, len(got.seq.pages), want.Tokens(), want.seq.cached, len(want.seq.pages))
		}
	}
	got.Close()
	drained(t, a)
}

// Text stops where it should although the token after the stop string has been computed, and the session continues from
// there.
func TestAheadStopString(t *testing.T) {
	tok := bytesTokenizer(t)
	b := &behind{Device: ref.New()}
	e := engine(t, chain(t, b, "abcdefghij"), tok, Options{})
	s := e.NewSession()
	s.Append('a')
	got := say(t, s, Sampling{MaxTokens: 30, Stop: []string{"ef"}})
	if got.Text != "bcd" || got.Reason != ReasonStop || string(rune(s.Tokens()[len(s.Tokens())-1])) != "f" {
		t.Errorf("%q for %q, tokens %v", got.Text, got.Reason, s.Tokens())
	}
	if got := say(t, s, Sampling{MaxTokens: 30}); got.Text != "ghij" || got.Reason != ReasonEOS {
		t.Errorf("then %q for %q", got.Text, got.Reason)
	}
	s.Close()
	drained(t, e)
}

// A fault ends the call with the number of its step, after all earlier tokens, and a panic of the device or of emit
// leaves an engine that works.
func TestAheadFaults(t *testing.T) {
	_, m, b := onBehind(t, "diff")
	e := engine(t, m, nil, Options{PageSize: 4})
	reqs := []Request{{IDs: []int32{1, 2}, Sampling: Sampling{MaxTokens: 12}},
		{IDs: []int32{3, 4}, Sampling: Sampling{MaxTokens: 12}}}
	want := generate(t, e, reqs...)
	lost := errors.New("the device is lost")
	steps := e.Stats().Steps
	b.advanced = 0
	b.at[5] = func() { b.fault = lost } // of the sixth step: the prompts' cannot be followed
	given := 0
	err := e.Generate(context.Background(), reqs,
		func(_ int, ev Event) bool { given += min(1, int(ev.ID)+1); return true })
	if !errors.Is(err, lost) || !strings.Contains(err.Error(), fmt.Sprintf("step %d:", steps+5)) || given != 10 {
		t.Errorf("after %d tokens: %v", given, err)
	}
	drained(t, e)
	for name, stop := range map[string]func() bool{
		"the device": func() bool { b.advanced = 0; b.at[5] = func() { panic("gone") }; return false },
		"emit":       func() bool { return true },
	} {
		emits := stop()
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("the panic of %s was lost", name)
				}
			}()
			n := 0
			_ = e.Generate(context.Background(), reqs, func(int, Event) bool {
				if n++; emits && n == 9 {
					panic("enough")
				}
				return true
			})
		}()
		clear(b.at)
		if d := cmp.Diff(want, generate(t, e, reqs...)); d != "" {
			t.Errorf("after a panic of %s:\n%s", name, d)
		}
		drained(t, e)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	n := 0
	if err := e.Generate(ctx, reqs, func(int, Event) bool {
		if n++; n == 9 {
			cancel(lost)
		}
		return true
	}); !errors.Is(err, lost) {
		t.Errorf("cancelled with %v", err)
	}
	drained(t, e)
}

// A sequence whose logits are not finite fails alone, also where the next step has overwritten them.
func TestAheadNaN(t *testing.T) {
	_, m, b := onBehind(t, "transformer")
	e := engine(t, m, nil, Options{})
	good, bad := Request{IDs: []int32{1, 2, 3}, Sampling: Sampling{MaxTokens: 25}},
		Request{IDs: []int32{7}, Sampling: Sampling{MaxTokens: 25}}
	want := generate(t, e, good, bad)
	at := slices.IndexFunc(want[1].IDs,
		func(id int32) bool { return !slices.Contains(want[0].IDs, id) && !slices.Contains(good.IDs, id) })
	if at < 2 || at > 20 {
		t.Fatalf("no token of %v is the second's alone", want[1].IDs)
	}
	spoil(m, want[1].IDs[at])
	got := make([]answer, 2)
	b.advanced = 0
	err := e.Generate(context.Background(), []Request{good, bad},
		func(i int, ev Event) bool { got[i].add(t, ev); return true })
	if !errors.Is(err, errNoNumbers) || !strings.Contains(err.Error(), fmt.Sprintf("after %d tokens", at+2)) {
		t.Errorf("error is %v", err)
	}
	if !slices.Equal(got[0].IDs, want[0].IDs) || !slices.Equal(got[1].IDs, want[1].IDs[:at+1]) || b.advanced == 0 {
		t.Errorf("%v and %v, want %v and %v", got[0].IDs, got[1].IDs, want[0].IDs, want[1].IDs[:at+1])
	}
	drained(t, e)
}

// A step ahead makes no garbage either.
func TestAheadDoesNotAllocate(t *testing.T) {
	b := &behind{Device: newCPU(t)}
	e := engine(t, build(t, b, model.Config{Arch: "diff", Vocab: 300, Context: 4096, Layers: 2, Dim: 32, Heads: 4,
		KVHeads: 2, HeadDim: 8}), nil, Options{Slots: 3})
	var outs []*output
	for i := range 3 {
		s := &seq{tokens: []int32{int32(i)}}
		if err := e.begin(s, &Sampling{MaxTokens: 1000}); err != nil {
			t.Fatal(err)
		}
		outs = append(outs, e.newOutput(s))
		e.sched.enqueue(s)
	}
	sink := func(Event) bool { return true }
	round := func() {
		e.await(context.Background(), outs)
		for _, o := range outs {
			o.emit(sink)
		}
	}
	for range 40 {
		round()
	}
	if n := testing.AllocsPerRun(200, round); n != 0 || !e.pass.underWay() {
		t.Errorf("a step allocates %g times; one is under way: %v", n, e.pass.underWay())
	}
	e.settle([]*seq{outs[0].seq, outs[1].seq, outs[2].seq})
	drained(t, e)
}
