package cuda

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"antiphase/tensor"
)

// hopperVariant is another way to build a shape's kernels, timed beside the table's.
type hopperVariant struct {
	name string
	tile hopperForward
	back hopperBackward
}

// variants are the shape's table entry, the same with turns or without where two warpgroups consume, other tiles, and
// dQ's adds left out, taken as they come, or made by the copy engine.
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
		{2, 1, 64, 64}: {{keys: 96, groups: 2, per: 2, producer: 24, consumer: 240}},
		{1, 1, 96, 96}: {{keys: 128, groups: 2, per: 1, producer: 24, consumer: 240, loop: true},
			{keys: 128, groups: 2, per: 1, producer: 24, consumer: 240, turns: true, loop: true}},
		{2, 1, 96, 96}: {{keys: 96, groups: 2, per: 2, producer: 24, consumer: 240, loop: true},
			{keys: 96, groups: 2, per: 2, producer: 24, consumer: 240, turns: true, loop: true}},
		{2, 2, 128, 256}: {{keys: 64, groups: 2, per: 1, producer: 24, consumer: 240}},
	}[s] {
		name := fmt.Sprintf("%d keys, %d×%d maps, turns %v, loop %v", o.keys, o.groups, o.per, o.turns, o.loop)
		all = append(all, hopperVariant{name, o, k.back})
	}
	if k.tile.groups == 2 {
		turns := k.tile
		turns.turns = !turns.turns
		all = append(all, hopperVariant{fmt.Sprintf("turns %v", turns.turns), turns, k.back})
	}
	return all
}

// backwards are other ways to build the shape's backward kernel than the table's. Those that add in order come to the
// same bits.
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
	if s.d == 96 {
		loop := base.copies(s)
		loop.loop = true
		try = append(try, loop)
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
	return fmt.Sprintf("%d queries, %d×%d copied, %d dS, %d dO, fill %v, loop %v, held %v, skip %v", t.queries,
		t.rounds, t.copied, t.buffers, t.outs, t.fill, t.loop, t.held, t.skip)
}

// TestHopperTimes times the variants of a shape and the tiled kernels in turns: a line for each has the medians of all
// rounds, milliseconds forward and backward, with the least and the most. A forward pass comes behind another variant's
// backward pass, so times depend on which variants are timed together: those of one run compare, those of two may not.
// It takes ANTIPHASE_TEST_TIMES=1, and a GPU; ANTIPHASE_TEST_VARIANTS is a pattern of the names to time.
func TestHopperTimes(t *testing.T) {
	if os.Getenv("ANTIPHASE_TEST_TIMES") != "1" {
		t.Skip("a measurement: ANTIPHASE_TEST_TIMES=1 asks for it")
	}
	const tokens = 32768
	only := regexp.MustCompile(os.Getenv("ANTIPHASE_TEST_VARIANTS"))
	made := map[attnShape][]hopperKernels{}
	for _, s := range hopperOrder() {
		for _, v := range s.variants() {
			made[s] = append(made[s], s.hopperKernels(v.tile, v.back))
		}
	}
	d := gpu(t, nil) // after the variants: it knows the kernels that are registered
	for _, s := range hopperOrder() {
		width, lengths := 2048, []int{2048, 8192, 32768, 65536}
		switch s.d { // as 160m and 830m have them
		case 64:
			width, lengths = 768, []int{2048, 8192, 32768, 65536}
		case 96:
			width, lengths = 1536, []int{2048}
		}
		for _, length := range lengths {
			t.Run(fmt.Sprintf("%v/T%d", s, length), func(t *testing.T) {
				c := benchCall(t, d, s, max(1, tokens/length), length, width/s.d/s.keys)
				timeVariants(t, d, c, s, timedOf(d, c, s, made[s], only))
				for _, x := range []tensor.Tensor{c.q, c.k, c.v, c.out, c.raw, c.out2, c.dout, c.dq, c.dk, c.dv} {
					if x.Ok() {
						d.Free(x.Buf)
					}
				}
			})
		}
	}
}

// timedOf are the tiled kernels and the shape's variants, of names that match.
func timedOf(d *Device, c *attnCall, s attnShape, made []hopperKernels, only *regexp.Regexp) (all []*timed) {
	add := func(name string, forward, backward func()) {
		if only.MatchString(name) {
			all = append(all, &timed{name: name, pass: []func(){forward, backward}})
		}
	}
	tiled := func(f func(*attnCall)) func() {
		return func() {
			defer wgmma(d, false)()
			f(c)
		}
	}
	add("mma", tiled(d.attend), tiled(d.attendBackward))
	for i, v := range s.variants() {
		k := &made[i]
		add(v.name, func() { d.forwardHopper(c, s, k) }, func() { d.backwardHopper(c, s, k) })
	}
	return all
}

func timeVariants(t *testing.T, d *Device, c *attnCall, s attnShape, all []*timed) {
	timeInTurns(t, d.Time, all)
	for _, x := range all {
		f, b := x.ms[0], x.ms[1]
		n := len(f)
		fmt.Printf("%v T%d %-60s forward %.3f (%.3f-%.3f) backward %.3f (%.3f-%.3f) sum %.3f ms\n", s, c.T, x.name,
			f[n/2], f[0], f[n-1], b[n/2], b[0], b[n-1], f[n/2]+b[n/2])
	}
}
