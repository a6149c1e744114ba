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
	adds int
}

// variants are the shape's table entry, the same with turns where two warpgroups consume, other tiles, and dQ's adds
// left out or taken as they come.
func (s attnShape) variants() []hopperVariant {
	t := hopperShapes[s].tile
	all := []hopperVariant{{"table", t, ordered}, {"no adds", t, none}, {"unordered", t, unordered}}
	for _, o := range map[attnShape][]hopperForward{
		{1, 1, 64, 64}:   {{128, 2, 1, 24, 240, false}, {128, 2, 1, 24, 240, true}},
		{2, 2, 64, 128}:  {{128, 2, 1, 24, 240, false}, {128, 2, 1, 24, 240, true}},
		{2, 1, 64, 64}:   {{96, 2, 2, 24, 240, false}},
		{2, 2, 128, 256}: {{64, 2, 1, 24, 240, false}},
	}[s] {
		name := fmt.Sprintf("%d keys, %d×%d maps, turns %v", o.keys, o.groups, o.per, o.turns)
		all = append(all, hopperVariant{name, o, ordered})
	}
	if t.groups == 2 {
		turns := t
		turns.turns = true
		all = append(all, hopperVariant{"turns", turns, ordered})
	}
	return all
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
			made[s] = append(made[s], s.hopperKernels(v.tile, v.adds))
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
	line("mma", milliseconds(t, d, func() { d.attend(c) }), milliseconds(t, d, func() { d.attendBackward(c) }))
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
