package dist

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"antiphase/tensor"
)

// noted is a Comm that says what is called, and what the job knows meanwhile.
type noted struct {
	Comm
	j     *Job
	calls []string
	began []bool
	err   error
}

func (n *noted) note(name string) error {
	n.calls, n.began = append(n.calls, name), append(n.began, n.j.began.Load() > 0)
	return n.err
}

func (n *noted) AllReduce(tensor.Tensor) error          { return n.note("AllReduce") }
func (n *noted) ReduceScatter(_, _ tensor.Tensor) error { return n.note("ReduceScatter") }
func (n *noted) AllGather(_, _ tensor.Tensor) error     { return n.note("AllGather") }
func (n *noted) Broadcast(_ tensor.Tensor, root int) error {
	if root != 3 {
		return errors.New("another root")
	}
	return n.note("Broadcast")
}
func (n *noted) Split(color int) (Comm, error) { return n, n.note("Split") }
func (n *noted) Barrier() error                { return n.note("Barrier") }
func (n *noted) Close() error                  { return n.note("Close") }

// Every collective is counted, is timed only while it runs, passes its arguments and its error, and is not begun once
// the job is lost; the job's own error is the clearer one.
func TestWatched(t *testing.T) {
	j := &Job{start: time.Now(), over: make(chan struct{})}
	n := &noted{j: j}
	c := j.Watch(n)
	var x tensor.Tensor
	all := map[string]func() error{
		"AllReduce": func() error { return c.AllReduce(x) }, "ReduceScatter": func() error { return c.ReduceScatter(x, x) },
		"AllGather": func() error { return c.AllGather(x, x) }, "Broadcast": func() error { return c.Broadcast(x, 3) },
		"Split": func() error { _, err := c.Split(1); return err }, "Barrier": c.Barrier, "Close": c.Close,
	}
	count := uint64(0)
	for name, call := range all {
		for _, n.err = range []error{nil, errors.New("engine")} {
			n.calls, n.began = nil, nil
			err := call()
			if count++; !errors.Is(err, n.err) || !reflect.DeepEqual(n.calls, []string{name}) || !n.began[0] {
				t.Errorf("%s: %v, called %q while timed %v", name, err, n.calls, n.began)
			}
			if j.began.Load() != 0 || j.count.Load() != count {
				t.Errorf("%s: %d collectives counted of %d, still timed: %v", name, j.count.Load(), count, j.began.Load() != 0)
			}
		}
	}
	group, err := c.Split(0)
	if n.err = nil; err == nil {
		t.Error("the error of a split is lost")
	}
	if err := group.AllReduce(x); err != nil || j.count.Load() != count+2 {
		t.Errorf("a group's call is not counted: %v", err)
	}
	o := c.(*watched)
	ran := false
	if err := o.Beside(func() error { ran = true; return n.note("beside") }); err != nil || !ran || o.Join() != nil {
		t.Errorf("without overlap: ran %v, %v", ran, err)
	}
}

// A local rank is below the number of local ranks, and these are at most all.
func TestLocalRankBounds(t *testing.T) {
	for vars, good := range map[string]bool{
		"PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2": true, "PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=2 MPI_LOCALNRANKS=2": false,
		"PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=3 MPI_LOCALNRANKS=4": true, "PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=5": false,
		"PMI_RANK=3 PMI_SIZE=4": true, "PMI_RANK=4 PMI_SIZE=4": false, "PMI_RANK=0 PMI_SIZE=1": true,
		"RANK=0 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=1": false, "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1": true,
	} {
		l, err := Detect(NoFlags(), env(strings.Fields(vars)...))
		if (err == nil) != good {
			t.Errorf("%s: %+v, %v", vars, l, err)
		}
	}
}
