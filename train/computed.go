package train

import (
	"errors"
	"fmt"
	"slices"

	"antiphase/device"
)

// ErrElsewhere means that a resume would compute different bits from the run so far: another device, precision or
// kernels.
var ErrElsewhere = errors.New("cannot continue with the same bits")

// numerics is a version number of the bits of a training step. It is incremented with each change that alters them, so
// that a run begun with an older version is not silently continued with different rounding.
const numerics = 1

// Computed describes what computed the steps after From, up to the next entry's.
type Computed struct {
	From int `json:"from"`
	device.Identity
	Numerics int `json:"numerics"`
}

// String formats the line a user sees.
func (c Computed) String() string {
	if c.Numerics != numerics {
		return fmt.Sprintf("%v, numerics %d", c.Identity, c.Numerics)
	}
	return c.Identity.String()
}

// same reports whether both compute the same bits.
func (c Computed) same(d Computed) bool { return c.Identity == d.Identity && c.Numerics == d.Numerics }

// elsewhere compares what computed a checkpoint with what would compute the next step, and refuses a difference unless
// it was requested. A run without steps so far, or with none left, may be opened anywhere.
func (t resumer) elsewhere(s *State) error {
	here := t.here(s.Step)
	if len(s.Computed) == 0 || s.Step == 0 || s.Step >= t.recipe.Train.Steps {
		return nil
	}
	switch was := s.Computed[len(s.Computed)-1]; {
	case was.same(here):
		return nil
	case t.opt.Inexact:
		t.opt.Say("changed: steps up to %d were computed by %v, later ones by %v: results will not be bit-identical",
			s.Step, was, here)
		return nil
	default:
		return fmt.Errorf("%w: the run was computed by %v; this is %v\nuse the same device and --precision, or "+
			"--inexact to continue anyway",
			ErrElsewhere, was, here)
	}
}

func (t resumer) here(step int) Computed {
	return Computed{From: step, Identity: device.IdentityOf(t.opt.Device), Numerics: numerics}
}

// noteComputed records in the state what computes the following steps.
func (t resumer) noteComputed() {
	here, list := t.here(t.state.Step), t.state.Computed
	if t.state.Step == 0 {
		list = nil
	}
	n := len(list)
	switch {
	case t.state.Step >= t.recipe.Train.Steps && t.state.Step > 0, n > 0 && list[n-1].same(here):
		return
	case n == 0 && t.state.Step > 0:
		t.opt.Say("the checkpoint does not say what computed it; it continues with %v", here)
	}
	t.state.Computed = append(slices.Clip(list), here)
}
