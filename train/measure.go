package train

import (
	"math/rand/v2"
	"time"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/optim"
	"antiphase/recipe"
)

// Measure is the time of one step of r on d, the shortest of a few on random tokens. Plans use it before there is any
// data.
func Measure(d device.Device, r recipe.Recipe) (time.Duration, error) {
	m, err := model.New(d, r.Model, layer.Memory{Train: true, Master: r.Optim.RoundBF16})
	if err != nil {
		return 0, err
	}
	defer m.Free()
	m.Init(r.Train.Seed)
	o := optim.New(d, m.Params, r.Optim)
	defer o.Free()
	step := optim.NewStepper(m, o, r.Train.MicroBatch)
	defer step.Free()
	n := r.Train.Batch * r.Train.SeqLen
	b := model.Batch{B: r.Train.Batch, T: r.Train.SeqLen, IDs: make([]int32, n), Targets: make([]int32, n)}
	g := rand.New(rand.NewPCG(r.Train.Seed, 1))
	for i := range b.IDs {
		b.IDs[i], b.Targets[i] = int32(g.IntN(r.Model.Vocab)), int32(g.IntN(r.Model.Vocab))
	}
	best := time.Duration(0)
	for i := range 6 {
		begin := time.Now()
		if _, _, err := step.Step(&b, i+1, 0); err != nil {
			return 0, err
		}
		if took := time.Since(begin); best == 0 || took < best {
			best = took
		}
	}
	return best, nil
}
