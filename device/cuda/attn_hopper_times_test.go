package cuda

import (
	"fmt"
	"os"
	"sort"
	"testing"

	"antiphase/tensor"
)

// hopperVariant is another way to build a shape's kernels, timed beside the table's.
type hopperVariant struct {
	name string
	tile hopperForward
	back hopperBackward
}

// variants are the shape's table entry, the same with turns or without where two warpgroups consume, other tiles, and dQ's
// adds left out, taken as they come, or made by the copy engine.
func (s attnShape) variants() []hopperVariant {
	k := hopperShapes[s]
	all := []hopperVariant{{"table", k.tile, k.back}}
	for _, b := range s.backwards() {
		all = append(all, hopperVariant{b.String(), k.tile, b})
	}
	for _, o := range map[attnShape][]hopperForward{
		{1, 1, 64, 64}: {{keys: 128, groups: 2, per: 1, producer: 24, consumer: 240},
			{keys: 128, groups: 2, per: 1, producer: 24, consumer: 240, turns: true}},
		{2, 2, 64, 128}: {{keys: 128, groups: 2, per: 1, producer: 24, consumer: 240},
			{keys: 128, groups: 2, per: 1, producer: 24, consumer: 240, turns: true}},
		{2, 1, 64, 64}:   {{keys: 96, groups: 2, per: 2, producer: 24, consumer: 240}},
		{2, 2, 128, 256}: {{keys: 64, groups: 2, per: 1, producer: 24, consumer: 240}},
	}[s] {
		name := fmt.Sprintf("%d keys, %d×%d maps, turns %v", o.keys, o.groups, o.per, o.turns)
		all = append(all, hopperVariant{name, o, k.back})
	}
	if k.tile.groups == 2 {
		turns := k.tile
		turns.turns = !turns.turns
		all = append(all, hopperVariant{fmt.Sprintf("turns %v", turns.turns), turns, k.back})
	}
	return all
}

// backwards are other ways to build the shape's backward kernel than the table's. Those that add in order come to the same bits.
func (s attnShape) backwards() (all []hopperBackward) {
	base := s.backward()
	try := []hopperBackward{base, base.copies(s)}
	if s == (attnShape{1, 1, 64, 64}) {
		wide := base
		wide.queries = 2 * unit
		try = append(try, wide, wide.copies(s))
	}
	if half := base.copies(s); half.copied < s.d/8 {
		half.rounds = 2
		try = append(try, half)
	}
	for _, quick := range []int{none, unordered} {
		b := base
		b.adds = quick
		try = append(try, b)
	}
	for _, b := range try {
		if b != hopperShapes[s].back {
			all = append(all, b)
		}
	}
	return all
}

// String names what differs from kernel to kernel.
func (t hopperBackward) String() string {
	if t.adds != ordered {
		return []string{"no adds", "unordered"}[t.adds]
	}
	return fmt.Sprintf("%d queries, %d×%d copied, %d dS, %d dO, fill %v, loop %v, held %v, skip %v", t.queries, t.rounds, t.copied, t.buffers, t.outs, t.fill, t.loop, t.held, t.skip)
}

// milliseconds is the median of five runs of f on the GPU, each the mean of a few.
func milliseconds(t *testing.T, d *Device, f func()) float64 {
	const few = 5
	var all []float64
	f()
	for range 6 {
		ms, err := d.Time(func() {
			for range few {
				f()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ms/few)
	}
	all = all[1:]
	sort.Float64s(all)
	return all[len(all)/2]
}

// TestHopperTimes prints a line for each variant of a shape: registers and spills, milliseconds and TFLOP/s of
// forward and backward, with the tiled kernels first. It takes ANTIPHASE_TEST_TIMES=1, and a GPU.
func TestHopperTimes(t *testing.T) {
	if os.Getenv("ANTIPHASE_TEST_TIMES") != "1" {
		t.Skip("a measurement: ANTIPHASE_TEST_TIMES=1 asks for it")
	}
	const tokens = 32768
	made := map[attnShape][]hopperKernels{}
	for _, s := range hopperOrder() {
		for _, v := range s.variants() {
			made[s] = append(made[s], s.hopperKernels(v.tile, v.back))
		}
	}
	d := gpu(t, nil) // after the variants: it knows the kernels that are registered
	for _, s := range hopperOrder() {
		width, lengths := 2048, []int{2048, 8192}
		if s.d == 64 {
			width, lengths = 768, []int{2048}
		}
		heads := width / s.d / s.keys
		for _, length := range lengths {
			t.Run(fmt.Sprintf("%d%d_%d_%d/T%d", s.maps, s.keys, s.d, s.dv, length), func(t *testing.T) {
				c := benchCall(t, d, s, tokens/length, length, heads)
				timeVariants(t, d, c, s, made[s])
				for _, x := range []tensor.Tensor{c.q, c.k, c.v, c.out, c.raw, c.out2, c.dout, c.dq, c.dk, c.dv} {
					if x.Ok() {
						d.Free(x.Buf)
					}
				}
			})
		}
	}
}

func timeVariants(t *testing.T, d *Device, c *attnCall, s attnShape, made []hopperKernels) {
	cells := float64(c.B*c.T) * float64(c.T+1) / 2 * float64(c.Heads)
	forward := 2 * cells * float64(s.maps*(s.d+s.dv)) / 1e9
	backward := 2 * cells * float64(s.maps*3*s.d+2*s.dv) / 1e9
	line := func(name string, f, b float64) {
		fmt.Printf("%d%d %3d %3d T%-6d %-32s fwd %7.3f ms %4.0f TF  bwd %7.3f ms %4.0f TF\n",
			s.maps, s.keys, s.d, s.dv, c.T, name, f, forward/f, b, backward/b)
	}
	restore := wgmma(d, false)
	line("mma", milliseconds(t, d, func() { d.attend(c) }), milliseconds(t, d, func() { d.attendBackward(c) }))
	restore()
	for i, v := range s.variants() {
		k := made[i]
		f := milliseconds(t, d, func() { d.forwardHopper(c, s, &k) })
		b := milliseconds(t, d, func() { d.backwardHopper(c, s, &k) })
		line(v.name, f, b)
		if i == 0 {
			for _, x := range []kernel{k.forward, k.backward} {
				u := d.drv.Usage(d.funcs[x].fn)
				fmt.Printf("   %s: %d registers, %d bytes local\n", registry[x].name, u.Registers, u.Local)
			}
		}
	}
}
