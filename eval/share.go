package eval

import (
	"context"
	"errors"
	"fmt"
)

// Share asks one process's part of the questions of Run: every of-th question, starting with the rank-th. Answers go to
// the store, where Run in any process finds them afterwards. Tasks that measure speed are left to Run.
func Share(ctx context.Context, targets []Target, tasks []Task, opt Options, rank, of int) (err error) {
	if opt.Output == "" {
		return &InputError{errors.New("several processes need a store in which their answers meet"), true}
	}
	jobs, _, err := opt.jobs(ctx, targets, tasks)
	if err != nil {
		return err
	}
	store, err := OpenStore(opt.Output)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for i := range targets {
		for _, j := range jobs {
			if j.Task.Timed {
				continue
			}
			key, _, open, err := opt.open(store, &targets[i], j)
			var mine []int
			for _, n := range open {
				if n%of == rank {
					mine = append(mine, n)
				}
			}
			if err == nil {
				err = opt.ask(ctx, store, key, &targets[i], j, mine)
			}
			if err != nil && !errors.Is(err, ErrCannot) {
				return fmt.Errorf("%s: %s: %w", targets[i].Name, j.Task.Name, err)
			}
		}
		if s, ok := targets[i].LM.(*Subject); ok {
			s.Close()
		}
	}
	return nil
}
