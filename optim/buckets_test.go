package optim

import (
	"runtime"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/dist"
	"antiphase/dist/disttest"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/tensor"
)

// Buckets divide every group without gap or overlap, in whole units, in the order in which a backward pass completes
// parts of the model. Each has all that is complete with its part and nothing that is not; a part has none only if that
// would be less than is worth a call.
func TestBucketsCover(t *testing.T) {
	was := minBucket
	defer func() { minBucket = was }()
	c := model.Config{Arch: "diff", Vocab: 19, Context: 16, Layers: 3, Dim: 12, Heads: 2, HeadDim: 4, FFN: 20}
	m := modeltest.New(t, ref.New(), c, layer.Memory{Train: true, Multiple: padding(3)}, 3)
	for _, unit := range []int{1, padding(1), padding(3)} {
		sizes := []int{1, 300, 900, 1 << 18} // the last is the package's own
		minBucket = 1
		for _, b := range buckets(m, unit) {
			sizes = append(sizes, b.to-b.from, b.to-b.from+1)
		}
		for _, minBucket = range sizes {
			list := buckets(m, unit)
			for gi, g := range m.Params.Groups {
				to := g.G.Cols
				for part := m.Parts() - 1; part >= 0; part-- {
					from := (complete(m, g, part) + unit - 1) / unit * unit
					if to-from < minBucket && part > 0 || to == from {
						continue
					}
					if len(list) == 0 || list[0] != (bucket{gi, from, to, part}) {
						t.Fatalf("smallest %d, unit %d: %+v, want part %d of group %d to be [%d, %d)", minBucket, unit,
							list, part, gi, from, to)
					}
					list, to = list[1:], from
				}
				if to != 0 {
					t.Errorf("smallest %d, unit %d: %d elements of group %d are in no bucket", minBucket, unit, to, gi)
				}
			}
			if len(list) != 0 {
				t.Errorf("smallest %d, unit %d: %+v besides", minBucket, unit, list)
			}
		}
	}
}

// complete is where in a group the run up to its end begins that belongs to this part of the model and later ones.
func complete(m *model.Model, g *layer.Group, part int) (from int) {
	for earlier := range part {
		for _, p := range m.Part(earlier) {
			if p.G.Buf == g.G.Buf {
				from = max(from, (p.G.Off-g.G.Off)/p.G.Type.Size()+p.Room())
			}
		}
	}
	return from
}

// quiet is ranks that note the sums they are asked for.
type quiet struct {
	dist.Comm
	sums int
}

func (q *quiet) AllReduce(x tensor.Tensor) error {
	if x.Len() > 1 { // not the norm
		q.sums++
	}
	return q.Comm.AllReduce(x)
}

func (q *quiet) ReduceScatter(out, x tensor.Tensor) error {
	q.sums++
	return q.Comm.ReduceScatter(out, x)
}

// A single rank has nothing to sum and no goroutine for it; ranks of a split model issue sums in the order of the pass;
// others have a goroutine until Free. A model that was not made for sharded moments is refused.
func TestWhoSums(t *testing.T) {
	c := model.Config{Arch: "diff", Vocab: 20, Context: 16, Layers: 1, Dim: 16, Heads: 2, HeadDim: 4, FFN: 20}
	before := runtime.GOMAXPROCS(0)
	for _, x := range []struct {
		size                int
		split, shard, apart bool
	}{{1, false, false, false}, {1, false, true, false}, {4, true, false, false}, {2, false, false, true},
		{2, false, true, true}} {
		err := disttest.NewWorld(x.size, disttest.Options{}).Run(func(r dist.Comm) error {
			q := &quiet{Comm: r}
			memory := layer.Memory{Train: true}
			if x.split {
				team, err := r.Split(r.Rank() / 2)
				if err != nil {
					return err
				}
				memory.Split = layer.NewSplit(team)
				if q.Comm, err = r.Split(r.Rank() % 2); err != nil {
					return err
				}
			}
			d := ref.New()
			m := modeltest.New(t, d, c, Memory(memory, q, x.shard), 3)
			o := NewParallel(d, m, Default(), Team{Data: q, World: r}, x.shard)
			if apart := o.reduced.queue != nil; apart != x.apart {
				t.Errorf("%+v: sums on a goroutine: %v", x, apart)
			}
			if _, _, err := NewStepper(m, o, 2).Step(tokens(4, 4), 1, 0); err != nil {
				return err
			}
			if (q.sums > 0) != (x.size > 1) {
				t.Errorf("%+v: %d sums", x, q.sums)
			}
			o.Free()
			if x.apart {
				if _, open := <-o.reduced.queue; open {
					t.Errorf("%+v: the goroutine goes on", x)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := runtime.GOMAXPROCS(0); n != before {
			t.Errorf("%+v: %d goroutines at once, %d before", x, n, before)
		}
	}
	if plain := (layer.Memory{Train: true}); Memory(plain, nil, true) != plain {
		t.Error("a single process has sharded memory")
	}
	defer func() {
		if v, _ := recover().(string); !strings.Contains(v, "not in multiples of 256") {
			t.Errorf("memory that cannot be sharded: %q", v)
		}
	}()
	d := &deaf{Device: ref.New()}
	m := modeltest.New(t, d, c, layer.Memory{Train: true}, 3)
	NewParallel(d, m, Default(), Team{Data: d, World: d}, true)
}

// What a rank of a split model counts are the longest runs that no other holds: no two of them touch.
func TestCountedRunsAreLong(t *testing.T) {
	c := model.Config{Arch: "diff", Vocab: 20, Context: 16, Layers: 2, Dim: 16, Heads: 2, HeadDim: 4, FFN: 20}
	err := disttest.NewWorld(2, disttest.Options{}).Run(func(r dist.Comm) error {
		m := modeltest.New(t, ref.New(), c, layer.Memory{Train: true, Split: layer.NewSplit(r)}, 3)
		split, runsOf := 0, 0
		for _, g := range m.Params.Groups {
			x := &piece{group: g, to: g.G.Cols}
			last := -1
			for _, run := range runs(x) {
				if run.From <= last || run.From >= run.To {
					t.Errorf("a run [%d, %d) after one that ends at %d", run.From, run.To, last)
				}
				last = run.To
				runsOf++
			}
			for _, p := range g.Params {
				if p.Split() {
					split++
				}
			}
		}
		if runsOf == 0 || runsOf >= split {
			t.Errorf("%d runs of %d parameters", runsOf, split)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
