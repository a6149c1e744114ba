package train

import (
	"fmt"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/recipe"
)

// Layout is how ranks share a run; the zero Layout is one process.
type Layout struct {
	Data   int  // ranks that divide the rows of a batch
	Tensor int  // neighbouring ranks that hold one model together
	Shard  bool // data ranks share the optimiser's moments (ZeRO-1)
}

func (l Layout) data() int   { return max(l.Data, 1) }
func (l Layout) tensor() int { return max(l.Tensor, 1) }

// shards is the number of parts that moments are divided into.
func (l Layout) shards() int {
	if l.Shard {
		return l.data()
	}
	return 1
}

// Ranks is their number.
func (l Layout) Ranks() int { return l.data() * l.tensor() }

// String is the layout as --parallel takes it.
func (l Layout) String() string {
	zero := 0
	if l.Shard {
		zero = 1
	}
	return fmt.Sprintf("dp=%d,tp=%d,zero=%d", l.data(), l.tensor(), zero)
}

// Check says why r cannot be trained like this.
func (l Layout) Check(r recipe.Recipe) error {
	if err := r.Model.CheckSplit(l.tensor()); err != nil {
		return err
	}
	if r.Train.Batch%l.data() != 0 {
		return fmt.Errorf("dp=%d does not divide train.batch = %d", l.data(), r.Train.Batch)
	}
	return nil
}

// Wire is the bytes that a rank sends in a step: those that a ring takes. Gradients and weights go once a step; a split model's passes
// add up activations, which nothing hides.
type Wire struct {
	Gradients   float64 // and updated weights, where moments are shared
	Activations float64
}

// Sum is all of it.
func (w Wire) Sum() float64 { return w.Gradients + w.Activations }

// WireOf counts the bytes of a step of r.
func WireOf(r recipe.Recipe, t device.Types, l Layout) (w Wire) {
	n, m := float64(l.data()), float64(l.tensor())
	params := float64(r.Model.PartCount(l.tensor()))
	stat := float64(t.Stat.Size())
	w.Gradients = 2 * (n - 1) / n * stat * params
	if l.Shard {
		w.Gradients = (n - 1) / n * (stat + float64(t.Act.Size())) * params
	}
	// Of every block two sums forward and two backward; one of the embedding and one of the classifier's gradient; log-sums.
	sums := 4*r.Model.Layers + 2
	if r.Train.Recompute == layer.RecomputeBlocks {
		sums += r.Model.Layers // attention's is formed again
	}
	rows := float64(r.Train.Batch*r.Train.SeqLen) / n
	w.Activations = rows * stat * (2*(m-1)/m*float64(sums*r.Model.Dim) + 2*(m-1))
	return w
}

// Fit is the layout of so many ranks that sends the least and fits into spare bytes of each device: rows divided, then moments
// shared, then models split as little as it takes. Where none fits it is the one that needs the least memory.
func Fit(r recipe.Recipe, t device.Types, ranks int, spare int64) Layout {
	best := Layout{Data: ranks, Tensor: 1}
	for tensor := 1; tensor <= ranks; tensor++ {
		for _, shard := range []bool{false, true} {
			l := Layout{Data: ranks / tensor, Tensor: tensor, Shard: shard}
			if l.Ranks() != ranks || shard && l.Data == 1 || l.Check(r) != nil {
				continue
			}
			if MemoryOf(r, t, l).Sum() <= spare {
				return l
			}
			if MemoryOf(r, t, l).Sum() < MemoryOf(r, t, best).Sum() {
				best = l
			}
		}
	}
	return best
}
