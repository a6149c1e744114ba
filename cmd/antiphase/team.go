package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"antiphase/dist"
	"antiphase/train"
)

// team is the ranks that divide a verb's work among them: questions, or runs. Nothing but words passes between them, through the
// store of their job; what they compute meets in files.
type team struct {
	job  *dist.Job
	rank int
	size int
	met  int // times that they have waited for each other
}

// follows says that another rank prints the results. A nil team is a single process.
func (t *team) follows() bool { return t != nil && t.rank > 0 }

// wait returns when every rank has come as far.
func (t *team) wait() error {
	t.met++
	_, err := t.job.Exchange(fmt.Sprint("met-", t.met), nil)
	return err
}

// patience is how long a rank may take to store what it has after another one was lost.
const patience = time.Minute

// together runs f as one of the ranks that a launcher has started, with a nil team where there is none. What is lost with a rank is
// what it had not stored yet: the others store theirs and leave with the code that makes schedulers start the same command again.
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
		os.Exit(exitTryAgain)
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
	return a.part(job, l, err)
}

// part ends a rank's membership. What ended one of them ends all: each says its own error, and who has none what the other one's was.
func (a *app) part(job *dist.Job, l dist.Launch, err error) error {
	cut := errors.Is(err, context.Canceled) || errors.Is(err, train.ErrInterrupted) || errors.Is(err, dist.ErrPeer)
	switch lost := job.Err(); {
	case errors.Is(err, dist.ErrDiffer):
		err = errors.Join(err, job.Close())
		if l.Rank > 0 {
			return saidElsewhere{err}
		}
		return err
	case lost != nil && (err == nil || cut):
		return fmt.Errorf("rank %d of %d: %w; what was finished is kept: %w", l.Rank, l.World, lost, train.ErrInterrupted)
	case err != nil:
		job.Fail(err)
		return fmt.Errorf("rank %d of %d: %w", l.Rank, l.World, err)
	}
	return job.Close()
}

// meetInWords brings ranks together that send each other no tensors; where the launcher tells them no place, MPI carries the address.
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
