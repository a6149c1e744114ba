package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/dist"
	"antiphase/dist/disttest"
	"antiphase/infer"
	"antiphase/layer"
	"antiphase/recipe"
	"antiphase/train"
)

// asRanks runs f as n ranks of a job in this process, all on one machine.
func asRanks(t *testing.T, n int, f func(job *dist.Job, l dist.Launch)) {
	t.Helper()
	var wg, met sync.WaitGroup
	met.Add(n)
	at := "file://" + filepath.ToSlash(t.TempDir())
	for r := range n {
		wg.Go(func() {
			l := dist.Launch{Source: "flags", Rank: r, World: n, LocalRank: r, LocalSize: n}
			job, err := dist.Join(context.Background(), l,
				dist.Options{Rendezvous: at, Interface: "127.0.0.1", PeerTimeout: 20 * time.Second})
			met.Done()
			met.Wait() // nobody fails while another is still joining
			if err != nil {
				t.Error(err)
				return
			}
			f(job, l)
		})
	}
	wg.Wait()
}

// until waits until the job is lost, and gives the error of the exchange that waited.
func until(job *dist.Job) error { _, err := job.Exchange("never", nil); return err }

// ending is how ranks 0 and 1 of two end: what each had, what each says, and with which code. The second has no error
// of its own where had is empty: it learns of the other's in an exchange, or not at all.
type ending struct {
	had  [2]error
	says [2]string
	code [2]int
	mute bool // the second leaves the words to the first
}

func (e *ending) check(t *testing.T, name string, job *dist.Job, err error) {
	t.Helper()
	l := job.Launch
	if err == nil {
		if e.says[l.Rank] != "" {
			t.Errorf("%s: rank %d ends well, want %q", name, l.Rank, e.says[l.Rank])
		}
		return
	}
	text := regexp.MustCompile(`rank 0 \(.*, process \d+\): `).ReplaceAllString(err.Error(), "")
	if text != e.says[l.Rank] || exitCode(err) != e.code[l.Rank] ||
		errors.As(err, new(saidElsewhere)) != (e.mute && l.Rank == 1) {
		t.Errorf("%s: rank %d says %q with code %d, want %q with %d", name, l.Rank, err, exitCode(err), e.says[l.Rank],
			e.code[l.Rank])
	}
}

// How ranks that divide work end together: one line for what all have, each its own for what differs, and the code by
// which a scheduler starts again what only one could not do.
func TestRanksPart(t *testing.T) {
	t.Parallel()
	boom, wrong, differ := errors.New("boom"), usage(errors.New("no such task")),
		fmt.Errorf("%w: rank 1 has x", dist.ErrDiffer)
	const kept = "; what was finished is kept"
	for name, e := range map[string]*ending{
		"well": {},
		"they differ": {had: [2]error{differ, differ},
			says: [2]string{"ranks differ: rank 1 has x", "ranks differ: rank 1 has x"},
			code: [2]int{exitUsage, exitUsage}, mute: true},
		"the first fails": {had: [2]error{boom, nil}, says: [2]string{"rank 0 of 2: boom",
			"rank 1 of 2: a rank was lost: boom" + kept + ": " + train.ErrInterrupted.Error()},
			code: [2]int{exitFailed, exitTryAgain}},
		"the first is wrong": {had: [2]error{wrong, nil}, says: [2]string{"rank 0 of 2: no such task",
			"rank 1 of 2: a rank was lost: no such task" + kept}, code: [2]int{exitUsage, exitUsage}},
		"both are wrong": {had: [2]error{wrong, wrong}, says: [2]string{"rank 0 of 2: no such task", "no such task"},
			code: [2]int{exitUsage, exitUsage}, mute: true},
		"each has its own": {had: [2]error{boom, wrong},
			says: [2]string{"rank 0 of 2: boom", "rank 1 of 2: no such task"}, code: [2]int{exitFailed, exitUsage}},
	} {
		asRanks(t, 2, func(job *dist.Job, l dist.Launch) {
			err := e.had[l.Rank]
			if l.Rank == 1 && err == nil && e.had[0] != nil {
				err = until(job)
			}
			e.check(t, name, job, partJob(job, l, err))
			_ = job.Close()
		})
	}
}

// ended notes how an engine ended.
type ended struct {
	dist.Comm
	how string
}

func (c *ended) Close() error { c.how += "closed"; return c.Comm.Close() }
func (c *ended) Abort(why error) {
	c.how += "aborted: " + why.Error()
	c.Comm.Abort(why)
}

// How ranks that train together end: what all have is said once and the engine is closed; what one has ends the engine.
func TestRanksLeaveTogether(t *testing.T) {
	boom, preparing := errors.New("boom"), errors.Join(train.ErrInterrupted, train.ErrPreparing)
	stopped := fmt.Errorf("step 3: %w", train.ErrInterrupted)
	for name, x := range map[string]struct {
		ending
		how string
	}{
		"well": {ending{}, "closed"},
		"stopped": {ending{had: [2]error{stopped, stopped}, says: [2]string{stopped.Error(), stopped.Error()},
			code: [2]int{exitTryAgain, exitTryAgain}, mute: true}, "closed"},
		"no numbers": {ending{had: [2]error{train.ErrNotFinite, train.ErrNotFinite},
			says: [2]string{train.ErrNotFinite.Error(), train.ErrNotFinite.Error()},
			code: [2]int{exitNotFinite, exitNotFinite}, mute: true}, "closed"},
		"they differ": {ending{had: [2]error{dist.ErrDiffer, dist.ErrDiffer},
			says: [2]string{"ranks differ", "ranks differ"}, code: [2]int{exitUsage, exitUsage}, mute: true}, "closed"},
		"one fails": {ending{had: [2]error{boom, boom}, says: [2]string{"rank 0 of 2: boom", "rank 1 of 2: boom"},
			code: [2]int{exitFailed, exitFailed}}, "aborted: boom"},
		"while reading": {ending{had: [2]error{preparing, preparing},
			says: [2]string{"rank 0 of 2: " + preparing.Error(), "rank 1 of 2: " + preparing.Error()},
			code: [2]int{exitTryAgain, exitTryAgain}}, "aborted: " + preparing.Error()},
	} {
		w := disttest.NewWorld(2, disttest.Options{})
		asRanks(t, 2, func(job *dist.Job, l dist.Launch) {
			c := &ended{Comm: w.Comm(l.Rank)}
			x.check(t, name, job, leaveTogether(job, c, l, x.had[l.Rank]))
			if c.how != x.how {
				t.Errorf("%s: the engine of rank %d is %q, want %q", name, l.Rank, c.how, x.how)
			}
			_ = job.Close()
		})
	}
}

// roomy is a device with this much memory left.
type roomy struct {
	device.Device
	left int64
}

func (d roomy) Spare() int64 { return d.left }

// Without --parallel all ranks take the layout that fits the one with the least memory; ranks of a machine share it.
func TestRanksAgreeOnALayout(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 1})
	defer d.Close()
	r, err := recipe.Nano("diff")
	if err != nil {
		t.Fatal(err)
	}
	rows := train.Layout{Data: 2, Tensor: 1}
	need := train.MemoryOf(r, d.Types(), rows).Sum()
	for _, x := range []struct {
		left     [2]int64
		parallel string
		fits     bool
	}{{[2]int64{2 * need, 2 * need}, "", true}, {[2]int64{2*need - 2, 1 << 40}, "", false},
		{[2]int64{1 << 40, 2*need - 2}, "", false}, {[2]int64{1, 2}, "dp=2", true}} {
		var got [2]train.Layout
		asRanks(t, 2, func(job *dist.Job, l dist.Launch) {
			f := &trainFlags{parallel: x.parallel}
			way, err := f.agreedLayout(job, roomy{d, x.left[l.Rank]}, r, rows)
			if got[l.Rank] = way; err != nil {
				t.Error(err)
			}
			if err := job.Close(); err != nil {
				t.Error(err)
			}
		})
		if got[0] != got[1] || (got[0] == rows) != x.fits {
			t.Errorf("%+v: %v and %v, needs %d", x, got[0], got[1], need)
		}
	}
}

// Messages reach the other ranks whole and in order; one that names no model of theirs is refused, and -1 ends them.
func TestRanksFollow(t *testing.T) {
	for name, x := range map[string]struct {
		words []int32
		want  string
	}{
		"the end": {[]int32{-1}, ""}, "no model": {[]int32{0, 1}, "rank 0 named a model that this rank does not have"},
		"below": {[]int32{-2}, "rank 0 named a model"}, "nothing": {nil, "rank 0 named a model"},
		"-1 of two": {[]int32{-1, 0}, "rank 0 named a model"},
	} {
		asRanks(t, 2, func(job *dist.Job, l dist.Launch) {
			p := &parts{job: job}
			for i, want := range [][]int32{{7, -8, 1 << 30}, {}} {
				if l.Rank == 1 {
					want = nil
				}
				got, err := p.next(slices.Clone(want))
				if sent := [][]int32{{7, -8, 1 << 30}, {}}[i]; err != nil || !slices.Equal(got, sent) {
					t.Errorf("rank %d got %v, want %v: %v", l.Rank, got, sent, err)
				}
			}
			var err error
			if l.Rank == 0 {
				err = p.tell(x.words)
			} else if err = followLead(context.Background(), &app{}, p, nil); x.want != "" {
				if err == nil || !strings.HasPrefix(err.Error(), x.want) {
					t.Errorf("%s: %v, want %q", name, err, x.want)
				}
				err = nil
			}
			if err = errors.Join(err, job.Close()); err != nil {
				t.Errorf("%s: rank %d: %v", name, l.Rank, err)
			}
		})
	}
}

// continuations are six tokens that each of two models writes after the same prompt.
func continuations(t *testing.T, a *app, d device.Device, names []string) (out [2][]int32) {
	t.Helper()
	for i, name := range names {
		l, err := a.load(d, name)
		if err != nil {
			t.Error(err)
			return out
		}
		e, err := infer.New(l.Model, nil, infer.Options{Slots: 1})
		if err != nil {
			t.Error(err)
			return out
		}
		err = e.Generate(context.Background(),
			[]infer.Request{{IDs: []int32{3, 5, 8}, Sampling: infer.Sampling{MaxTokens: 6, IgnoreEOS: true}}},
			func(_ int, ev infer.Event) bool { out[i] = append(out[i], ev.ID); return true })
		if err != nil {
			t.Error(err)
		}
		e.Close()
		l.Model.Free()
	}
	return out
}

// Two models held by two ranks write what whole models write, each its own.
func TestRanksHoldModels(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for _, seed := range []string{"1", "2"} {
		name := filepath.Join(dir, seed)
		call(t, dir, 0, "train", "--size", "nano", "--data", "synthetic:docs=60", "--dir", name, "-q", "--set",
			"train.steps=2", "--set", "train.seed="+seed)
		names = append(names, name)
	}
	var devices [2]device.Device
	for i := range devices {
		devices[i] = cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
		defer devices[i].Close()
	}
	var said bytes.Buffer
	want := continuations(t, &app{err: &said}, devices[0], names)
	w := disttest.NewWorld(2, disttest.Options{})
	asRanks(t, 2, func(job *dist.Job, l dist.Launch) {
		p := &parts{job: job, comm: w.Comm(l.Rank), dev: devices[l.Rank]}
		p.split = layer.NewSplit(p.comm)
		var err error
		if l.Rank == 0 {
			if got := continuations(t, &app{err: &said, parts: p}, devices[0], names); !slices.Equal(got[0], want[0]) ||
				!slices.Equal(got[1], want[1]) || len(got[0]) == 0 {
				t.Errorf("two ranks write %v, one process %v", got, want)
			}
			err = p.tell([]int32{-1})
		} else {
			err = followLead(context.Background(), &app{err: &bytes.Buffer{}}, p, names)
		}
		if err = errors.Join(err, job.Close()); err != nil {
			t.Errorf("rank %d: %v", l.Rank, err)
		}
	})
	if slices.Equal(want[0], want[1]) {
		t.Errorf("both models write %v", want[0])
	}
}
