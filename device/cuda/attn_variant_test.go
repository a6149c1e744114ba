package cuda

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"antiphase/device"
	"antiphase/internal/cu"
	"antiphase/tensor"
)

// variant is one way to do the main part of the backward pass. keys makes dK and dV, and dQ too unless rows does.
type variant struct {
	name   string
	keys   string // options of attn_backward.cuh
	rows   string // options of attn_split.cuh, which makes dQ by its second kernel; "" for none
	split  bool   // attn_split.cuh makes dK and dV too, where they fit
	narrow bool   // and does so in blocks of four warps
	twin   bool   // small tiles, two blocks per SM
	wide   bool   // 16 warps
	right  bool   // dQ is right; otherwise only the time means something
}

var variants = []variant{
	{name: "as-is", right: true},
	{name: "late", keys: "-DEARLY=0 -DAHEAD=1", right: true},
	{name: "no-adds", keys: "-DADDS=1 -DEARLY=0 -DAHEAD=1"},
	{name: "unordered", keys: "-DADDS=2 -DEARLY=0 -DAHEAD=1"},
	{name: "rows", keys: "-DADDS=0 -DEARLY=0 -DAHEAD=1", rows: "-DSPLIT -DAHEAD=1", right: true},
	{name: "no-ahead", keys: "-DAHEAD=0 -DEARLY=0", right: true},
	{name: "early", keys: "-DEARLY=1 -DAHEAD=1", right: true},
	{name: "rows-no-ahead", keys: "-DADDS=0 -DAHEAD=0 -DEARLY=0", rows: "-DSPLIT -DAHEAD=0", right: true},
	{name: "split", keys: "-DADDS=0 -DEARLY=0 -DAHEAD=1", rows: "-DSPLIT -DAHEAD=1", split: true, right: true},
	{name: "split-no-ahead", keys: "-DADDS=0 -DAHEAD=0 -DEARLY=0", rows: "-DSPLIT -DAHEAD=0", split: true, right: true},
	{name: "split-narrow", keys: "-DADDS=0 -DEARLY=0 -DAHEAD=1", rows: "-DSPLIT -DNARROW=1 -DAHEAD=1", split: true, narrow: true, right: true},
	{name: "wide", keys: "-DWIDE=1 -DEARLY=0 -DAHEAD=1", wide: true, right: true},
	{name: "wide-early", keys: "-DWIDE=1 -DEARLY=1 -DAHEAD=1", wide: true, right: true},
	{name: "wide-early-no-ahead", keys: "-DWIDE=1 -DEARLY=1 -DAHEAD=0", wide: true, right: true},
	{name: "wide-no-adds", keys: "-DWIDE=1 -DADDS=1 -DEARLY=0 -DAHEAD=1", wide: true},
	{name: "wide-rows", keys: "-DWIDE=1 -DADDS=0 -DEARLY=0 -DAHEAD=1", rows: "-DSPLIT -DAHEAD=1", wide: true, right: true},
	{name: "twin", keys: "-DTWIN=1 -DEARLY=0 -DAHEAD=1", twin: true, right: true},
	{name: "twin-early", keys: "-DTWIN=1 -DEARLY=1 -DAHEAD=1", twin: true, right: true},
	{name: "twin-rows", keys: "-DADDS=0 -DTWIN=1 -DEARLY=0 -DAHEAD=1", rows: "-DSPLIT -DAHEAD=1", twin: true, right: true},
}

// Parts of a variant's work, to be timed alone.
const (
	partPrepare = 1 << iota
	partKeys
	partRows
	all = partPrepare | partKeys | partRows
)

func variantShapes() []attnShape {
	return []attnShape{{1, 1, 64, 64}, {2, 2, 64, 128}, {2, 1, 64, 64}, {1, 1, 128, 128}, {2, 2, 128, 256}, {2, 1, 128, 128}}
}

// splitFits: a warp holds dK and dV of 16 keys.
func (s attnShape) splitFits() bool { return s.keys*s.d+s.dv <= 256 }

// rowsTile is the geometry of attn_split.cuh's dQ: threads, shared memory. Blocks take 128 rows.
func (s attnShape) rowsTile() (threads, shared int) {
	threads, stats, step := 128, 2, 32
	if s.maps*s.d > 128 {
		threads = 256
	}
	if s.maps == 2 {
		stats = 8
	}
	if s.maps == 1 && s.d == 64 || s.maps == 2 && s.keys == 1 && threads == 256 {
		step = 64
	}
	return threads, 128*(s.maps*s.d+s.dv)*2 + 128*stats*4 + 2*step*(s.keys*s.d+s.dv)*2
}

// keysTile is that of its dK and dV: keys of a block, threads, shared memory.
func (s attnShape) keysTile(narrow bool) (keys, threads, shared int) {
	threads, stats, step, fragments := 256, 2, 64, 1
	if s.d <= 64 || narrow {
		threads = 128
	}
	if narrow && s.maps == 2 {
		step = 32
	}
	if s.keys*s.d+s.dv <= 128 {
		step, fragments = 32, 2
	}
	if s.maps == 2 {
		stats = 8
	}
	keys = 16 * fragments * threads / 32
	return keys, threads, keys*(s.keys*s.d+s.dv)*2 + 2*(step*(s.maps*s.d+s.dv)*2+step*stats*4)
}

// twinTile is backwardTile with tiles of 64 × 64.
func (s attnShape) twinTile() (rows, keys, stats, shared int) {
	rows, keys, stats = 64, 64, 2
	if s.maps == 2 {
		stats = 8
	}
	return rows, keys, stats, keys*(s.keys*s.d+s.dv)*2 + 2*(rows*(s.maps*s.d+s.dv)*2+rows*stats*4) + (1+s.maps)*rows*keys*2
}

// has leaves out twins that do not fit an SM twice, and what would be another variant again.
func (v *variant) has(s attnShape) bool {
	_, _, _, shared := s.twinTile()
	if v.narrow && !s.splitFits() {
		return false
	}
	return !v.twin || shared <= 113<<10 && s.keys*s.d+s.dv <= 128
}

// variantKernels registers all of them, at the first call: before the device is made.
var variantKernels = sync.OnceValue(func() map[string]kernel {
	built := map[string]kernel{}
	add := func(s attnShape, options, name string) {
		if key := s.key(options, name); options != "" {
			if _, ok := built[key]; !ok {
				unit, shape := s.unit()
				built[key] = kernelOf(unit+"_backward", unit+"_"+name, strings.Fields(shape+" "+options)...)
			}
		}
	}
	for _, s := range variantShapes() {
		for _, v := range variants {
			if !v.has(s) {
				continue
			}
			add(s, v.keys, "backward")
			add(s, v.keys, "queries")
			add(s, v.rows, "rows")
			if s.splitFits() {
				add(s, v.rows, "keys")
			}
		}
	}
	return built
})

// unit is the shape's unit and its options.
func (s attnShape) unit() (unit, options string) {
	unit, options = "attention", fmt.Sprintf("-DHEAD=%d -DVALUE=%d", s.d, s.dv)
	if s.maps == 2 {
		unit, options = "diffattention", options+fmt.Sprintf(" -DKEYS=%d", s.keys)
	}
	return unit, options
}

func (s attnShape) key(options, name string) string { return fmt.Sprint(s, options, name) }

// kernels finds the variant's: what makes dK and dV, what makes dQ or turns its sums into rows.
func (v *variant) kernels(s attnShape, built map[string]kernel) (keys, rows kernel) {
	keys, rows = attnShapes[s].backward, attnShapes[s].queries
	if v.keys != "" {
		keys, rows = built[s.key(v.keys, "backward")], built[s.key(v.keys, "queries")]
	}
	if v.rows != "" {
		rows = built[s.key(v.rows, "rows")]
	}
	if v.split && s.splitFits() {
		keys = built[s.key(v.rows, "keys")]
	}
	return keys, rows
}

// run does some parts of the variant's backward pass, as attendBackward does.
func (v *variant) run(d *Device, c *attnCall, built map[string]kernel, parts int) {
	s := attnShape{c.maps, c.keys, c.D, c.DV}
	split := v.split && s.splitFits()
	rows, keys, stats, shared := s.backwardTile()
	if v.twin {
		rows, keys, stats, shared = s.twinTile()
	}
	tiles, pad := ceil(c.T, rows), ceil(c.T, rows)*rows
	if split {
		pad = ceil(c.T, 128) * 128
	}
	room, warps := c.room(pad, stats, tiles), 8
	if v.wide {
		warps = 16
		room.counters = c.B*c.Heads*tiles*warps + 1
	}
	_, size := room.carve(c, 0)
	m, _ := room.carve(c, d.scratch(size))
	if parts&partPrepare != 0 {
		d.prepare(c, &room, &m)
	}
	o, ldo := ptr(c.dout), c.dout.Ld
	if c.norm.On {
		o, ldo = m.grad, c.Heads*c.DV
	}
	dkv, dq := v.kernels(s, built)
	switch {
	case parts&partKeys == 0:
	case split:
		keys, threads, shared := s.keysTile(v.narrow)
		d.launch(dkv, dim3(ceil(c.T, keys), c.Groups, c.B), dim1(threads), shared,
			ptr(c.q), ptr(c.k), ptr(c.v), o, ptr(c.start), m.stats, ptr(c.dk), ptr(c.dv),
			i32(c.q.Ld), i32(c.k.Ld), i32(c.v.Ld), i32(ldo), i32(c.dk.Ld), i32(c.dv.Ld), i32(c.T), i32(c.Heads), i32(c.Groups), i32(pad), f32(c.Scale))
	default:
		d.fail(d.drv.Clear(cu.Block{Addr: uintptr(m.count), Rows: 1, Width: room.counters * 4, Pitch: room.counters * 4}))
		d.launch(dkv, dim1(ceil(c.T, keys)*c.B*c.Groups), dim1(32*warps), shared,
			ptr(c.q), ptr(c.k), ptr(c.v), o, ptr(c.start), m.stats, m.sums, m.count, m.count+uint64(room.counters-1)*4, ptr(c.dk), ptr(c.dv),
			i32(c.q.Ld), i32(c.k.Ld), i32(c.v.Ld), i32(ldo), i32(c.dk.Ld), i32(c.dv.Ld), i32(c.T), i32(c.Heads), i32(c.Groups), f32(c.Scale))
	}
	switch {
	case parts&partRows == 0:
	case v.rows != "":
		threads, shared := s.rowsTile()
		d.launch(dq, dim3(ceil(c.T, 128), c.Heads, c.B), dim1(threads), shared,
			ptr(c.q), ptr(c.k), ptr(c.v), o, ptr(c.start), m.stats, ptr(c.dq),
			i32(c.q.Ld), i32(c.k.Ld), i32(c.v.Ld), i32(ldo), i32(c.dq.Ld), i32(c.T), i32(c.Heads), i32(c.Groups), i32(pad), f32(c.Scale))
	default:
		d.launch(dq, dim3(room.tiles, c.Heads, c.B), dim1(32*warps), 0,
			m.sums, ptr(c.dq), i32(c.dq.Ld), i32(c.T), i32(c.Heads), f32(c.Scale))
	}
}

// TestBackwardVariants holds them to the general kernels on a GPU, and to the same bits in a second run.
func TestBackwardVariants(t *testing.T) {
	d := gpu(t, nil)
	built := variantKernels()
	d.funcs = append(d.funcs, make([]loaded, len(registry)-len(d.funcs))...)
	for _, s := range variantShapes() {
		for _, v := range variants {
			if v.right && v.has(s) {
				t.Run(fmt.Sprintf("%s/%d-%d-%d-%d", v.name, s.maps, s.keys, s.d, s.dv), func(t *testing.T) {
					tiledAgrees(t, d, s, 2, 1000, func(c *attnCall) { v.run(d, c, built, all) })
				})
			}
		}
	}
}

// median times f five times on the GPU after a first one, in µs.
func median(b *testing.B, d *Device, f func()) float64 {
	f()
	if err := d.Sync(); err != nil {
		b.Fatal(err)
	}
	var us [5]float64
	for i := range us {
		ms, err := d.Time(f)
		if err != nil {
			b.Fatal(err)
		}
		us[i] = ms * 1e3
	}
	slices.Sort(us[:])
	return us[2]
}

// sample reads some rows of dQ, dK and dV from all over.
func sample(d *Device, c *attnCall) (v []float64) {
	for _, x := range []tensor.Tensor{c.dq, c.dk, c.dv} {
		for i := range 8 {
			at := min(i*x.Rows/7, x.Rows-40)
			part := make([]float64, 40*x.Cols)
			device.ReadFloats(d, part, x.RowRange(at, at+40))
			v = append(v, part...)
		}
	}
	return v
}

// BenchmarkBackwardVariants prints one table: GPU µs of the whole backward pass and of its parts, the distance of its results
// from those as they are, registers and spilled bytes. It is run once, with -benchtime=1x. ANTIPHASE_CUDA_VARIANT may name some
// of them, separated by commas.
func BenchmarkBackwardVariants(b *testing.B) {
	const tokens = 32768
	only, some := os.LookupEnv("ANTIPHASE_CUDA_VARIANT")
	built := variantKernels()
	d := gpu(b, nil)
	fmt.Printf("\n%-18s %-6s %-20s %8s %8s %8s %8s %9s  %s\n", "shape", "op", "variant", "total", "prepare", "keys", "rows", "distance", "registers/spilled keys, rows")
	for _, s := range []struct{ width, head, t int }{{2048, 128, 8192}, {2048, 128, 2048}, {768, 64, 2048}} {
		heads := s.width / s.head
		for _, k := range []struct {
			name  string
			heads int
			shape attnShape
		}{{"plain", heads, attnShape{1, 1, s.head, s.head}}, {"diff", heads / 2, attnShape{2, 2, s.head, 2 * s.head}}, {"diff2", heads, attnShape{2, 1, s.head, s.head}}} {
			c := benchCall(b, d, k.shape, tokens/s.t, s.t, k.heads)
			d.attend(c)
			var want []float64
			for _, v := range variants {
				if !v.has(k.shape) || some && !slices.Contains(strings.Split(only, ","), v.name) {
					continue
				}
				total := median(b, d, func() { v.run(d, c, built, all) })
				got := sample(d, c)
				if want == nil {
					want = got
				}
				diff, size := 0.0, 0.0
				for i, w := range want {
					diff, size = diff+(got[i]-w)*(got[i]-w), size+w*w
				}
				var part [3]float64
				for i := range part {
					part[i] = median(b, d, func() { v.run(d, c, built, 1<<i) })
				}
				dkv, dq := v.kernels(k.shape, built)
				u, w := d.drv.Usage(d.funcs[dkv].fn), d.drv.Usage(d.funcs[dq].fn)
				fmt.Printf("%4d/%-3d T%-8d %-6s %-20s %8.0f %8.0f %8.0f %8.0f %9.1e  %d/%d, %d/%d\n", s.width, s.head, s.t, k.name, v.name,
					total, part[0], part[1], part[2], math.Sqrt(diff/size), u.Registers, u.Local, w.Registers, w.Local)
			}
			for _, x := range []tensor.Tensor{c.q, c.k, c.v, c.out, c.raw, c.out2, c.dout, c.dq, c.dk, c.dv} {
				if x.Ok() {
					d.Free(x.Buf)
				}
			}
		}
	}
}
