package train

import (
	"fmt"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/recipe"
	"antiphase/tensor"
)

// Memory is the device memory of a step, in bytes. It counts what grows with the model and the batch; a run needs
// slightly more.
type Memory struct {
	State       int64 // weights, gradients, moments
	Activations int64 // of one micro-batch
}

// Sum is the total.
func (m Memory) Sum() int64 { return m.State + m.Activations }

// MemoryOf is the memory of a step of r on each rank's device with these types.
func MemoryOf(r recipe.Recipe, t device.Types, l Layout) Memory {
	n := int64(r.Model.PartCount(l.tensor()))
	weight, master := weightBytes(t, r.Optim.RoundBF16)
	return Memory{
		State: n*weight + n*(master+8)/int64(l.shards()),
		Activations: int64(r.Model.PartOf(l.tensor()).ActivationBytes(r.Train.MicroBatch*r.Train.SeqLen, t,
			r.Train.Recompute)),
	}
}

// weightBytes is the memory of a parameter in training besides its moments: weight and gradient on every rank, and its
// master, which is sharded like moments. A bf16 weight is stored with the lower half of its master; a float32 weight is
// its own master unless weights are rounded.
func weightBytes(t device.Types, rounded bool) (weight, master int64) {
	const gradient = 4
	switch {
	case t.Act != t.Stat:
		return 2 + gradient, 2
	case rounded:
		return 4 + gradient, 4
	}
	return 4 + gradient, 0
}

// memory refuses a run whose step does not fit the device, and names a setting that would.
func (t *run) memory() error {
	micro, err := t.microBatch()
	if err != nil {
		return err
	}
	r, way := t.recipe, Layout{Data: t.opt.dataRanks(), Tensor: t.opt.tensorRanks(), Shard: t.opt.Shard}
	r.Train.MicroBatch = micro
	need, spare := MemoryOf(r, t.opt.Device.Types(), way), device.SpareOf(t.opt.Device)
	if need.Sum() <= spare {
		return nil
	}
	why := &tensor.NoMemory{Where: device.IdentityOf(t.opt.Device).Device, Bytes: int(need.Sum()), Free: spare}
	return fmt.Errorf(
		"train: %w: %.2f GiB for weights, gradients and moments, %.2f GiB for activations of %d × %d tokens; %s",
		why, gib(need.State), gib(need.Activations), micro, r.Train.SeqLen,
		fitting(r, t.opt.Device.Types(), way, spare))
}

// fitting names the smallest change of r that fits into spare bytes.
func fitting(r recipe.Recipe, t device.Types, way Layout, spare int64) string {
	micro := r.Train.MicroBatch
	for _, c := range layer.Recomputes {
		for n := micro; n > 0; n-- {
			if micro%n != 0 {
				continue
			}
			x := r
			x.Train.MicroBatch, x.Train.Recompute = n, c
			if need := MemoryOf(x, t, way); need.Sum() <= spare {
				s := fmt.Sprintf("train.micro_batch=%d", n)
				if c != layer.RecomputeOff {
					s += fmt.Sprintf(" with train.recompute=%s", c)
				}
				return fmt.Sprintf("%s would fit (%.2f GiB)", s, gib(need.Sum()))
			}
		}
	}
	return "no micro-batch fits: take a smaller model, a shorter train.seq_len or a device with more memory"
}

func gib(n int64) float64 { return float64(n) / (1 << 30) }
