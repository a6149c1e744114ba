package dist

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"antiphase/internal/cu"
)

// joining is a GPU whose communicators remember how they were made.
type joining struct {
	cu.Driver
	mu    sync.Mutex
	made  []string // id, rank and size
	bytes int
	fail  error
}

func (d *joining) Stream() cu.Driver { return d }
func (d *joining) Alloc(n int) (uintptr, error) {
	d.bytes += n
	return 9, nil
}
func (d *joining) Join(id cu.CommID, rank, size int) (cu.Communicator, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made = append(d.made, fmt.Sprintf("%s %d of %d", strings.TrimRight(string(id[:]), "\x00"), rank, size))
	return &noting{}, d.fail
}

// A group of GPUs has an id of its own, which its first rank makes and all of its ranks get; each rank has its place
// among them, and a second split makes other groups.
func TestNCCLGroups(t *testing.T) {
	const world = 4
	var mu sync.Mutex
	ids := 0
	defer func(f func() (cu.CommID, error)) { newCommID = f }(newCommID)
	newCommID = func() (id cu.CommID, err error) {
		mu.Lock()
		defer mu.Unlock()
		ids++
		copy(id[:], fmt.Sprintf("id%d", ids))
		return id, nil
	}
	jobs, errs := joinAll(t, "tcp://"+freePort(t), world, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	devs := make([]*joining, world)
	colors := [][]int{{0, 1, 1, 0}, {7, 7, 7, 2}}
	var wg sync.WaitGroup
	for r, j := range jobs {
		devs[r] = &joining{}
		wg.Go(func() {
			c, err := NCCL(j, devs[r])
			for _, color := range colors {
				var g Comm
				if err == nil {
					g, err = c.Split(color[r])
				}
				if n := len(places(color, r)); err == nil &&
					(g.Size() != n || g.Rank() != slices.Index(places(color, r), r)) {
					t.Errorf("rank %d is rank %d of %d in %v", r, g.Rank(), g.Size(), color)
				}
			}
			if err = errors.Join(err, c.Close()); err != nil || c.Rank() != r || c.Size() != world ||
				devs[r].bytes < 3*4 {
				t.Errorf("rank %d: %v, %d of %d", r, err, c.Rank(), c.Size())
			}
		})
	}
	wg.Wait()
	closeAll(t, jobs)
	id := func(r, k int) string { text, _, _ := strings.Cut(devs[r].made[k], " "); return text }
	for r := range world {
		want := []string{fmt.Sprintf("%s %d of %d", id(0, 0), r, world)}
		for k, color := range colors {
			all := places(color, r)
			want = append(want, fmt.Sprintf("%s %d of %d", id(all[0], k+1), slices.Index(all, r), len(all)))
		}
		if !slices.Equal(devs[r].made, want) {
			t.Errorf("rank %d made %q, want %q", r, devs[r].made, want)
		}
	}
	if all := []string{id(0, 0), id(0, 1), id(1, 1), id(0, 2), id(3, 2)}; ids != 5 ||
		len(slices.Compact(slices.Sorted(slices.Values(all)))) != 5 {
		t.Errorf("%d ids for %q", ids, all)
	}
}

// places are the ranks with the color of rank r, in order.
func places(color []int, r int) (out []int) {
	for i, c := range color {
		if c == color[r] {
			out = append(out, i)
		}
	}
	return out
}

// faulting is a communicator with an error that NCCL has noticed.
type faulting struct {
	noting
	fault error
}

func (f *faulting) Fault() error { return f.fault }

// An error that NCCL notices later ends the job; without one it is polled until the end.
func TestNCCLFault(t *testing.T) {
	lost := errors.New("a link is down")
	for _, fault := range []error{nil, lost} {
		synctest.Test(t, func(t *testing.T) {
			told := make(chan error, 1)
			j := &Job{over: make(chan struct{}), opt: Options{OnLost: func(err error) { told <- err }}}
			j.joined.Store(true)
			g := &gpus{job: j, comm: &faulting{fault: fault}, stop: make(chan struct{})}
			g.watching.Go(func() { g.watch(j) })
			time.Sleep(5 * poll)
			synctest.Wait()
			if err := j.Err(); fault == nil && err != nil || fault != nil &&
				(!errors.Is(err, lost) || !errors.Is(err, ErrPeer)) {
				t.Errorf("fault %v: %v", fault, err)
			}
			if fault != nil && !errors.Is(<-told, lost) {
				t.Error("OnLost is told another error")
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A library that found another world than the launcher is refused, with both; one that does not load, fails or does not
// return is reported; a right one is used.
func TestOpenMPIChecks(t *testing.T) {
	l := Launch{Source: "openmpi", Rank: 1, World: 3}
	of := func(rank, size int) func(Launch) (mpiLib, error) {
		return func(got Launch) (mpiLib, error) {
			if got.Source != l.Source || got.Rank != l.Rank {
				t.Errorf("opened for %+v", got)
			}
			return &memoryMPI{h: newHall(size), rank: rank}, nil
		}
	}
	for name, x := range map[string]struct {
		load func(Launch) (mpiLib, error)
		want string
	}{
		"right": {of(1, 3), ""}, "alone": {of(0, 1), "dist: memory found rank 0 of 1, but the launcher (openmpi) " +
			"says rank 1 of 3: the library does not belong to it"},
		"another rank": {of(2, 3), "found rank 2 of 3"}, "another size": {of(1, 4), "found rank 1 of 4"},
		"absent": {func(Launch) (mpiLib, error) { return nil, errors.New("no such file") }, "no such file"},
		"failed": {func(Launch) (mpiLib, error) { return &worldless{}, nil }, "no world"},
	} {
		c, err := openWith(l, MPIOptions{Fast: true}, x.load)
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
		if err == nil && (c.Rank() != 1 || c.Size() != 3 || c.Ordered() || c.Close() != nil) {
			t.Errorf("%s: rank %d of %d", name, c.Rank(), c.Size())
		}
	}
	for given, want := range map[time.Duration]time.Duration{0: DefaultJoin, 3 * time.Second: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			begin := time.Now()
			_, err := openWith(l, MPIOptions{Timeout: given},
				func(Launch) (mpiLib, error) { <-release; return nil, errors.New("late") })
			if took := time.Since(begin); err == nil || took != want ||
				!strings.Contains(err.Error(), "MPI_Init did not return within "+want.String()) {
				t.Errorf("after %v: %v", took, err)
			}
			close(release)
		})
	}
}

type worldless struct{ memoryMPI }

func (*worldless) world() (int, int, error) { return 0, 0, errors.New("no world") }
