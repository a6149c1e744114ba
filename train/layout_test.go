package train

import (
	"math"
	"sync/atomic"
	"testing"

	"antiphase/device/cpu"
	"antiphase/dist"
	"antiphase/optim"
	"antiphase/recipe"
	"antiphase/tensor"
)

// metered is a rank that counts what a ring would send of its collectives.
type metered struct {
	member
	sent *atomic.Int64
}

func (m metered) Group(color int) (optim.Ranks, error) {
	g, err := m.Split(color)
	return metered{member{Comm: g, table: m.table}, m.sent}, err
}

func (m metered) send(bytes, times int) { m.sent.Add(int64(times * bytes * (m.Size() - 1) / m.Size())) }

func (m metered) AllReduce(x tensor.Tensor) error {
	m.send(x.Len()*x.Type.Size(), 2)
	return m.member.AllReduce(x)
}

func (m metered) ReduceScatter(out, x tensor.Tensor) error {
	m.send(x.Len()*x.Type.Size(), 1)
	return m.member.ReduceScatter(out, x)
}

func (m metered) AllGather(out, x tensor.Tensor) error {
	m.send(out.Len()*out.Type.Size(), 1)
	return m.member.AllGather(out, x)
}

var _ dist.Comm = metered{}

// WireOf counts what a step sends, but for small change: padding, votes, norms.
func TestWireOf(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
	defer d.Close()
	for _, l := range []ranked{{2, 1, false}, {3, 1, true}, {2, 2, false}, {4, 2, true}} {
		var sent [2]float64
		for i, steps := range []string{"train.steps=2", "train.steps=5"} {
			r := nano(t, "diff", "train.batch=12", "train.micro_batch=2", "train.eval_batches=0", steps)
			var count atomic.Int64
			if _, err := l.run(t, r, t.TempDir(), func(rank int, opt *Options, _ *recipe.Recipe) {
				if rank == 0 {
					opt.Ranks = metered{opt.Ranks.(member), &count}
				}
			}); err != nil {
				t.Fatal(err)
			}
			sent[i] = float64(count.Load())
		}
		r := nano(t, "diff", "train.batch=12", "train.micro_batch=2")
		want := WireOf(r, d.Types(), Layout{Data: l.n / l.tensor, Tensor: l.tensor, Shard: l.shard}).Sum()
		if got := (sent[1] - sent[0]) / 3; !(math.Abs(got/want-1) <= 0.08) {
			t.Errorf("%v: %.0f bytes a step, counted %.0f", l, got, want)
		}
	}
}

// The default divides rows while that fits, then shares moments, then splits models.
func TestFit(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
	defer d.Close()
	r := nano(t, "diff", "train.batch=8", "train.micro_batch=1")
	need := func(l Layout) int64 { return MemoryOf(r, d.Types(), l).Sum() }
	data, shard := Layout{Data: 4, Tensor: 1}, Layout{Data: 4, Tensor: 1, Shard: true}
	split := Layout{Data: 2, Tensor: 2}
	all := Layout{Data: 2, Tensor: 2, Shard: true}
	if !(need(data) > need(shard) && need(shard) > need(split) && need(split) > need(all)) {
		t.Fatalf("%d, %d, %d, %d bytes", need(data), need(shard), need(split), need(all))
	}
	for _, x := range []struct {
		spare int64
		want  Layout
	}{{need(data), data}, {need(data) - 1, shard}, {need(shard) - 1, split}, {need(split) - 1, all}} {
		if got := Fit(r, d.Types(), 4, x.spare); got != x.want {
			t.Errorf("%d bytes: %v, want %v", x.spare, got, x.want)
		}
	}
}
