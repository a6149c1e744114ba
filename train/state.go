package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"antiphase/checkpoint"
	"antiphase/data"
	"antiphase/internal/vfs"
	"antiphase/optim"
)

const (
	stateFormat = 1
	maxState    = 64 << 20 // bytes
)

// State is everything of a run except weights and moments. It has no times, so that the same step of the same run gives
// the same bytes.
type State struct {
	Format int             `json:"format"`
	Step   int             `json:"step"`
	Tokens int64           `json:"tokens"`
	Loss   float64         `json:"loss"`
	EMA    float64         `json:"loss_ema"`
	Valid  float64         `json:"valid_loss"`
	Data   data.Position   `json:"data"`
	Recipe json.RawMessage `json:"recipe"`

	Parent   *Parent    `json:"parent,omitempty"`   // the model it began with
	Computed []Computed `json:"computed,omitempty"` // by what, in order of steps; none in states of older programs
}

func (s *State) advance(loss float64, tokens int) {
	const keep = 0.98
	if s.Step == 0 {
		s.EMA = loss
	}
	s.EMA = keep*s.EMA + (1-keep)*loss
	s.Loss = loss
	s.Step++
	s.Tokens += int64(tokens)
}

// saved is a checkpoint to continue from, with its state.
type saved struct {
	*checkpoint.Checkpoint
	state   *State
	newData bool // --force changes the data
}

// resumer continues a run from its newest checkpoint, or begins it.
type resumer struct{ *run }

// latest finds the newest complete checkpoint and checks that it belongs to this recipe; nil if there is none.
func (t resumer) latest() (*saved, error) {
	c, err := t.store.Latest(func(s string) { t.opt.Say("warning: %s; looking at the one before", s) })
	if errors.Is(err, checkpoint.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	s := &saved{Checkpoint: c}
	if s.state, err = ReadState(c); err == nil {
		err = errors.Join(t.compatible(s), t.elsewhere(s.state))
	}
	if err != nil {
		return nil, fmt.Errorf("train: %s: %w", c.Dir, err)
	}
	return s, nil
}

// resume restores a checkpoint; if there is none the weights are those given, or are drawn.
func (t resumer) resume(c *saved) error {
	if c == nil {
		if err := t.begin(); err != nil {
			return fmt.Errorf("train: weights to begin with: %w", err)
		}
		t.roundWeights()
		t.noteComputed()
		t.fresh = true
		return nil
	}
	if err := t.restore(c); err != nil {
		return fmt.Errorf("train: %s: %w", c.Dir, err)
	}
	t.resumed = t.state.Step
	t.noteComputed()
	if t.opt.follows() {
		return nil
	}
	t.opt.Say("resuming from step %d of %d (%s)", t.state.Step, t.recipe.Train.Steps, c.Dir)
	moved, err := t.store.Rewind(c.Step)
	for _, path := range moved {
		t.opt.Say("a checkpoint after that step is kept as %s", path)
	}
	if err != nil {
		return err
	}
	if err := t.store.Tidy(c.Step); err != nil { // the next save retries
		t.opt.Say("warning: %v", err)
	}
	return nil
}

// ErrUnlike means that the weights to begin with do not fit the recipe's model.
var ErrUnlike = errors.New("the weights to begin with are those of another model")

func (t resumer) begin() error {
	if t.opt.Begin == nil {
		t.model.Init(t.recipe.Train.Seed)
		return nil
	}
	var err error
	if t.state.Parent, err = t.opt.Begin.Parent(); err != nil {
		return err
	}
	for _, p := range t.model.Params.List {
		x, err := t.opt.Begin.Weights(p.Name)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnlike, err)
		}
		if rows, cols := p.Whole(); len(x) != rows*cols {
			return fmt.Errorf("%w: parameter %q has %d values there, the recipe's model wants %v", ErrUnlike, p.Name,
				len(x), p.Shape())
		}
		t.model.Params.Set(t.opt.Device, p, p.Take(x))
	}
	return nil
}

func (t resumer) restore(c *saved) error {
	if err := t.restoreWeights(c.Checkpoint); err != nil {
		return damaged(err)
	}
	t.roundWeights()
	if err := t.restoreMoments(c.Checkpoint); err != nil {
		return damaged(err)
	}
	t.state = *c.state
	err := t.loader.Seek(c.state.Data)
	switch {
	case err == nil:
		return nil
	case t.opt.Force:
		t.opt.Say("the data begins again at its first row: %v", err)
		return nil
	}
	return fmt.Errorf("%w: %w; use another folder, or --force to begin again at the first row", ErrChanged, err)
}

// roundWeights sets the working copy to what the last update left: the master rounded to bf16 values.
func (t resumer) roundWeights() {
	if t.recipe.Optim.RoundBF16 {
		t.model.Params.Round(t.opt.Device)
	}
}

// damaged marks an error of tensor files whose hashes are right: a restart would fail again. Errors of the file system
// are not of that kind.
func damaged(err error) error {
	if errors.As(err, new(*fs.PathError)) {
		return err
	}
	return fmt.Errorf("%w: %w", checkpoint.ErrDamaged, err)
}

func (t resumer) restoreWeights(c *checkpoint.Checkpoint) error {
	f, err := openTensors(c, modelName)
	if err != nil {
		return err
	}
	defer f.Close()
	return t.model.Load(f)
}

func (t resumer) restoreMoments(c *checkpoint.Checkpoint) error {
	f, err := openTensors(c, momentsName)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, p := range t.model.Params.List {
		for which, name := range []string{optim.First: "m/" + p.Name, optim.Second: "v/" + p.Name} {
			host, err := f.Float32s(name)
			if err != nil {
				return err
			}
			rows, cols := p.Whole()
			if n := rows * cols; len(host) != n {
				return fmt.Errorf("tensor %q has %d values, the optimiser wants %d", name, len(host), n)
			}
			t.optim.SetMoment(p, which, p.Take(host))
		}
	}
	return nil
}

// ReadState reads a checkpoint's state.
func ReadState(c *checkpoint.Checkpoint) (*State, error) {
	b, err := vfs.ReadFile(c.FS(), c.Path("state.json"), maxState)
	if err != nil {
		return nil, err
	}
	var s State
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("state.json: %w", err)
	}
	if s.Format != stateFormat {
		return nil, fmt.Errorf("state.json: format %d, this program reads %d", s.Format, stateFormat)
	}
	return &s, nil
}
