package cuda

import (
	"fmt"
	"unsafe"

	"antiphase/internal/cu"
	"antiphase/tensor"
)

// Attention with Hopper's wgmma and copy engine (kernels/attn_hopper_*.cu), next to the tiled kernels of
// attn_shapes.go. This file defines what both languages must agree on: the tiles of each shape, their shared memory
// (the kernels assert it) and the kernels' arguments (kernels/hopper_args.cuh is generated from them).

// hopperForward is the geometry of kernels/attn_hopper_forward.cu: keys per tile, consumer warpgroups, maps per
// warpgroup, registers per thread of the producer and of a consumer; turns: two consumers alternate their products;
// loop: blocks stay, one for each SM (kernels/hopper_order.cuh).
type hopperForward struct {
	keys, groups, per, producer, consumer int
	turns, loop                           bool
}

// hopperKernels are the kernels of one shape.
type hopperKernels struct {
	tile                       hopperForward
	back                       hopperBackward
	forward, backward, queries kernel
	paged                      kernel // forward over a cache
	self                       uint64 // address of a copy of the kernel's argument; 0 except in tests
}

// hopperShapes are the shapes with Hopper kernels. O takes per·dv/2 registers, S keys/2, P keys/4. Blocks can stay
// where a warpgroup has all maps; the others pass O2 through the ring of K.
var hopperShapes = func() map[attnShape]hopperKernels {
	all := map[attnShape]hopperKernels{}
	for _, x := range []struct {
		s attnShape
		t hopperForward
	}{
		{attnShape{1, 1, 64, 64}, hopperForward{keys: 128, groups: 3, per: 1, producer: 32, consumer: 160, loop: true}},
		{attnShape{1, 1, 96, 96}, hopperForward{keys: 128, groups: 2, per: 1, producer: 24, consumer: 240,
			turns: true, loop: true}},
		{attnShape{1, 1, 128, 128}, hopperForward{keys: 128, groups: 2, per: 1, producer: 24, consumer: 240,
			turns: true, loop: true}},
		{attnShape{2, 2, 64, 128}, hopperForward{keys: 64, groups: 2, per: 2, producer: 24, consumer: 240, loop: true}},
		{attnShape{2, 2, 96, 192}, hopperForward{keys: 128, groups: 2, per: 1, producer: 24, consumer: 240,
			turns: true}},
		{attnShape{2, 2, 128, 256}, hopperForward{keys: 96, groups: 2, per: 1, producer: 24, consumer: 240}},
		{attnShape{2, 1, 64, 64}, hopperForward{keys: 128, groups: 2, per: 2, producer: 24, consumer: 240,
			turns: true, loop: true}},
		{attnShape{2, 1, 96, 96}, hopperForward{keys: 96, groups: 2, per: 2, producer: 24, consumer: 240}},
		{attnShape{2, 1, 128, 128}, hopperForward{keys: 128, groups: 2, per: 1, producer: 24, consumer: 240,
			turns: true}},
	} {
		all[x.s] = x.s.hopperKernels(x.t, x.s.fastest())
	}
	return all
}()

// hopperKernels registers the shape's kernels.
func (s attnShape) hopperKernels(t hopperForward, b hopperBackward) hopperKernels {
	const forward, back = "attn_hopper_forward", "attn_hopper_backward"
	options := b.options(s)
	return hopperKernels{tile: t, back: b,
		forward:  hopperOf(forward, forward, t.options(s, false)...),
		paged:    hopperOf(forward, forward, t.options(s, true)...),
		backward: hopperOf(back, back, options...), queries: hopperOf(back, "attn_hopper_queries", options...)}
}

// lastItems is the number of items whose blocks are started together: those of two blocks for each SM.
func lastItems(sms, tiles, items int) int32 { return int32(min(items, max(2, ceil(2*sms, tiles)))) }

func (t hopperForward) options(s attnShape, paged bool) []string {
	return append(s.options(), define("BN", t.keys), define("WGS", t.groups), define("PER", t.per),
		define("PRODUCER", t.producer), define("CONSUMER", t.consumer), define("SHARED", t.shared(s, paged)),
		define("ORDER", int(flag(t.turns))),
		define("PAGED", int(flag(paged))), define("LOOP", int(flag(t.loop && !paged))))
}

// options are the shape as compiler options of the Hopper kernels.
func (s attnShape) options() []string {
	return []string{define("MAPS", s.maps), define("KEYS", s.keys), define("HEAD", s.d), define("VALUE", s.dv)}
}

// define is a compiler option.
func define(name string, value int) string { return fmt.Sprintf("-D%s=%d", name, value) }

// rows is the number of query rows per block.
func (t hopperForward) rows(s attnShape) int { return 64 * t.groups * t.per / s.maps }

func (t hopperForward) threads() int { return 128 * (1 + t.groups) }

// shared is the shared memory of a block: Q, two slots of K and of V, nine barriers, and one more with pages, or with
// the tickets of blocks that stay.
func (t hopperForward) shared(s attnShape, paged bool) int {
	bytes := s.maps*t.rows(s)*s.d*2 + 2*t.keys*(s.keys*s.d+s.dv)*2 + 9*8
	if paged {
		bytes += 8
	} else if t.loop {
		bytes += 8 + ticketBytes
	}
	return bytes
}

// ticketBytes is the size of Tickets in kernels/hopper_order.cuh.
const ticketBytes = 40

// panel is the width of the panels of a tile with this many columns, see kernels/hopper_tile.cuh.
func panel(cols int) int {
	if cols%64 == 0 {
		return 64
	}
	return 32
}

// forwardArgs is the argument of attn_hopper_forward.
type forwardArgs struct {
	Q, K, V                                    cu.TensorMap
	PageK, PageV                               cu.TensorMap // of a cache; K and V are then tiles of neighbouring pages
	Start                                      uint64       `c:"const int*"`
	Lam                                        uint64       `c:"const float*"`
	Weight                                     uint64       `c:"const bf16*"`
	Out, Raw, Out2                             uint64       `c:"bf16*"`
	LSE, Rstd                                  uint64       `c:"float*"`
	LdOut, LdRaw, LdOut2, LdLSE, LdRstd, LdLam int64
	T, Heads, Groups                           int32
	Scale, Eps, Gain                           float32
	Each, Norm                                 int32 // λ is [N,H]; the head norm is on
	Page                                       int32 // positions per page
	Items, Last                                int32 // heads of all sequences; those whose blocks are started together
	_                                          int32
	Chunks, Table                              uint64 `c:"const int*"`
	LdTable                                    int64
	Self                                       uint64 `c:"const void*"` // a copy in memory, see hopper.cuh
	Ticket                                     uint64 `c:"int*"`        // 0 outside launches of blocks that stay
	_                                          [56]byte
}

// mapAlign is the alignment of tensor maps in a kernel's parameter, as documented by CUDA 13. The size of a struct that
// contains one is a multiple of it.
const mapAlign = 128

// hopperArgs are the structs of kernels/hopper_args.cuh.
var hopperArgs = []struct {
	name string
	of   any
}{{"HopperForward", forwardArgs{}}, {"HopperBackward", backwardArgs{}}, {"HopperQueries", queriesArgs{}}}

// chooseAttention selects the instructions for attention by name, for shapes that have kernels for them: mma (all GPUs)
// or wgmma (Hopper, and the default there).
func (d *machine) chooseAttention(name string) error {
	_, tiler := d.drv.(cu.Tiler)
	hopper := d.info.Major == 9 && tiler
	switch {
	case name == "":
		d.wgmma = hopper
	case name == "mma":
		d.wgmma = false
	case name != "wgmma":
		return fmt.Errorf("cuda: ANTIPHASE_ATTENTION=%s: there are mma and wgmma", name)
	case !hopper:
		return fmt.Errorf("cuda: ANTIPHASE_ATTENTION=wgmma needs a Hopper GPU, %s has compute capability %d.%d",
			d.info.Name, d.info.Major, d.info.Minor)
	default:
		d.wgmma = true
	}
	return nil
}

// hopper finds the call's Hopper kernels, if they are selected.
func (c *attnCall) hopper(d *machine) (attnShape, hopperKernels, bool) {
	s := attnShape{c.maps, c.keys, c.D, c.DV}
	k, ok := hopperShapes[s]
	return s, k, ok && d.wgmma && vec(c.q, c.k, c.v, c.out, c.raw, c.out2, c.dout, c.dq, c.dk, c.dv)
}

// view is a matrix of bf16: the address of its first element, its columns, and its pitch in elements.
type view struct {
	at       uint64
	cols, ld int
}

func viewOf(x tensor.Tensor) view { return view{ptr(x), x.Cols, x.Ld} }

// tensorMap describes x, rows of B sequences, for loads of rows × cols tiles in panels.
func (d *machine) tensorMap(m *cu.TensorMap, c *attnCall, x view, rows, cols, panel int) {
	d.tileMap(m, x, c.B, c.T, rows, cols, panel)
}

// tileMap describes x, b sequences of t rows.
func (d *machine) tileMap(m *cu.TensorMap, x view, b, t, rows, cols, panel int) {
	d.mapOf = cu.Tiles{Addr: uintptr(x.at), Dims: [4]int{panel, t, x.cols / panel, b},
		Strides: [3]int{2 * x.ld, 2 * panel, 2 * t * x.ld}, Box: [4]int{panel, rows, cols / panel, 1}}
	d.fail(d.drv.(cu.Tiler).TensorMap(m, &d.mapOf))
}

// forwardHopper launches the kernel of the call's shape.
func (d *forwardAttention) forwardHopper(c *attnCall, s attnShape, k *hopperKernels) {
	t, a := &k.tile, &d.forward
	rows := t.rows(s)
	d.tensorMap(&a.Q, c, viewOf(c.q), rows, s.d, panel(s.d))
	d.tensorMap(&a.K, c, viewOf(c.k), t.keys, s.d, panel(s.d))
	d.tensorMap(&a.V, c, viewOf(c.v), t.keys, s.dv, panel(s.dv))
	a.fill(c)
	a.Self, a.Ticket = k.self, 0
	grid := dim3(ceil(c.T, rows), c.Heads, c.B)
	a.Last = lastItems(d.info.SMs, grid.X, c.Heads*c.B)
	if t.loop {
		a.Ticket = uint64(d.ticket())
		grid = dim1(min(d.info.SMs, grid.X*c.Heads*c.B))
	}
	d.launchStruct(k.forward, grid, dim1(t.threads()), t.shared(s, false),
		unsafe.Slice((*byte)(unsafe.Pointer(a)), unsafe.Sizeof(*a)))
}

// ticket is the address of a zero that kernels leave as they found it.
func (d *forwardAttention) ticket() uintptr {
	if d.tickets == 0 {
		d.tickets = alloc(d.drv, 8)
		d.fail(d.now().Clear(cu.Block{Addr: d.tickets, Rows: 1, Width: 8, Pitch: 8}))
	}
	return d.tickets
}

// fill sets everything except the tensor maps.
func (a *forwardArgs) fill(c *attnCall) {
	a.Start, a.Lam, a.Weight = ptr(c.start), ptr(c.lam), c.weightPtr()
	a.Out, a.Raw, a.Out2, a.LSE, a.Rstd = ptr(c.out), ptr(c.raw), ptr(c.out2), ptr(c.lse), ptr(c.rstd)
	a.LdOut, a.LdRaw, a.LdOut2 = int64(c.out.Ld), int64(c.raw.Ld), int64(c.out2.Ld)
	a.LdLSE, a.LdRstd, a.LdLam = int64(c.lse.Ld), int64(c.rstd.Ld), int64(c.lam.Ld)
	a.T, a.Heads, a.Groups = int32(c.T), int32(c.Heads), int32(c.Groups)
	a.Scale, a.Eps, a.Gain = float32(c.Scale), float32(c.norm.Eps), float32(c.norm.Scale)
	a.Each, a.Norm = int32(flag(c.eachLam)), int32(flag(c.norm.On))
	a.Chunks, a.Table, a.LdTable, a.Page, a.Items, a.Last = 0, 0, 0, 0, int32(c.B*c.Heads), 0
}
