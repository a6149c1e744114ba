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
		"AllReduce":     func() error { return c.AllReduce(x) },
		"ReduceScatter": func() error { return c.ReduceScatter(x, x) },

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
				t.Errorf("%s: %d collectives counted of %d, still timed: %v", name, j.count.Load(), count,
					j.began.Load() != 0)
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
		"PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2": true,
		"PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=2 MPI_LOCALNRANKS=2": false,
		"PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=3 MPI_LOCALNRANKS=4": true,
		"PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=5": false,
		"PMI_RANK=3 PMI_SIZE=4": true, "PMI_RANK=4 PMI_SIZE=4": false, "PMI_RANK=0 PMI_SIZE=1": true,
		"RANK=0 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=1": false,
		"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1": true,
	} {
		l, err := Detect(NoFlags(), env(strings.Fields(vars)...))
		if (err == nil) != good {
			t.Errorf("%s: %+v, %v", vars, l, err)
		}
	}
}

// Every variable of every launcher sets its own field and no other, in order of precedence, and is named in what was
// seen; a value that is not a number from 0 up is refused by its name.
func TestEveryVariable(t *testing.T) {
	for _, s := range sources {
		base := []string{s.rank[0] + "=1", s.world[0] + "=4", "SLURM_STEP_ID=0", "SLURM_JOB_ID=5"}
		if s.name != "slurm" {
			base = base[:2]
		}
		plain, err := Detect(NoFlags(), env(base...))
		if err != nil || plain.Source != s.name || plain.Rank != 1 || plain.World != 4 {
			t.Fatalf("%s: %+v, %v", s.name, plain, err)
		}
		eachField(t, &s, base)
		for i, name := range s.job {
			vars := append(append([]string(nil), base...), name+"=seven")
			for _, later := range s.job[i+1:] {
				vars = append(vars, later+"=eight")
			}
			if got, err := Detect(NoFlags(), env(vars...)); err != nil || got.Job != "seven" {
				t.Errorf("%s: %s gives the job %q, %v", s.name, name, got.Job, err)
			}
		}
		if got, err := Detect(NoFlags(),
			env(append(base[:len(base):len(base)], "ANTIPHASE_MASTER=h:9", "MASTER_ADDR=other")...)); err != nil ||
			got.Master != "h:9" || got.Seen[0].Variables["ANTIPHASE_MASTER"] != "h:9" {
			t.Errorf("%s: the master is %q, %v", s.name, got.Master, err)
		}
	}
}

// Ports of a master from 1 to 65534 are taken; without one it is torchrun's.
func TestMasterPort(t *testing.T) {
	for port, want := range map[string]string{"": "h:29500", "1": "h:1", "65534": "h:65534", "0": "",
		"65535": "", "x": ""} {
		got, err := Detect(NoFlags(), env("RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=h", "MASTER_PORT="+port))
		if (err == nil) != (want != "") || err == nil && got.Master != want {
			t.Errorf("MASTER_PORT=%s: %q, %v", port, got.Master, err)
		}
	}
}

// eachField holds every variable of a launcher that is a number to its field, next to the variables in base.
func eachField(t *testing.T, s *source, base []string) {
	t.Helper()
	for what, x := range map[string]struct {
		names []string
		field func(l *Launch) any
	}{
		"local rank": {s.local, func(l *Launch) any { return l.LocalRank }},
		"local size": {s.localSize, func(l *Launch) any { return l.LocalSize }},
		"node":       {s.node, func(l *Launch) any { return l.Node }},
		"restart":    {s.restart, func(l *Launch) any { return l.Restart }},
	} {
		for i, name := range x.names {
			vars := append(append([]string(nil), base...), name+"=2")
			for _, later := range x.names[i+1:] {
				vars = append(vars, later+"=3") // of several the first counts
			}
			if what == "local rank" && s.localSize != nil {
				vars = append(vars, s.localSize[0]+"=4")
			}
			got, err := Detect(NoFlags(), env(vars...))
			if err != nil || x.field(&got) != any(2) || got.Rank != 1 || got.World != 4 {
				t.Errorf("%s: %s gives the %s %v, %v", s.name, name, what, x.field(&got), err)
			}
			if len(got.Seen) == 0 || got.Seen[0].Variables[name] != "2" {
				t.Errorf("%s: %s is not among what was seen", s.name, name)
			}
			for _, bad := range []string{"x", "-1", "1.5"} {
				if _, err := Detect(NoFlags(), env(append(base[:len(base):len(base)],
					name+"="+bad)...)); err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("%s: %s=%s: %v", s.name, name, bad, err)
				}
			}
		}
	}
}

// Tasks per node in Slurm's short form, against the list written out, and a job's port from its numbers.
func TestTasksOnNode(t *testing.T) {
	for list, all := range map[string][]int{"4": {4}, "4(x2),3": {4, 4, 3}, "1,2,3": {1, 2, 3},
		"2(x3),5(x2),1": {2, 2, 2, 5, 5, 1}} {
		for node := range len(all) + 2 {
			want := 0
			if node < len(all) {
				want = all[node]
			}
			if got := tasksOnNode(list, node); got != want {
				t.Errorf("node %d of %s: %d, want %d", node, list, got, want)
			}
		}
	}
	for _, list := range []string{"", "x", "2(xy)", "(x2)"} {
		if got := tasksOnNode(list, 0); got != 0 {
			t.Errorf("%q: %d tasks", list, got)
		}
	}
	for ids, port := range map[string]string{"5 0": "61445", "4096 0": "61440", "4095 1": "61440", "10 3": "61453"} {
		job, step, _ := strings.Cut(ids, " ")
		l, err := Detect(NoFlags(), env("SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_ID="+step,
			"SLURM_JOB_ID="+job, "SLURM_STEP_NODELIST=a[1-2]"))
		if err != nil || l.Master != "a1:"+port || l.Job != job+"."+step ||
			l.Seen[0].Variables["SLURM_STEP_NODELIST"] != "a[1-2]" {
			t.Errorf("job %s: %q, %q, %v", ids, l.Master, l.Job, err)
		}
	}
	for _, s := range sources {
		if s.there != nil {
			continue // a job of Slurm has a size outside of its steps too
		}
		for size, good := range map[string]bool{"1": true, "2": false} {
			if _, err := Detect(NoFlags(), env(s.world[0]+"="+size)); (err == nil) != good {
				t.Errorf("%s=%s without a rank: %v", s.world[0], size, err)
			}
		}
	}
}

// summing is a Comm of n ranks whose sum of the numbers 1 to n is off by some amount.
type summing struct {
	Comm
	rank, n int
	off     float64
	err     error
	given   float64
}

func (s *summing) Rank() int { return s.rank }
func (s *summing) Size() int { return s.n }
func (s *summing) AllReduce(x tensor.Tensor) error {
	v := tensor.Host[float64](x)
	s.given = v[0]
	v[0] = float64(s.n*(s.n+1))/2 + s.off
	return s.err
}

// A probe gives each rank's own number, accepts the right sum, and reports a wrong one and an error.
func TestProbe(t *testing.T) {
	lost := errors.New("lost")
	for _, x := range []struct {
		rank, n int
		off     float64
		err     error
		good    bool
	}{{0, 1, 0, nil, true}, {2, 4, 0, nil, true}, {3, 4, 1, nil, false}, {0, 2, -0.5, nil, false},
		{0, 2, 0, lost, false}} {
		c := &summing{rank: x.rank, n: x.n, off: x.off, err: x.err}
		err := Probe(c)
		if (err == nil) != x.good || x.err != nil && !errors.Is(err, lost) || c.given != float64(x.rank+1) {
			t.Errorf("%+v: %v, gave %g", x, err, c.given)
		}
	}
}
