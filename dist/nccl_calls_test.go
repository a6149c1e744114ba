package dist

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/internal/cu"
	"antiphase/tensor"
)

// noting is a communicator that says what it was asked.
type noting struct {
	cu.Communicator
	calls []string
	err   error
}

func (n *noting) note(format string, args ...any) error {
	n.calls = append(n.calls, fmt.Sprintf(format, args...))
	return n.err
}
func (n *noting) AllReduce(a uintptr, k int, double bool) error {
	return n.note("sum %d %d %v", a, k, double)
}
func (n *noting) ReduceScatter(d, s uintptr, k int, double bool) error {
	return n.note("scatter %d %d %d %v", d, s, k, double)
}
func (n *noting) AllGather(d, s uintptr, bytes int) error {
	return n.note("gather %d %d %d", d, s, bytes)
}
func (n *noting) Broadcast(a uintptr, bytes, root int) error {
	return n.note("broadcast %d %d %d", a, bytes, root)
}
func (n *noting) Beside(f func() error) error { return errors.Join(n.note("beside"), f()) }
func (n *noting) Join() error                 { return n.note("join") }
func (n *noting) Abort()                      { _ = n.note("abort") }
func (n *noting) Close() error                { return n.note("close") }
func (n *noting) Version() int                { return 22803 }

// stream is a device whose stream counts how often it was asked for, and a driver that notes when it is waited for.
type stream struct {
	cu.Driver
	asked, synced int
}

func (s *stream) Stream() cu.Driver { s.asked++; return s }
func (s *stream) Sync() error       { s.synced++; return nil }

// notedGPUs is rank 1 of 4 over NCCL that notes its calls, and a group of 2 of them.
func notedGPUs() (g, part *gpus, n *noting, dev *stream) {
	n, dev = &noting{}, &stream{}
	g = &gpus{job: &Job{Launch: Launch{World: 4}}, dev: dev, comm: n, rank: 1, size: 4, scratch: 77,
		stop: make(chan struct{})}
	part = &gpus{job: g.job, dev: dev, comm: &noting{}, size: 2, stop: make(chan struct{})}
	g.groups = []*gpus{part}
	return g, part, n, dev
}

// gpuAt is a tensor of n elements, off bytes behind an address.
func gpuAt(ty tensor.DType, addr uintptr, off, n int) tensor.Tensor {
	return tensor.Tensor{Buf: &tensor.Buffer{Addr: addr}, Off: off, Type: ty, Rows: 1, Cols: n, Ld: n}
}

// The collectives over NCCL pass addresses, counts and types as NCCL takes them: sums in elements, copies in bytes;
// each after all earlier work was queued.
func TestNCCLCalls(t *testing.T) {
	g, part, n, dev := notedGPUs()
	of, ran := gpuAt, false
	for want, call := range map[string]func() error{
		"sum 108 6 false": func() error { return g.AllReduce(of(tensor.F32, 100, 8, 6)) },
		"sum 100 6 true":  func() error { return g.AllReduce(of(tensor.F64, 100, 0, 6)) },
		"scatter 50 100 3 false": func() error {
			return g.ReduceScatter(of(tensor.F32, 50, 0, 3), of(tensor.F32, 100, 0, 12))
		}, "scatter 50 100 3 true": func() error {
			return g.ReduceScatter(of(tensor.F64, 50, 0, 3), of(tensor.F64, 100, 0, 12))
		},
		"gather 100 50 6": func() error { return g.AllGather(of(tensor.BF16, 100, 0, 12), of(tensor.BF16, 50, 0, 3)) },
		"broadcast 104 12 3": func() error {
			return g.Broadcast(of(tensor.F32, 100, 4, 3), 3)
		},
		"sum 77 1 false": g.Barrier,
		"beside":         func() error { return g.Beside(func() error { ran = true; return nil }) }, "join": g.Join,
	} {
		for _, n.err = range []error{nil, errors.New("engine")} {
			n.calls, dev.asked = nil, 0
			if err := call(); !errors.Is(err, n.err) || !slices.Equal(n.calls, []string{want}) || dev.asked == 0 {
				t.Errorf("%s: %q, %v, earlier work queued %d times", want, n.calls, err, dev.asked)
			}
		}
	}
	n.err = nil
	if dev.synced != 1 || !ran || g.Rank() != 1 || g.Size() != 4 || g.Ordered() || g.String() != "NCCL 2.28.3" {
		t.Errorf("waited %d times, %s", dev.synced, g.String())
	}
	if _, err := part.Split(0); err == nil || !strings.Contains(err.Error(), "is not split again") {
		t.Error(err)
	}
}

// After the end no collective is called, and groups end with the whole.
func TestNCCLEnds(t *testing.T) {
	g, part, n, _ := notedGPUs()
	of, why := gpuAt, errors.New("lost")
	if g.Abort(why); !slices.Equal(n.calls, []string{"abort"}) ||
		!slices.Equal(part.comm.(*noting).calls, []string{"abort"}) {
		t.Errorf("%q, %q", n.calls, part.comm.(*noting).calls)
	}
	n.calls = nil
	for name, call := range map[string]func() error{"sum": func() error { return g.AllReduce(of(tensor.F32, 1, 0, 1)) },
		"barrier": g.Barrier, "join": g.Join,
		"gather":    func() error { return g.AllGather(of(tensor.F32, 1, 0, 4), of(tensor.F32, 1, 0, 1)) },
		"broadcast": func() error { return part.Broadcast(of(tensor.F32, 1, 0, 1), 0) }} {
		if err := call(); err != why || len(n.calls) != 0 {
			t.Errorf("%s after the end: %v, %q", name, err, n.calls)
		}
	}
	part.comm.(*noting).calls = nil
	if err := g.Close(); err != nil || !slices.Equal(n.calls, []string{"close"}) ||
		!slices.Equal(part.comm.(*noting).calls, []string{"close"}) {
		t.Errorf("%v, %q, %q", err, n.calls, part.comm.(*noting).calls)
	}
}

// A job that is lost answers for its engine.
func TestNCCLWatched(t *testing.T) {
	g, _, n, _ := notedGPUs()
	j := &Job{start: time.Now(), over: make(chan struct{})}
	w := j.Watch(g)
	o := w.(Overlapper)
	if err := errors.Join(o.Beside(func() error { return nil }), o.Join()); err != nil ||
		!slices.Equal(n.calls, []string{"beside", "join"}) {
		t.Errorf("%v, %q", err, n.calls)
	}
	why := errors.New("lost")
	j.err, n.calls = why, nil
	if err := w.Barrier(); err != why || len(n.calls) != 0 {
		t.Errorf("%v, %q", err, n.calls)
	}
}
