package train

import (
	"context"
	"errors"

	"antiphase/layer"
	"antiphase/model"
	"antiphase/tensor"
)

// finisher ends a run that has taken its last step.
type finisher struct{ *run }

// end saves the last step, unless an earlier call did, and passes the model to Options.Finish.
func (t finisher) end(ctx context.Context, unsaved bool) error {
	if t.opt.Finish == nil {
		if !unsaved {
			return nil
		}
		return t.saver.save(true)
	}
	save := unsaved && (!t.opt.Discard || t.saver.due(t.clock.now(), t.opt.SaveAfter))
	if save {
		if err := t.saver.begin(); err != nil {
			return err
		}
	}
	err := t.finish(ctx)
	if err != nil && unsaved && !save {
		return errors.Join(err, t.saver.save(true))
	}
	return errors.Join(err, t.saver.finish(true))
}

// finish calls Options.Finish with a copy of the model for inference. The weights in training would do but for ties:
// the upper half of a master is rounded to nearest with ties away from zero, a loaded weight with ties to even. If
// there is no memory for the copy or for its use, that is an error like any other, so that the last step can still be
// saved.
func (t finisher) finish(ctx context.Context) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *tensor.NoMemory:
			err = v
		default:
			panic(v)
		}
	}()
	m, err := model.New(t.opt.Device, t.recipe.Model, layer.Memory{})
	if err != nil {
		return err
	}
	defer m.Free()
	var x []float32
	for i, p := range t.model.Params.List {
		if n := p.Rows * p.Cols; n > len(x) {
			x = make([]float32, n)
		}
		values := x[:p.Rows*p.Cols]
		p.Read(t.opt.Device, values)
		m.Params.Set(t.opt.Device, m.Params.List[i], values)
	}
	return t.opt.Finish(ctx, m, t.tok)
}
