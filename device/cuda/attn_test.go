package cuda

import (
	"fmt"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// attnOn makes an attention of b sequences with everything that forward and backward hold; ld adds columns to each row
// of q.
func attnOn(d *Device, b, t, h, g, dd, dv, extra int, norm bool) (*device.Attn, *device.AttnGrad) {
	n := b * t
	a := &device.Attn{AttnShape: device.AttnShape{B: b, T: t, Heads: h, Groups: g, D: dd, DV: dv, Scale: 0.1},
		Q: on(d, tensor.BF16, n, h*dd, h*dd+extra), K: act(d, n, g*dd), V: act(d, n, g*dv), Out: act(d, n, h*dv),
		LSE: stat(d, n, h)}
	gr := &device.AttnGrad{DOut: act(d, n, h*dv), DQ: act(d, n, h*dd), DK: act(d, n, g*dd), DV: act(d, n, g*dv)}
	if norm {
		a.Norm = device.HeadNorm{On: true, Weight: act(d, 1, dv), Eps: 1e-5, Scale: 1}
		a.Raw, a.Rstd, gr.DNorm = act(d, n, h*dv), stat(d, n, h), stat(d, 1, dv)
	}
	return a, gr
}

// diffOn is attnOn for DIFF.
func diffOn(d *Device, b, t, h, g, dd, dv, keys int) (*device.DiffAttn, *device.DiffAttnGrad) {
	n := b * t
	a := &device.DiffAttn{AttnShape: device.AttnShape{B: b, T: t, Heads: h, Groups: g, D: dd, DV: dv, Scale: 0.1},
		Keys: keys, Q: act(d, n, 2*h*dd), K: act(d, n, g*keys*dd), V: act(d, n, g*dv), Lam: stat(d, 1, 1),
		Out: act(d, n, h*dv), Out2: act(d, n, h*dv), LSE: stat(d, n, 2*h)}
	return a, &device.DiffAttnGrad{DOut: act(d, n, h*dv), DQ: act(d, n, 2*h*dd), DK: act(d, n, g*keys*dd),
		DV: act(d, n, g*dv), DLam: stat(d, n, h)}
}

// TestAttnLaunches checks the attention ops against their geometry, as TestLaunches does the others.
func TestAttnLaunches(t *testing.T) {
	cached := func(d *Device, rows, pages int) (*device.Cache, tensor.Tensor, tensor.Tensor) {
		return &device.Cache{K: act(d, 16*pages, 2*2*64), V: act(d, 16*pages, 2*128),
			Table: on(d, tensor.I32, 4, pages, pages), PageSize: 16}, ints(d, rows), ints(d, rows)
	}
	for _, c := range []launchCase{
		{"attention", func(d *Device) { a, _ := attnOn(d, 2, 1000, 16, 4, 128, 128, 0, false); d.Attention(a) },
			[]string{"attention_forward 8,16,2 × 128 + 98304"}},
		{"attention on odd rows", func(d *Device) {
			a, _ := attnOn(d, 2, 100, 4, 4, 128, 128, 3, false)
			d.Attention(a)
		}, []string{"attention_general_forward 200,1,1 × 128 + 0"}},
		{"attention of another width", func(d *Device) {
			a, g := attnOn(d, 1, 10, 4, 2, 40, 40, 0, false)
			d.Attention(a)
			d.AttentionBackward(a, g)
		}, []string{"attention_general_forward 10,1,1 × 128 + 0", "attention_prepare 4,1,1 × 256 + 0",
			"attention_general_queries 10,1,1 × 128 + 0", "attention_general_keys 5,1,1 × 128 + 0"}},
		{"attention backward", func(d *Device) {
			a, g := attnOn(d, 2, 1000, 16, 4, 128, 128, 0, true)
			d.AttentionBackward(a, g)
		}, []string{"attention_prepare 16,8,2 × 256 + 0", "attention_norm 4,1,1 × 1024 + 0",
			"attention_backward 64,1,1 × 256 + 164864", "attention_queries 16,16,2 × 256 + 0"}},
		{"attention backward of narrow heads",
			func(d *Device) { a, g := attnOn(d, 1, 1000, 2, 2, 64, 64, 0, false); d.AttentionBackward(a, g) },
			[]string{"attention_prepare 2,8,1 × 256 + 0", "attention_backward 16,1,1 × 128 + 82944",
				"attention_queries 16,2,1 × 128 + 0"}},
		{"diffattention V1", func(d *Device) {
			a, g := diffOn(d, 4, 8192, 8, 8, 128, 256, 2)
			d.DiffAttention(a)
			d.DiffAttentionBackward(a, g)
		}, []string{"diffattention_forward 128,8,4 × 256 + 164864", "attention_prepare 8,64,4 × 256 + 0",
			"diffattention_backward 4096,1,1 × 256 + 225280", "diffattention_queries 128,8,4 × 256 + 0"}},
		{"diffattention V2", func(d *Device) {
			a, g := diffOn(d, 1, 130, 4, 2, 128, 128, 1)
			d.DiffAttention(a)
			d.DiffAttentionBackward(a, g)
		}, []string{"diffattention_forward 2,4,1 × 256 + 169984", "attention_prepare 4,2,1 × 256 + 0",
			"diffattention_backward 4,1,1 × 256 + 217088", "diffattention_queries 3,4,1 × 256 + 0"}},
		{"diffattention cached", func(d *Device) {
			cache, slot, pos := cached(d, 3, 20)
			a, _ := diffOn(d, 1, 3, 4, 2, 64, 128, 2)
			d.DiffAttentionCached(a, cache, slot, pos)
		}, []string{"diffattention_split 2,3,3 × 256 + 72384", "diffattention_join 4,3,1 × 384 + 6168"}},
		{"cache write", func(d *Device) {
			cache, slot, pos := cached(d, 5, 20)
			d.CacheWrite(cache, act(d, 5, 256), act(d, 5, 256), slot, pos)
		}, []string{"cache_write 5,1,1 × 128 + 0"}},
		{"probs", func(d *Device) {
			d.AttentionProbs(stat(d, 7, 50), act(d, 100, 128), act(d, 100, 64),
				device.Probs{T: 50, D: 64, Seq: 1, Row: 3, QHead: 1, Scale: 1})
		}, []string{"attention_probs 7,1,1 × 256 + 0"}},
	} {
		d, drv := fakeDevice(t)
		c.holds(t, d, drv)
	}
}

// Every launch gives its kernel as many arguments as it has parameters.
func TestAttnArguments(t *testing.T) {
	params := allParams(t)
	d, drv := fakeDevice(t)
	for _, width := range []int{40, 64} {
		a, g := attnOn(d, 1, 10, 2, 1, width, width, 0, true)
		d.Attention(a)
		d.AttentionBackward(a, g)
		b, h := diffOn(d, 1, 10, 2, 1, width, 2*width, 2)
		d.DiffAttention(b)
		d.DiffAttentionBackward(b, h)
		cache := &device.Cache{K: act(d, 64, 2*width), V: act(d, 64, 2*width), Table: ints(d, 4), PageSize: 16}
		d.DiffAttentionCached(b, cache, ints(d, 10), ints(d, 10))
		d.CacheWrite(cache, act(d, 3, 2*width), act(d, 3, 2*width), ints(d, 3), ints(d, 3))
		cache.K, cache.V = act(d, 64, width), act(d, 64, width)
		d.AttentionCached(a, cache, ints(d, 10), ints(d, 10))
		d.AttentionProbs(stat(d, 10, 10), a.Q, a.K, device.Probs{T: 10, D: width, Scale: 1})
	}
	if len(drv.Launches) < 20 {
		t.Errorf("%d launches", len(drv.Launches))
	}
	for _, l := range drv.Launches {
		if len(l.Args) != params[l.Kernel] {
			t.Errorf("%s got %d arguments for %d parameters", l.Kernel, len(l.Args), params[l.Kernel])
		}
	}
}

// Every tiled shape fits the shared memory of one block, and its warps' sums fit the registers.
func TestAttnShapes(t *testing.T) {
	for s := range attnShapes {
		_, _, forward := s.forward().sizes(s)
		tile := s.backwardTile()
		keys, backward := tile.keys, tile.shared(s)
		if most := 227<<10 - 1024; forward > most || backward > most {
			t.Errorf("%+v wants %d and %d bytes of shared memory", s, forward, backward)
		}
		if sums := keys * (s.keys*s.d + s.dv) / (32 * tile.warps); sums > 128 {
			t.Errorf("%+v keeps %d sums in a thread", s, sums)
		}
	}
}

// A long prompt comes in pieces that fit the scratch memory, and every row once.
func TestCachedPieces(t *testing.T) {
	d, drv := fakeDevice(t)
	rows, pages := 5000, 512
	a, _ := diffOn(d, 1, rows, 4, 2, 64, 128, 2)
	cache := &device.Cache{K: act(d, 64*pages, 256), V: act(d, 64*pages, 256),
		Table: on(d, tensor.I32, 1, pages, pages), PageSize: 64}
	d.DiffAttentionCached(a, cache, ints(d, rows), ints(d, rows))
	done := 0
	for i := 0; i < len(drv.Launches); i += 2 {
		split, join := drv.Launches[i], drv.Launches[i+1]
		if split.Args[0] != ptr(a.Q)+uint64(done*a.Q.Ld*2) || join.Args[5] != ptr(a.Out)+uint64(done*a.Out.Ld*2) ||
			split.Grid.Z != join.Grid.Y {
			t.Errorf("piece %d does not begin at row %d", i/2, done)
		}
		done += split.Grid.Z
	}
	if done != rows || len(drv.Launches) < 4 || d.room.size > splitRoom*9/8 {
		t.Errorf("%d rows in %d launches with %d bytes of scratch memory", done, len(drv.Launches), d.room.size)
	}
}

// Heads that no kernel holds are refused with their shape.
func TestAttnTooWide(t *testing.T) {
	d, _ := fakeDevice(t)
	a, _ := attnOn(d, 1, 2, 1, 1, 258, 258, 0, false)
	defer func() {
		if r := fmt.Sprint(recover()); !strings.Contains(r, "D=258") {
			t.Errorf("panic %s", r)
		}
	}()
	d.Attention(a)
}
