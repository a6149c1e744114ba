package model

import (
	"math"
	"math/rand/v2"
	"path"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/tensor"
)

// use runs every kind of pass of a model, and of a cache and a twin of it, and frees what it made.
func use(t *testing.T, m *Model) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	c := m.Config
	b := batch(rand.New(rand.NewPCG(1, 2)), c, 2, 5)
	var f Feed
	check(m.Put(&f, b, 1))
	m.Gradient(&f, 1, nil)
	check(m.Put(&f, batch(rand.New(rand.NewPCG(1, 2)), c, 2, 9), 2)) // the feed grows
	f.Free()
	norms := m.NewGradientNorms(m.GradientGroups(-1))
	norms.Read(nil)
	norms.Free()
	m.Lambdas(nil)
	check(m.Score(b))
	check(m.Look(b, &look{}, []int{3}, func(int, []float32) {}))
	twin := Twin(m)
	check(twin.Score(b))
	twin.Free()
	k := m.NewCache(6, 3, 2, 6)
	for i := range 6 {
		k.Assign(1, i, int32(5-i))
	}
	for _, rows := range [][]int32{{0, 1, 2}, {3}, {4}, {5, 6, 7, 8, 9, 10}, {11}} { // places of chunks grow too
		r := Rows{Pos: rows, IDs: make([]int32, len(rows)), Slots: make([]int32, len(rows)), Want: []int32{0}}
		for i := range rows {
			r.Slots[i] = 1
		}
		check(k.Run(r))
	}
	if k.Ahead() > 0 {
		k.FetchBest()
		k.Follow(1)
		k.FetchBest()
		check(k.WaitBest(make([]int32, 1)))
	}
	k.Free()
}

// Whatever a model, its caches, feeds, twins and readers allocate on a device they free, once, on every kind of device.
func TestEverythingIsFreed(t *testing.T) {
	for name, c := range configs(t) {
		if kind := path.Base(name); kind != "base" && kind != "tied" && kind != "lambda-none" &&
			kind != "pairs-across" {
			continue // holds what base holds
		}
		for kind, wrap := range map[string]func(d device.Device) device.Device{
			"plain":   func(d device.Device) device.Device { return d },
			"chunks":  func(d device.Device) device.Device { return together{d} },
			"ahead":   func(d device.Device) device.Device { return &forward{Device: d} },
			"records": func(d device.Device) device.Device { return &replays{Device: d} },
		} {
			d := &meagre{Device: ref.New(), left: math.MaxInt}
			used := wrap(d)
			m := newModel(t, used, c)
			held := d.live
			use(t, m)
			if d.live < held {
				t.Errorf("%s, %s: %d allocations, %d before the passes: something was freed twice", name,
					kind, d.live, held)
			}
			if m.Free(); d.live != 0 {
				t.Errorf("%s, %s: %d allocations are left", name, kind, d.live)
			}
			if r, ok := used.(*replays); ok && (r.records == 0 || r.freed != r.records) {
				t.Errorf("%s: %d recordings, %d of them freed", name, r.records, r.freed)
			}
		}
	}
}

// So does a rank's part of a split model, whether it has run a pass or not.
func TestPartsAreFreed(t *testing.T) {
	for name, c := range configs(t) {
		c.Vocab = 20
		if c.CheckSplit(2) != nil {
			continue
		}
		for _, passes := range []int{0, 1, 2} {
			d := &meagre{Device: ref.New(), left: math.MaxInt}
			m, err := New(d, c, layer.Memory{Train: true, Split: layer.NewSplit(paper(2))})
			if err != nil {
				t.Fatal(err)
			}
			for range passes {
				if err := m.Backprop(batch(rand.New(rand.NewPCG(1, 2)), c, 1, 3), 1); err != nil {
					t.Fatal(err)
				}
			}
			if m.Free(); d.live != 0 {
				t.Errorf("%s after %d passes: %d allocations are left", name, passes, d.live)
			}
		}
	}
}

// A rank that obeys frees a cache when the leading rank does.
func TestObeyFrees(t *testing.T) {
	c := configs(t)["diff/base"]
	d := &meagre{Device: ref.New(), left: math.MaxInt}
	lead, other := newModel(t, ref.New(), c), newModel(t, d, c)
	lead.Lead(other.Obey)
	held := d.live
	first, second := lead.NewCache(2, 3, 1, 2), lead.NewCache(3, 2, 1, 3)
	each := (d.live - held) / 2
	for i, k := range []*Cache{first, second} {
		if k.Free(); each == 0 || d.live != held+(1-i)*each {
			t.Errorf("%d allocations after %d caches were freed, want %d", d.live, i+1, held+(1-i)*each)
		}
	}
}

// Commit writes every page of keys and values of every layer, on the leading rank and on those that obey it, of the
// cache that it names alone.
func TestCommitTouchesAllPages(t *testing.T) {
	c := configs(t)["diff/base"]
	lead, other := newModel(t, ref.New(), c), newModel(t, ref.New(), c)
	lead.Lead(other.Obey)
	caches := []*Cache{lead.NewCache(2, 3, 1, 2), lead.NewCache(3, 2, 1, 3)}
	for _, k := range append(caches, other.told...) {
		for _, l := range k.layers {
			for _, x := range []tensor.Tensor{l.K, l.V} {
				for i := range tensor.Host[float64](x) {
					tensor.Host[float64](x)[i] = 1
				}
			}
		}
	}
	caches[1].Commit()
	for i, k := range append(caches, other.told...) {
		want := 1 - float64(i%2) // the second of either rank
		if len(k.layers) != c.Layers {
			t.Fatalf("%d layers", len(k.layers))
		}
		for l, x := range k.layers {
			for _, y := range []tensor.Tensor{x.K, x.V} {
				for at, v := range tensor.Host[float64](y) {
					if v != want {
						t.Fatalf("cache %d, layer %d, %v: element %d is %g, want %g", i, l, y, at, v, want)
					}
				}
			}
		}
	}
}

// passChanges are changes of what passes do. stale: recordings must be forgotten; byHost: passes need the host.
var passChanges = []struct {
	name          string
	change        func(m *Model) error
	stale, byHost bool
}{
	{"nothing", func(*Model) error { return nil }, false, false},
	{"an empty list", func(m *Model) error { return m.Intervene() }, true, false},
	{"a factor of λ", func(m *Model) error { return m.Intervene(layer.Intervention{Lambda: new(0.5)}) }, true, true},
	{"a factor in the last layer", func(m *Model) error {
		return m.Intervene(layer.Intervention{Lambda: new(0.5), Layers: []int{1}})
	}, true, true},
	{"exact", func(m *Model) error { return m.SetLowbit(layer.Lowbit{}) }, true, false},
	{"few bits", func(m *Model) error { return m.SetLowbit(layer.Lowbit{Keys: 4}) }, true, true},
	{"the same memory", func(m *Model) error { m.Recompute(m.recompute); return nil }, false, false},
	{"other memory", func(m *Model) error { m.Recompute(layer.RecomputeBlocks); return nil }, true, false},
}

// Steps that were recorded are recorded anew after each change of what passes do, and only then; passes that need the
// host are never recorded.
func TestRecordingsForgetChanges(t *testing.T) {
	for _, x := range passChanges {
		d := &replays{Device: ref.New()}
		m := newModel(t, d, configs(t)["diff/base"])
		cache := m.NewCache(8, 2, 2, 8)
		for i := range int32(8) {
			cache.Assign(1, int(i), i)
		}
		pos := int32(0)
		steps := func() (launches int) {
			t.Helper()
			before := d.launches
			for range 4 {
				if err := cache.Run(Rows{IDs: []int32{3}, Slots: []int32{1}, Pos: []int32{pos},
					Want: []int32{0}}); err != nil {
					t.Fatal(err)
				}
				pos++
			}
			return d.launches - before
		}
		if n := steps(); n != 3 {
			t.Fatalf("%d of four steps are replays, want 3", n)
		}
		version := m.Version()
		if err := x.change(m); err != nil {
			t.Fatal(err)
		}
		if changed := m.Version() != version; changed != x.stale || m.ByHost() != x.byHost {
			t.Errorf("%s: new version %v, by the host %v", x.name, changed, m.ByHost())
		}
		want := 4
		if x.byHost {
			want = 0
		} else if x.stale {
			want = 3
		}
		if n := steps(); n != want {
			t.Errorf("%s: %d of the next four steps are replays, want %d", x.name, n, want)
		}
		cache.Free()
		m.Free()
	}
}

// copies counts what the host reads from a device and writes to it.
type copies struct {
	device.Device
	reads, writes int
}

func (c *copies) Read(dst []byte, src tensor.Tensor)  { c.reads++; c.Device.Read(dst, src) }
func (c *copies) Write(dst tensor.Tensor, src []byte) { c.writes++; c.Device.Write(dst, src) }

// A pass of any configuration stays on the device: a training pass copies nothing, a decoding step reads nothing.
func TestPassesStayOnTheDevice(t *testing.T) {
	for name, c := range configs(t) {
		for _, how := range layer.Recomputes {
			d := &copies{Device: ref.New()}
			m := newModel(t, d, c)
			m.Recompute(how)
			var f Feed
			if err := m.Put(&f, batch(rand.New(rand.NewPCG(1, 2)), c, 2, 5), 1); err != nil {
				t.Fatal(err)
			}
			m.Gradient(&f, 1, nil) // what is constant is written once
			d.reads, d.writes = 0, 0
			if m.Gradient(&f, 1, nil); d.reads+d.writes != 0 || m.ByHost() {
				t.Errorf("%s, recomputing %s: %d reads and %d writes of the host in a pass; ByHost is %v", name, how,
					d.reads, d.writes, m.ByHost())
			}
			cache := m.NewCache(8, 2, 2, 8)
			for i := range 8 {
				cache.Assign(1, i, int32(i))
			}
			for pos := range int32(3) {
				if err := cache.Run(Rows{IDs: []int32{3}, Slots: []int32{1}, Pos: []int32{pos},
					Want: []int32{0}}); err != nil || d.reads != 0 {
					t.Fatalf("%s: %d reads of a decoding step, %v", name, d.reads, err)
				}
			}
			cache.Free()
			f.Free()
			m.Free()
		}
	}
}
