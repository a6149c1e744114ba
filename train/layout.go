package train

import (
	"fmt"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/recipe"
)

// Layout is how ranks divide a run; the zero Layout is one process.
type Layout struct {
	Data   int  // ranks that divide the rows of a batch
	Tensor int  // consecutive ranks that hold one model together
	Shard  bool // data ranks share the optimiser's moments (ZeRO-1)
}

func (l Layout) data() int   { return max(l.Data, 1) }
func (l Layout) tensor() int { return max(l.Tensor, 1) }

// shards is the number of parts of the moments.
func (l Layout) shards() int {
	if l.Shard {
		return l.data()
	}
	return 1
}

// Ranks is the number of ranks.
func (l Layout) Ranks() int { return l.data() * l.tensor() }

// String formats the layout as --parallel takes it.
func (l Layout) String() string {
	zero := 0
	if l.Shard {
		zero = 1
	}
	return fmt.Sprintf("dp=%d,tp=%d,zero=%d", l.data(), l.tensor(), zero)
}

// Check reports why r cannot be trained with this layout.
func (l Layout) Check(r recipe.Recipe) error {
	if err := r.Model.CheckSplit(l.tensor()); err != nil {
		return err
	}
	if r.Train.Batch%l.data() != 0 {
		return fmt.Errorf("dp=%d does not divide train.batch = %d", l.data(), r.Train.Batch)
	}
	return nil
}

// Wire is the number of bytes that a rank sends in a step, as in a ring. Gradients and weights are sent once per step;
// passes of a split model also sum activations, which cannot be overlapped.
type Wire struct {
	Gradients   float64 // including updated weights if moments are sharded
	Activations float64
}

// Sum is the total.
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
	// Two sums forward and two backward per block; one of the embedding and one of the classifier's gradient; log-sums.
	sums := 4*r.Model.Layers + 2
	if r.Train.Recompute == layer.RecomputeBlocks {
		sums += r.Model.Layers // attention's is recomputed
	}
	rows := float64(r.Train.Batch*r.Train.SeqLen) / n
	w.Activations = rows * stat * (2*(m-1)/m*float64(sums*r.Model.Dim) + 2*(m-1))
	return w
}

// Fit is the layout of this many ranks that sends the least and fits into spare bytes of each device: rows divided,
// then moments sharded, then the model split as little as necessary. If none fits it is the one that needs the least
// memory.
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
