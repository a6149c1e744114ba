package train

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"

	"antiphase/data"
	"antiphase/internal/fault"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/optim"
	"antiphase/recipe"
	"antiphase/tokenizer"
)

// Ranks are the processes that train one run together, all with the same run folder. Each takes its own rows of the
// recipe's batch, so that n ranks compute what one would. Rank 0 leads: it prepares the data and writes every file.
type Ranks interface {
	optim.Ranks
	// Agree waits for all ranks, and refuses where their facts differ.
	Agree(tag string, facts map[string]string) error
	// Exchange returns every rank's value under a tag, which is used once, to every rank. It may be called from another
	// goroutine than the training one.
	Exchange(tag string, value []byte) ([][]byte, error)
	// Group is the ranks that pass the same color, in order. All ranks call it.
	Group(color int) (optim.Ranks, error)
}

// follows reports whether another rank leads.
func (o *Options) follows() bool { return o.Ranks != nil && o.Ranks.Rank() > 0 }

// ranks is the number of ranks.
func (o *Options) ranks() int {
	if o.Ranks == nil {
		return 1
	}
	return o.Ranks.Size()
}

// tensorRanks is the number of ranks that hold one model together.
func (o *Options) tensorRanks() int {
	if o.Ranks == nil {
		return 1
	}
	return max(o.Tensor, 1)
}

// dataRanks is the number of parts of a batch's rows.
func (o *Options) dataRanks() int { return o.ranks() / o.tensorRanks() }

// meet finds this rank's groups. Consecutive ranks hold one model together; ranks with the same part of it divide the
// rows.
func (t *run) meet() (err error) {
	if t.opt.Ranks == nil {
		return nil
	}
	t.data = t.opt.Ranks
	n := t.opt.tensorRanks()
	if n == 1 {
		return nil
	}
	if t.opt.ranks()%n != 0 {
		return fmt.Errorf("train: %d ranks cannot be divided into models of tp=%d: start a multiple of %d",
			t.opt.ranks(), n, n)
	}
	if err := t.recipe.Model.CheckSplit(n); err != nil {
		return fmt.Errorf("train: model: %w", err)
	}
	team, err := t.opt.Ranks.Group(t.opt.Ranks.Rank() / n)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	t.split = layer.NewSplit(team)
	if t.data, err = t.opt.Ranks.Group(t.opt.Ranks.Rank() % n); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// agree is Ranks.Agree; it does nothing for a single process.
func (t *run) agree(tag string, facts map[string]string) error {
	if t.opt.Ranks == nil {
		return nil
	}
	return t.opt.Ranks.Agree(tag, facts)
}

// waitPrepared waits until rank 0 has prepared everything, or the context ends.
func waitPrepared(ctx context.Context, r Ranks) error {
	done := make(chan error, 1)
	go func() {
		defer fault.Guard()()
		done <- r.Agree("prepared", nil)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start lets the other ranks begin, once rank 0 has prepared everything, and compares what all are about to train.
func (t *run) start() error {
	if t.opt.Ranks == nil {
		return nil
	}
	if !t.opt.follows() {
		if err := t.agree("prepared", nil); err != nil {
			return err
		}
	}
	tok, err := t.tok.MarshalJSON()
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	hash := func(b []byte) string { return fmt.Sprintf("%.6x", sha256.Sum256(b)) }
	return t.agree("start", map[string]string{
		"recipe": hash(t.recipe.JSON()), "tokenizer": hash(tok), "data": t.loader.Position().Dataset,
		"step":    strconv.Itoa(t.state.Step),
		"sharded": strconv.FormatBool(t.opt.Shard), "tp": strconv.Itoa(t.opt.tensorRanks()),
	})
}

// prepared opens what rank 0 has made, or the built set that it used.
func prepared(ctx context.Context, r recipe.Recipe, opt *Options, c *saved) (*tokenizer.Tokenizer, *data.Set, error) {
	built := opt.place(r)
	if c == nil && built != "" {
		return takeSet(built, r, opt)
	}
	set, err := data.OpenSetFS(opt.fs, opt.Data, true) // first: in another folder a tokenizer would be trained
	if err != nil {
		return nil, nil, fmt.Errorf("train: all ranks must see one run folder, %s: %w", opt.Dir, err)
	}
	var tok *tokenizer.Tokenizer
	if c != nil {
		tok, err = loadTokenizer(opt.fs, c.Path("tokenizer.json"))
	} else {
		tok, err = prepareTokenizer(ctx, r, opt)
	}
	if err != nil {
		return nil, nil, errors.Join(err, set.Close())
	}
	return tok, set, nil
}

// microBatch is the number of rows that a rank runs at a time: the recipe's, or the largest number that divides the
// rank's rows.
func (t *run) microBatch() (int, error) {
	tr, n := t.recipe.Train, t.opt.dataRanks()
	if tr.Batch%n != 0 {
		return 0, fmt.Errorf("train: %d ranks cannot share train.batch=%d equally: set a multiple of %d, or start "+
			"another number of ranks", n, tr.Batch, n)
	}
	rows := tr.Batch / n
	micro := min(tr.MicroBatch, rows)
	for rows%micro != 0 {
		micro--
	}
	return micro, nil
}

// newOptim makes the optimiser of m.
func (t *run) newOptim(m *model.Model) *optim.AdamW {
	if t.opt.Ranks == nil {
		return optim.New(t.opt.Device, m.Params, t.recipe.Optim)
	}
	return optim.NewParallel(t.opt.Device, m, t.recipe.Optim, optim.Team{Data: t.data, World: t.opt.Ranks}, t.opt.Shard)
}

// vote sends the other ranks, with the next step, what this one was asked for.
func (t *run) vote(ctx context.Context) {
	if t.opt.Ranks != nil {
		t.stepper.Vote(ctx.Err() != nil, t.asked())
	}
}

// saving reports whether any rank was asked for a checkpoint; all ranks agree.
func (t *run) saving() bool {
	if t.opt.Ranks == nil {
		return t.asked()
	}
	return t.stepper.Saving()
}

// stopping reports whether to stop after this step; all ranks agree.
func (t *run) stopping(ctx context.Context) bool {
	if t.opt.Ranks == nil {
		return ctx.Err() != nil
	}
	return t.stepper.Stopping()
}

// nowhere discards the rows of ranks other than 0.
type nowhere struct{}

func (nowhere) Write(*Row) error { return nil }
func (nowhere) Sync() error      { return nil }
func (nowhere) Close()           {}
