package cuda

import (
	"unsafe"

	"antiphase/internal/cu"
)

// hopperQueries is the number of query rows of a tile of kernels/attn_hopper_backward.cu.
const hopperQueries = 64

// hopperBackward is the geometry of that kernel. split: two warpgroups share 64 keys, a map each; else each owns 64
// of 128.
type hopperBackward struct{ split bool }

// hopperBackward is the shape's geometry: a thread sums dK and dV in at most 128 registers.
func (s attnShape) hopperBackward() hopperBackward {
	return hopperBackward{(s.keys*s.d+s.dv)/2 > 128}
}

// keys is the number of a block's keys.
func (t hopperBackward) keys() int {
	if t.split {
		return 64
	}
	return 128
}

// panel is the width of the panels of V and dO: a warpgroup's columns of dV are whole ones.
func (t hopperBackward) panel(s attnShape) int {
	if t.split {
		return panel(s.dv / 2)
	}
	return panel(s.dv)
}

// shared is a block's shared memory: K and V, two stages of Q and dO, dSᵀ (twice, or once and what warpgroups
// exchange), two stages of statistics, five barriers, the ticket.
func (t hopperBackward) shared(s attnShape) int {
	const m = hopperQueries
	stats, grads := 2, 2*s.maps*128*m*2
	if s.maps == 2 {
		stats = 5
	}
	if t.split {
		grads = s.maps*64*m*2 + 2*64*m*2
	}
	return t.keys()*(s.keys*s.d+s.dv)*2 + 2*m*(s.maps*s.d+s.dv)*2 + grads + 2*stats*m*4 + 5*8 + 8
}

// How key tiles add to dQ: in a fixed order. The other two are for timing: not at all, and as they come.
const (
	none, unordered, ordered = 0, 1, 2
)

func (t hopperBackward) options(s attnShape, adds int) []string {
	return append(s.options(), define("SPLIT", int(flag(t.split))), define("SHARED", t.shared(s)), define("ADDS", adds))
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
	_                [40]byte
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
func (d *Device) backwardHopper(c *attnCall, s attnShape, k *hopperKernels) {
	t, tiles := s.hopperBackward(), ceil(c.T, hopperQueries)
	room := c.room(tiles*hopperQueries, s.stats(), tiles)
	room.columns = hopperQueries
	m, o, ldo := d.prepare(c, &room)
	counters := room.counters * 4
	d.fail(d.now().Clear(cu.Block{Addr: uintptr(m.count), Rows: 1, Width: counters, Pitch: counters}))
	a := &d.backward
	d.tensorMap(&a.Q, c, viewOf(c.q), hopperQueries, s.d, panel(s.d))
	d.tensorMap(&a.K, c, viewOf(c.k), t.keys(), s.d, panel(s.d))
	d.tensorMap(&a.V, c, viewOf(c.v), t.keys(), s.dv, t.panel(s))
	d.tensorMap(&a.O, c, view{o, c.Heads * c.DV, ldo}, hopperQueries, s.dv, t.panel(s))
	a.Start, a.Stats, a.Sums = ptr(c.start), m.stats, m.sums
	a.Counts, a.Ticket = m.count, m.count+uint64(counters-4)
	a.DK, a.DV, a.LdDK, a.LdDV = ptr(c.dk), ptr(c.dv), int64(c.dk.Ld), int64(c.dv.Ld)
	a.T, a.Heads, a.Groups, a.Scale = int32(c.T), int32(c.Heads), int32(c.Groups), float32(c.Scale)
	d.launchStruct(k.backward, dim1(ceil(c.T, t.keys())*c.B*c.Groups), dim1(384), t.shared(s),
		unsafe.Slice((*byte)(unsafe.Pointer(a)), unsafe.Sizeof(*a)))
	q := &d.queries
	*q = queriesArgs{Sums: m.sums, DQ: ptr(c.dq), LdDQ: int64(c.dq.Ld), T: a.T, Heads: a.Heads, Scale: a.Scale}
	d.launchStruct(k.queries, dim3(tiles, c.Heads, c.B), dim1(128*c.maps), 0,
		unsafe.Slice((*byte)(unsafe.Pointer(q)), unsafe.Sizeof(*q)))
}
