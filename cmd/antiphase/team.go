package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"antiphase/dist"
	"antiphase/train"
)

// team is the ranks that divide a verb's work: questions, or runs. They exchange only short messages, through the store
// of their job; results are combined in files.
type team struct {
	job  *dist.Job
	rank int
	size int
	met  int // number of barriers so far
}

// follows reports whether another rank prints the results. A nil team is a single process.
func (t *team) follows() bool { return t != nil && t.rank > 0 }

// wait is a barrier over all ranks.
func (t *team) wait() error {
	t.met++
	_, err := t.job.Exchange(fmt.Sprint("met-", t.met), nil)
	return err
}

// patience is how long a rank may take to store its results after another one was lost.
const patience = time.Minute

// together runs f as one of the ranks of a launcher, with a nil team if there is none. When a rank is lost only what it
// had not stored is lost: the others store their results and exit with the code that makes schedulers restart the
// command.
func (a *app) together(ctx context.Context, f func(ctx context.Context, t *team) error) error {
	flags := environmentJob()
	l, err := flags.launch()
	if err != nil {
		return err
	}
	if l.World == 1 {
		return f(ctx, nil)
	}
	a.share(l)
	opt, err := flags.options()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	opt.OnLost = func(why error) {
		cancel(why)
		time.Sleep(patience)
		fmt.Fprintf(a.err, "%srank %d of %d: %v\n", a.paint(red, "error: "), l.Rank, l.World, why)
		os.Exit(codeGiven(why, exitTryAgain))
	}
	job, err := meetInWords(ctx, l, opt)
	if err != nil {
		return err
	}
	a.note("%d ranks, met by %s", l.World, job.Where)
	err = job.Agree("program", map[string]string{"version": version(), "command line": commandHash()})
	if err == nil {
		err = f(ctx, &team{job: job, rank: l.Rank, size: l.World})
	}
	return partJob(job, l, err)
}

// partJob ends a rank's membership. What ends one rank ends all: each prints its own error, or the other rank's if it
// has none.
func partJob(job *dist.Job, l dist.Launch, err error) error {
	cut := errors.Is(err, context.Canceled) || errors.Is(err, train.ErrInterrupted) || errors.Is(err, dist.ErrPeer)
	switch lost := job.Err(); {
	case errors.Is(err, dist.ErrDiffer):
		err = errors.Join(err, job.Close())
		if l.Rank > 0 {
			return saidElsewhere{err}
		}
		return err
	case lost != nil && (err == nil || cut) && codeGiven(lost, exitTryAgain) != exitTryAgain:
		return fmt.Errorf("rank %d of %d: %w; what was finished is kept", l.Rank, l.World, lost)
	case lost != nil && (err == nil || cut):
		return fmt.Errorf("rank %d of %d: %w; what was finished is kept: %w", l.Rank, l.World, lost,
			train.ErrInterrupted)
	case err != nil && l.Rank > 0 && firstFails(job, err):
		return saidElsewhere{err}
	case err != nil:
		job.Fail(err, codeForAll(err))
		return fmt.Errorf("rank %d of %d: %w", l.Rank, l.World, err)
	}
	return job.Close()
}

// firstFails waits a moment for rank 0 to give up with the same error, as it does if the command is wrong on all ranks:
// then one line is enough.
func firstFails(job *dist.Job, err error) bool {
	for range 40 {
		if lost := job.Err(); lost != nil {
			return strings.HasSuffix(lost.Error(), err.Error())
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

// meetInWords connects ranks that exchange no tensors; if the launcher gives no address, MPI carries it.
func meetInWords(ctx context.Context, l dist.Launch, o dist.Options) (*dist.Job, error) {
	if _, err := dist.Place(l, o); err != nil && l.MPI() {
		carrier, err := dist.OpenMPI(l, dist.MPIOptions{Timeout: o.JoinTimeout})
		if err != nil {
			return nil, err
		}
		o.Via = carrier
	}
	return dist.Join(ctx, l, o)
}
