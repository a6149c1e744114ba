package train

import (
	"path/filepath"
	"testing"

	"antiphase/device/cpu"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/optim"
	"antiphase/recipe"
	"antiphase/tensor"
)

// crowd is the first of many ranks that never speak.
type crowd int

func (crowd) Rank() int                              { return 0 }
func (n crowd) Size() int                            { return int(n) }
func (crowd) AllReduce(tensor.Tensor) error          { return nil }
func (crowd) ReduceScatter(_, _ tensor.Tensor) error { return nil }
func (crowd) AllGather(_, _ tensor.Tensor) error     { return nil }
func (crowd) Broadcast(_ tensor.Tensor, _ int) error { return nil }

// Ranks that share moments share the masters of rounded weights too, and lose nothing of them: one process, then
// several, then one again end with the bytes that they end with where every rank has all masters. Without clipping no
// order of sums can show.
func TestShardedMasters(t *testing.T) {
	for _, c := range []struct {
		precision cpu.Precision
		set       string
	}{{cpu.BF16, "optim.bf16_weights=false"}, {cpu.FP32, "optim.bf16_weights=true"},
		{cpu.BF16, "optim.bf16_weights=true"}} {
		for _, n := range []int{2, 3} {
			if n > 2 && testing.Short() {
				continue
			}
			var ends [2]map[string][]byte
			for i, shard := range []bool{false, true} {
				dir := t.TempDir()
				for _, stage := range []struct {
					steps string
					ranked
				}{{"train.steps=2", ranked{1, 1, false}}, {"train.steps=4", ranked{n, 1, shard}},
					{"train.steps=6", ranked{1, 1, false}}} {
					r := nano(t, "diff", "train.batch=6", "train.micro_batch=1", "train.save_every=0", "optim.clip=0",
						"optim.schedule=constant", c.set, stage.steps)
					if _, err := stage.run(t, r, dir, func(_ int, opt *Options, _ *recipe.Recipe) {
						d := cpu.New(cpu.Options{Threads: 1, Precision: c.precision})
						t.Cleanup(func() { d.Close() })
						opt.Device = d
					}); err != nil {
						t.Fatal(err)
					}
				}
				ends[i] = files(t, filepath.Join(dir, "checkpoints", "step-00000006"))
			}
			for _, name := range []string{"model.safetensors", "optimizer.safetensors"} {
				if string(ends[0][name]) != string(ends[1][name]) || len(ends[0][name]) == 0 {
					t.Errorf("%v, %s, %d ranks: %s differs where masters are shared", c.precision, c.set, n, name)
				}
			}
		}
	}
}

// What MemoryOf counts is what a rank that shares moments and masters takes.
func TestShardedStateBytes(t *testing.T) {
	const ranks = 4
	for _, p := range []cpu.Precision{cpu.FP32, cpu.BF16} {
		for _, set := range []string{"optim.bf16_weights=false", "optim.bf16_weights=true"} {
			r := nano(t, "diff2", set)
			host := cpu.New(cpu.Options{Threads: 1, Precision: p})
			d := &tally{Device: host}
			alone := crowd(ranks)
			m, err := model.New(d, r.Model,
				optim.Memory(layer.Memory{Train: true, Master: r.Optim.RoundBF16}, alone, true))
			if err != nil {
				t.Fatal(err)
			}
			o := optim.NewParallel(d, m, r.Optim, optim.Team{Data: alone, World: alone}, true)
			want := MemoryOf(r, d.Types(), Layout{Data: ranks, Shard: true}).State
			if got := d.bytes; got < want || float64(got) > 1.2*float64(want) {
				t.Errorf("%v, %s: %d bytes were taken, %d were counted", p, set, got, want)
			}
			o.Free()
			m.Free()
			host.Close()
		}
	}
}
