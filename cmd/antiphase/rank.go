package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"antiphase/checkpoint"
	"antiphase/device"
	"antiphase/dist"
	"antiphase/internal/fault"
	"antiphase/optim"
	"antiphase/recipe"
	"antiphase/train"
)

// severalProcesses are the verbs that may run as several ranks, or for which copies are harmless.
var severalProcesses = []string{"train", "eval", "compare", "generate", "serve", "launch-info", "doctor", "recipes",
	"show", "help", "completion"}

// oneProcess rejects a verb that a launcher has started several times: the copies would overwrite each other's files.
func oneProcess(cmd *cobra.Command) error {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	verb := cmd.Name()
	if slices.Contains(severalProcesses, verb) || strings.HasPrefix(verb, "__") {
		return nil
	}
	flags := dist.NoFlags()
	flags.Launcher = os.Getenv("ANTIPHASE_LAUNCHER")
	l, err := dist.Detect(flags, os.Getenv)
	if err != nil {
		return usage(fmt.Errorf("%w (ANTIPHASE_LAUNCHER=none makes this one process)", err))
	}
	if l.World > 1 {
		return usage(fmt.Errorf("%s runs as one process, and %s has started %d: start it alone, or set "+
			"ANTIPHASE_LAUNCHER=none to run %d copies",
			verb, l.Source, l.World, l.World))
	}
	return nil
}

// share gives each rank of a machine its part of it, unless flags say otherwise: its own GPU, or its share of the
// cores.
func (a *app) share(l dist.Launch) {
	if l.World == 1 {
		return
	}
	if l.Rank > 0 {
		a.quiet, a.mute = true, true
	}
	if a.threads == 0 && l.LocalSize > 1 {
		a.threads = max(1, runtime.NumCPU()/l.LocalSize)
	}
	if l.LocalRank > 0 {
		a.ordinal = l.LocalRank
	}
}

// ranks is a job with its engine, for train.
type ranks struct {
	dist.Comm
	job *dist.Job
}

func (r ranks) Group(color int) (optim.Ranks, error) { return r.Split(color) }

func (r ranks) Exchange(tag string, value []byte) ([][]byte, error) {
	return r.job.Exchange(tag, value)
}

func (r ranks) Agree(tag string, facts map[string]string) error { return r.job.Agree(tag, facts) }

// trainRank trains as one of several ranks.
func (f *trainFlags) trainRank(ctx context.Context, a *app, l dist.Launch, d device.Device, r recipe.Recipe,
	way train.Layout) error {
	opt, err := f.job.options()
	if err != nil {
		return err
	}
	var engine dist.Comm
	opt.OnLost = func(err error) { leaveJob(a, f.dir, l, engine, err) }
	job, engine, err := meetAll(ctx, l, d, opt)
	if errors.Is(err, dist.ErrPeer) {
		time.Sleep(handover) // leave is about to end the process
	}
	if err != nil {
		return err
	}
	comm := job.Watch(engine)
	a.note("%d ranks through %v, met by %s", l.World, engine, job.Where)
	err = f.sameJob(job, r, d)
	if err == nil {
		way, err = f.agreedLayout(job, d, r, way)
	}
	if err == nil {
		err = f.trainHere(ctx, a, d, r, train.Options{Ranks: ranks{comm, job}, Shard: way.Shard, Tensor: way.Tensor})
	}
	return leaveTogether(job, comm, l, err)
}

// sameJob refuses ranks that are about to do different things. Whether --parallel is given is compared too, because
// ranks without it choose their layout together.
func (f *trainFlags) sameJob(job *dist.Job, r recipe.Recipe, d device.Device) error {
	return job.Agree("program", map[string]string{"version": version(),
		"recipe": fmt.Sprintf("%.6x", sha256.Sum256(r.JSON())), "device": device.IdentityOf(d).String(),
		"--parallel": cmp.Or(f.parallel, "none")})
}

// meetAll connects the ranks and opens the engine for d's tensors: NCCL for a GPU, MPI for host memory.
func meetAll(ctx context.Context, l dist.Launch, d device.Device, o dist.Options) (*dist.Job, dist.Comm, error) {
	gpu, isGPU := d.(dist.Streamer)
	var carrier dist.Comm
	if _, err := dist.Place(l, o); !isGPU || err != nil && l.MPI() {
		var err error
		if carrier, err = dist.OpenMPI(l, dist.MPIOptions{Timeout: o.JoinTimeout}); err != nil {
			return nil, nil, err
		}
		o.Via = carrier
	}
	job, err := dist.Join(ctx, l, o)
	if err != nil || !isGPU {
		return job, carrier, err
	}
	comm, err := dist.NCCL(job, gpu)
	if err != nil {
		job.Fail(err, codeForAll(err))
	}
	return job, comm, err
}

// leaveTogether ends a rank. An error common to all ranks is printed by one; an error of this rank alone is sent to the
// others.
func leaveTogether(job *dist.Job, comm dist.Comm, l dist.Launch, err error) error {
	if errors.Is(err, dist.ErrPeer) {
		time.Sleep(handover) // leave is about to end the process
		return err
	}
	interrupted := errors.Is(err, train.ErrInterrupted) && !errors.Is(err, train.ErrPreparing)
	together := err == nil || interrupted || errors.Is(err, train.ErrNotFinite) || errors.Is(err, dist.ErrDiffer)
	if !together {
		job.Fail(err, codeForAll(err))
		abort(comm, err)
		return fmt.Errorf("rank %d of %d: %w", l.Rank, l.World, err)
	}
	closed := errors.Join(comm.Close(), job.Close())
	if err != nil && l.Rank > 0 {
		return saidElsewhere{err}
	}
	return errors.Join(err, closed)
}

// codeForAll is the exit code of every rank if this one gives up with err: where a restart would fail again, or is all
// that is needed. With 0, each rank decides by itself.
func codeForAll(err error) int {
	if code := exitCode(err); code != exitFailed {
		return code
	}
	return 0
}

// codeGiven is the exit code that a rank that gave up suggests, or none.
func codeGiven(err error, none int) int {
	if gave := new(dist.GaveUp); errors.As(err, &gave) && gave.Code != 0 {
		return gave.Code
	}
	return none
}

// handover is how long a rank waits for leave to end the process.
const handover = 5 * time.Second

// leaveJob ends this process because another rank was lost: what it waits for may never come. With a checkpoint the
// same command continues.
func leaveJob(a *app, dir string, l dist.Launch, engine dist.Comm, err error) {
	code, hint := codeGiven(err, 0), ""
	if s, oerr := checkpoint.Open(dir, checkpoint.Options{ReadOnly: true}); code == 0 && oerr == nil {
		if c, lerr := s.Latest(func(string) {}); lerr == nil {
			code, hint = exitTryAgain, fmt.Sprintf("; step %d is saved, run the same command again to continue", c.Step)
		}
	}
	fmt.Fprintf(a.err, "%srank %d of %d: %v%s\n", a.paint(red, "error: "), l.Rank, l.World, err, hint)
	if engine != nil {
		abort(engine, err)
	}
	os.Exit(cmp.Or(code, exitFailed))
}

// abort interrupts the engine's waits as far as possible in time; the process ends anyway.
func abort(c dist.Comm, why error) {
	aborted := make(chan struct{})
	go func() {
		defer fault.Guard()()
		c.Abort(why)
		close(aborted)
	}()
	select {
	case <-aborted:
	case <-time.After(handover):
	}
}
