package train

import (
	"antiphase/data"
	"antiphase/device"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/tensor"
)

// HeldOut is the mean loss per token over the first micro-batches of a split, in the recipe's order with seed 0,
// independent of the run's seed.
func HeldOut(m *model.Model, sp *data.Split, r recipe.Recipe, batches int) (float64, error) {
	sums := make([]float64, 2*batches)
	if err := score(m, sp, r, sums, 0, 1); err != nil {
		return 0, err
	}
	return mean(sums), nil
}

// heldOut is HeldOut with the micro-batches divided among the ranks. Each is summed by one rank and all are added in
// order, so the result does not depend on their number.
func (t *run) heldOut() (float64, error) {
	batches := t.recipe.Train.EvalBatches
	if t.data == nil {
		return HeldOut(t.model, t.valid, t.recipe, batches)
	}
	sums := make([]float64, 2*batches)
	if err := score(t.model, t.valid, t.recipe, sums, t.data.Rank(), t.data.Size()); err != nil {
		return 0, err
	}
	dev := t.opt.Device
	all := device.Empty(dev, tensor.F64, 1, len(sums))
	defer dev.Free(all.Buf)
	device.WriteFloats(dev, all, sums)
	if err := t.data.AllReduce(all); err != nil {
		return 0, err
	}
	device.ReadFloats(dev, sums, all)
	return mean(sums), t.split.Err()
}

// score computes the sum of losses and the number of scored tokens of every micro-batch whose index is part modulo
// parts.
func score(m *model.Model, sp *data.Split, r recipe.Recipe, sums []float64, part, parts int) error {
	b, T := r.Train.MicroBatch, r.Train.SeqLen
	rows := loader(sp, r, b, 0)
	n := b * T
	batch := model.Batch{B: b, T: T, IDs: make([]int32, n), Targets: make([]int32, n), Starts: make([]int32, n)}
	starts := batch.Starts
	if !r.Data.Isolate {
		batch.Starts = nil
	}
	losses := make([]float32, n)
	for k := range len(sums) / 2 {
		rows.Next(batch.IDs, batch.Targets, starts)
		if k%parts != part {
			continue
		}
		if err := m.Score(&batch); err != nil {
			return err
		}
		m.Losses(losses)
		for i, x := range losses {
			if batch.Targets[i] >= 0 {
				sums[2*k] += float64(x)
				sums[2*k+1]++
			}
		}
	}
	return nil
}

// mean is the loss per token over all micro-batches.
func mean(sums []float64) float64 {
	sum, count := 0.0, 0.0
	for k := 0; k < len(sums); k += 2 {
		sum, count = sum+sums[k], count+sums[k+1]
	}
	return sum / max(count, 1)
}
