package cuda

import (
	"unsafe"

	"antiphase/internal/cu"
)

// unit is the number of query rows whose dQ is summed together.
const unit = 64

// How key tiles add to dQ: in a fixed order. The other two are for timing: not at all, and in arrival order.
const (
	none, unordered, ordered = 0, 1, 2
)

// hopperBackward is the geometry of kernels/attn_hopper_backward.cu.
type hopperBackward struct {
	split   bool // two warpgroups share 64 keys, one map each; else each owns 64 of 128
	weave   bool // the products of a map overlap the work on the other
	queries int  // rows per query tile, 64 or 128
	buffers int  // of dSᵀ
	outs    int  // stages of dO
	copied  int  // eighths of D whose dQ the copy engine adds at a time
	rounds  int  // and how many times in a tile; threads add the rest
	areas   int  // that it alternates between
	fill    bool // it adds all of dQ at once, what the area has no room for from dSᵀ's
	adds    int
	loop    bool // blocks stay, one for each SM
	held    bool // K and V are fragments in registers
	skip    bool // a warpgroup leaves out a tile that sees none of its keys
}

// backward is the shape's geometry: a thread accumulates dK and dV in at most 128 registers.
func (s attnShape) backward() hopperBackward {
	t := hopperBackward{split: (s.keys*s.d+s.dv)/2 > 128, queries: unit, buffers: 2, outs: 2, rounds: 1, areas: 1,
		adds: ordered}
	if t.split {
		t.buffers = 1 // a warpgroup reads only its own dSᵀ
	}
	t.weave = s == attnShape{2, 1, 64, 64}
	return t
}

// fastest is the shape's geometry as measured, see docs/kernels.md.
func (s attnShape) fastest() hopperBackward {
	t := s.backward().copies(s)
	switch s {
	case attnShape{1, 1, 64, 64}:
		t.loop, t.held = true, true
	case attnShape{2, 1, 64, 64}:
		t.areas, t.held, t.skip = 2, true, true
	case attnShape{2, 1, 128, 128}:
		t.fill, t.loop = true, true
	case attnShape{2, 2, 96, 192}:
		t.loop = true
	}
	return t
}

// copies is t with dQ added by the copy engine, as much of it as shared memory allows.
func (t hopperBackward) copies(s attnShape) hopperBackward {
	t.copied = s.d / 8
	if t.shared(s) <= mostShared {
		return t
	}
	if t.split {
		t.outs = 1
	} else {
		t.buffers = 1
	}
	if t.shared(s) > mostShared {
		t.copied /= 2
	}
	return t
}

// mostShared is the shared memory available to a block of an H100 or H200.
const mostShared = 227 << 10

// keys is the number of keys per block.
func (t hopperBackward) keys() int {
	if t.split {
		return 64
	}
	return 128
}

// panel is the width of the panels of V and dO: a warpgroup's columns of dV are whole panels.
func (t hopperBackward) panel(s attnShape) int {
	if t.split {
		return panel(s.dv / 2)
	}
	return panel(s.dv)
}

// shared is the shared memory of a block: K and V, two stages of Q, those of dO, dSᵀ, the warpgroups' exchange buffers,
// dQ for the copy engine, two stages of statistics, barriers, the ticket or tickets.
func (t hopperBackward) shared(s attnShape) int {
	const stages, piece, word = 2, 2048, 8
	stats, exchange := 2, 0
	if s.maps == 2 {
		stats = 5
	}
	if t.split {
		exchange = 2 * 64 * unit * 2
	}
	if t.loop {
		exchange += ticketBytes
	}
	return t.keys()*(s.keys*s.d+s.dv)*2 + stages*t.queries*s.maps*s.d*2 + t.outs*t.queries*s.dv*2 +
		t.buffers*s.maps*t.keys()*t.queries*2 + exchange + 2*t.areas*t.copied*piece + stages*stats*t.queries*4 +
		(1+2*stages+2*t.outs)*word + word
}

func (t hopperBackward) options(s attnShape) []string {
	return append(s.options(), define("SPLIT", int(flag(t.split))), define("WEAVE", int(flag(t.weave))),
		define("QUERIES", t.queries), define("BUFFERS", t.buffers), define("OUTS", t.outs), define("COPIED", t.copied),
		define("ROUNDS", t.rounds), define("AREAS", t.areas),
		define("FILL", int(flag(t.fill))), define("HELD_KEYS", int(flag(t.held))), define("SKIP", int(flag(t.skip))),
		define("SHARED", t.shared(s)), define("ADDS", t.adds), define("LOOP", int(flag(t.loop))))
}

// backwardArgs is the argument of attn_hopper_backward.
type backwardArgs struct {
	Q, K, V, O       cu.TensorMap
	Start            uint64 `c:"const int*"`
	Stats            uint64 `c:"const float*"`
	Sums             uint64 `c:"float*"`
	Counts, Ticket   uint64 `c:"int*"`
	DK, DV           uint64 `c:"bf16*"`
	LdDK, LdDV       int64
	T, Heads, Groups int32
	Scale            float32
	Self             uint64 `c:"const void*"`
	Items, Last      int32  // groups of all sequences; those whose blocks are started together
	_                [24]byte
}

// queriesArgs is the argument of attn_hopper_queries.
type queriesArgs struct {
	Sums     uint64 `c:"const float*"`
	DQ       uint64 `c:"bf16*"`
	LdDQ     int64
	T, Heads int32
	Scale    float32
}

// backwardHopper launches the kernels of the call's shape.
func (d *backwardAttention) backwardHopper(c *attnCall, s attnShape, k *hopperKernels) {
	t, tiles := &k.back, ceil(c.T, k.back.queries)
	units := tiles * t.queries / unit
	room := c.room(tiles*t.queries, s.stats(), units*s.maps)
	room.columns = t.queries
	m, o, ldo := d.prepare(c, &room)
	counters := room.counters * 4
	d.fail(d.now().Clear(cu.Block{Addr: uintptr(m.count), Rows: 1, Width: counters, Pitch: counters}))
	a := &d.backward
	d.tensorMap(&a.Q, c, viewOf(c.q), t.queries, s.d, panel(s.d))
	d.tensorMap(&a.K, c, viewOf(c.k), t.keys(), s.d, panel(s.d))
	d.tensorMap(&a.V, c, viewOf(c.v), t.keys(), s.dv, t.panel(s))
	d.tensorMap(&a.O, c, view{o, c.Heads * c.DV, ldo}, t.queries, s.dv, t.panel(s))
	a.Start, a.Stats, a.Sums = ptr(c.start), m.stats, m.sums
	a.Counts, a.Ticket = m.count, m.count+uint64(counters-4)
	a.DK, a.DV, a.LdDK, a.LdDV = ptr(c.dk), ptr(c.dv), int64(c.dk.Ld), int64(c.dv.Ld)
	a.T, a.Heads, a.Groups, a.Scale, a.Self = int32(c.T), int32(c.Heads), int32(c.Groups), float32(c.Scale), k.self
	keys, grid := ceil(c.T, t.keys()), ceil(c.T, t.keys())*c.B*c.Groups
	a.Items, a.Last = int32(c.B*c.Groups), lastItems(d.info.SMs, keys, c.B*c.Groups)
	if t.loop {
		grid = min(grid, d.info.SMs)
	}
	d.launchStruct(k.backward, dim1(grid), dim1(384), t.shared(s),
		unsafe.Slice((*byte)(unsafe.Pointer(a)), unsafe.Sizeof(*a)))
	q := &d.queries
	*q = queriesArgs{Sums: m.sums, DQ: ptr(c.dq), LdDQ: int64(c.dq.Ld), T: a.T, Heads: a.Heads, Scale: a.Scale}
	d.launchStruct(k.queries, dim3(units, c.Heads, c.B), dim1(128*c.maps), 0,
		unsafe.Slice((*byte)(unsafe.Pointer(q)), unsafe.Sizeof(*q)))
}
