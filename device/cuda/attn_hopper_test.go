package cuda

import (
	"bytes"
	"fmt"
	"testing"

	"antiphase/device/devicetest"
	"antiphase/tensor"
)

// wgmma selects the Hopper kernels or the tiled ones until the function that it returns is called.
func wgmma(d *Device, on bool) func() {
	was := d.wgmma
	d.wgmma = on
	return func() { d.wgmma = was }
}

// hopperAgrees wants the Hopper kernels' results within bf16's error of the general kernels'.
func hopperAgrees(t *testing.T, d *Device, s attnShape, b, rows int) {
	t.Helper()
	defer wgmma(d, true)()
	c := newTiledCase(d, s, b, rows, 0)
	if _, _, ok := c.hopper(d.machine); !ok {
		t.Fatalf("%+v has no Hopper kernels", s)
	}
	c.free()
	tiledAgrees(t, d, s, b, rows)
}

func (s attnShape) String() string { return fmt.Sprintf("%d%d_%d_%d", s.maps, s.keys, s.d, s.dv) }

// hopperOrder are the shapes with Hopper kernels in one order.
func hopperOrder() (all []attnShape) {
	for _, s := range tiledShapes() {
		if _, ok := hopperShapes[s]; ok {
			all = append(all, s)
		}
	}
	return all
}

// Every shape fits an SM: shared memory of a block, accumulators and fragments of a consumer's thread, and the
// registers that its warpgroups share after setmaxnreg.
func TestHopperShapes(t *testing.T) {
	for s, k := range hopperShapes {
		f := k.tile
		if f.shared(s, false) > mostShared {
			t.Errorf("%+v: forward wants %d bytes of shared memory", s, f.shared(s, false))
		}
		if held := f.per*s.dv/2 + f.keys/2 + f.keys/4; held > f.consumer*9/10 {
			t.Errorf("%+v: forward holds %d of %d registers", s, held, f.consumer)
		}
		b := k.back
		for _, b := range s.backwards() {
			if b.shared(s) > mostShared {
				t.Errorf("%+v: backward %+v wants %d bytes of shared memory", s, b, b.shared(s))
			}
		}
		if sums := b.keys() * (s.keys*s.d + s.dv) / 256; sums > 128 {
			t.Errorf("%+v: backward keeps %d sums in a thread", s, sums)
		}
		if entry := 65536 / f.threads() &^ 7; f.producer+f.groups*f.consumer > (1+f.groups)*entry {
			t.Errorf("%+v: forward redistributes more than the %d registers that each of %d threads begins with", s,
				entry, f.threads())
		}
	}
}

// TestHopperLaunches checks the launchers against their geometry, as TestLaunches does the others.
func TestHopperLaunches(t *testing.T) {
	for _, c := range []launchCase{
		{"plain", func(d *Device) { a, _ := attnOn(d, 2, 1000, 16, 4, 128, 128, 0, false); d.Attention(a) },
			[]string{"attn_hopper_forward 132,1,1 × 384 + 163960"}},
		{"plain, narrow heads", func(d *Device) { a, _ := attnOn(d, 2, 1000, 16, 4, 64, 64, 0, true); d.Attention(a) },
			[]string{"attn_hopper_forward 132,1,1 × 512 + 90232"}},
		{"odd rows", func(d *Device) { a, _ := attnOn(d, 2, 100, 4, 4, 128, 128, 3, false); d.Attention(a) },
			[]string{"attention_general_forward 200,1,1 × 128 + 0"}},
		{"plain backward", func(d *Device) {
			a, g := attnOn(d, 2, 1000, 16, 4, 128, 128, 0, true)
			d.AttentionBackward(a, g)
		},
			[]string{"attention_prepare 16,8,2 × 256 + 0", "attention_norm 4,1,1 × 1024 + 0",
				"attn_hopper_backward 64,1,1 × 384 + 230480", "attn_hopper_queries 16,16,2 × 128 + 0"}},
		{"V1", func(d *Device) {
			a, g := diffOn(d, 4, 8192, 8, 8, 128, 256, 2)
			d.DiffAttention(a)
			d.DiffAttentionBackward(a, g)
		}, []string{"attn_hopper_forward 128,8,4 × 384 + 229448", "attention_prepare 8,64,4 × 256 + 0",
			"attn_hopper_backward 4096,1,1 × 384 + 232000", "attn_hopper_queries 128,8,4 × 256 + 0"}},
		{"V2", func(d *Device) {
			a, g := diffOn(d, 1, 130, 4, 2, 64, 64, 1)
			d.DiffAttention(a)
			d.DiffAttentionBackward(a, g)
		}, []string{"attn_hopper_forward 8,1,1 × 384 + 98424", "attention_prepare 4,2,1 × 256 + 0",
			"attn_hopper_backward 4,1,1 × 384 + 215632", "attn_hopper_queries 3,4,1 × 256 + 0"}},
		{"V2, wide heads", func(d *Device) {
			a, g := diffOn(d, 2, 8192, 8, 8, 128, 128, 1)
			d.DiffAttentionBackward(a, g)
		}, []string{"attention_prepare 8,64,2 × 256 + 0", "attn_hopper_backward 132,1,1 × 384 + 232056",
			"attn_hopper_queries 128,8,2 × 256 + 0"}},
	} {
		d, drv := fakeDevice(t)
		d.wgmma = true
		c.holds(t, d, drv)
	}
}

// The choice of kernels is refused where it cannot be had.
func TestChooseAttention(t *testing.T) {
	d, _ := fakeDevice(t)
	if err := d.chooseAttention("wgmma"); err != nil || !d.wgmma {
		t.Errorf("wgmma on Hopper: %v", err)
	}
	if err := d.chooseAttention("mma"); err != nil || d.wgmma {
		t.Errorf("mma on Hopper: %v", err)
	}
	if err := d.chooseAttention(""); err != nil || !d.wgmma {
		t.Errorf("the default on Hopper is wgmma: %v", err)
	}
	if err := d.chooseAttention("wmma"); err == nil {
		t.Error("an unknown name passes")
	}
	if d.info.Major = 8; d.chooseAttention("wgmma") == nil {
		t.Error("wgmma passes on Ampere")
	}
	if err := d.chooseAttention(""); err != nil || d.wgmma {
		t.Errorf("the default on Ampere is mma: %v", err)
	}
}

// TestHopperBuild builds the Hopper kernels and shows what each costs.
func TestHopperBuild(t *testing.T) {
	d := gpu(t, func(line string) { t.Log(line) })
	for k, r := range registry {
		if !r.hopper || d.info.Major != 9 {
			continue
		}
		if err := d.load(kernel(k)); err != nil {
			t.Error(err)
			continue
		}
		u := d.drv.Usage(d.funcs[k].fn)
		t.Logf("%-22s %-60.60s %3d registers %4d bytes local", r.name, r.options, u.Registers, u.Local)
	}
}

// TestAttnConformance checks both kinds of kernels against attention's contract on a GPU.
func TestAttnConformance(t *testing.T) {
	d := gpu(t, nil)
	for _, kind := range []string{"mma", "wgmma"} {
		t.Run(kind, func(t *testing.T) {
			if err := d.chooseAttention(kind); err != nil {
				t.Skip(err)
			}
			devicetest.RunOps(t, d, "attention", "diffattention")
		})
	}
}

// TestAttnHopper runs every Hopper shape on a GPU, at lengths of many tiles with a rest.
func TestAttnHopper(t *testing.T) {
	d := gpu(t, nil)
	if d.info.Major != 9 {
		t.Skipf("%s is no Hopper", d.Name())
	}
	for _, s := range hopperOrder() {
		t.Run(s.String(), func(t *testing.T) {
			hopperAgrees(t, d, s, 2, 1000)
			hopperAgrees(t, d, s, 1, 130)
		})
	}
}

// sameForward wants the bits of the table's forward kernel from another.
func sameForward(t *testing.T, d *Device, s attnShape, k *hopperKernels, rows int) {
	t.Helper()
	defer wgmma(d, true)()
	c := newTiledCase(d, s, 1, rows, 0)
	defer c.free()
	d.attend(&c.attnCall)
	want := read(d, c.out, c.raw, c.lse)
	for _, x := range []tensor.Tensor{c.out, c.raw, c.lse} {
		d.Zero(x)
	}
	d.forwardHopper(&c.attnCall, s, k)
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(d, c.out, c.raw, c.lse), want) {
		t.Errorf("%+v: %+v comes to other bits than the table's %+v", s, k.tile, hopperShapes[s].tile)
	}
}

// madeBackwards registers the ways to build backward kernels that add in order.
func madeBackwards(shapes []attnShape) map[attnShape][]hopperKernels {
	made := map[attnShape][]hopperKernels{}
	for _, s := range shapes {
		for _, b := range s.backwards() {
			if b.adds == ordered {
				k := hopperShapes[s]
				options := b.options(s)
				k.back = b
				k.backward, k.queries = hopperOf("attn_hopper_backward", "attn_hopper_backward", options...),
					hopperOf("attn_hopper_backward", "attn_hopper_queries", options...)
				made[s] = append(made[s], k)
			}
		}
	}
	return made
}

// sameBackwards wants the bits of the table's backward kernel from others.
func sameBackwards(t *testing.T, d *Device, s attnShape, made []hopperKernels, rows int) {
	t.Helper()
	defer wgmma(d, true)()
	c := newTiledCase(d, s, 1, rows, 0)
	defer c.free()
	d.attend(&c.attnCall)
	d.attendBackward(&c.attnCall)
	want := read(d, c.dq, c.dk, c.dv)
	for _, k := range made {
		for _, x := range []tensor.Tensor{c.dq, c.dk, c.dv} {
			d.Zero(x)
		}
		d.backwardHopper(&c.attnCall, s, &k)
		if err := d.Sync(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(read(d, c.dq, c.dk, c.dv), want) {
			t.Errorf("%+v: %v comes to other bits than the table's %v", s, k.back, hopperShapes[s].back)
		}
	}
}

// TestHopperBackwards compares all ways to add to dQ on a GPU.
func TestHopperBackwards(t *testing.T) {
	made := madeBackwards(hopperOrder())
	d := gpu(t, nil) // after the kernels: it knows those that are registered
	if d.info.Major != 9 {
		t.Skipf("%s is no Hopper", d.Name())
	}
	for _, s := range hopperOrder() {
		t.Run(s.String(), func(t *testing.T) { sameBackwards(t, d, s, made[s], 1000) })
	}
}
