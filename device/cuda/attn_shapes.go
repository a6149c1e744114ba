package cuda

import (
	"fmt"
	"slices"
)

// attnShape is the shape a tiled kernel is compiled for.
type attnShape struct{ maps, keys, d, dv int }

// attnTiled are the tiled kernels of one shape.
type attnTiled struct{ forward, backward, queries kernel }

// attnShapes are the shapes with tiled kernels: plain attention with DV = D or 2D, DIFF V1 (two key heads, DV = 2D) and
// DIFF V2 (one key head, DV = D), heads of 32, 64, 96 and 128. All others use the general kernels.
var attnShapes = func() map[attnShape]attnTiled {
	all := map[attnShape]attnTiled{}
	for _, d := range []int{32, 64, 96, 128} {
		for _, s := range []attnShape{{1, 1, d, d}, {1, 1, d, 2 * d}, {2, 1, d, d}, {2, 2, d, 2 * d}} {
			all[s] = s.kernels()
		}
	}
	return all
}()

// kernels registers the shape's kernels.
func (s attnShape) kernels() attnTiled {
	unit, options := "attention", []string{fmt.Sprintf("-DHEAD=%d", s.d), fmt.Sprintf("-DVALUE=%d", s.dv)}
	if s.maps == 2 {
		unit, options = "diffattention", append(options, fmt.Sprintf("-DKEYS=%d", s.keys))
	}
	back := append(slices.Clone(options), s.backwardTile().options()...)
	return attnTiled{
		kernelOf(unit, unit+"_forward", append(slices.Clone(options), s.forward().options()...)...),
		kernelOf(unit+"_backward", unit+"_backward", back...),
		kernelOf(unit+"_backward", unit+"_queries", back...),
	}
}

// forwardTile is the geometry of kernels/attn_forward.cuh: row fragments per warp, keys per tile, blocks per SM.
type forwardTile struct{ fragments, keys, blocks int }

// forward is the shape's tile.
func (s attnShape) forward() forwardTile {
	switch {
	case s.dv > 128:
		return forwardTile{1, 64, 1}
	case s.maps == 2 && s.d <= 64: // 4 and 7 % faster than two fragments and one block
		return forwardTile{1, 64, 2}
	case s.maps == 2:
		return forwardTile{2, 64, 1}
	case s.d <= 64 && s.dv <= 64:
		return forwardTile{2, 64, 3}
	}
	return forwardTile{2, 64, 2}
}

func (t forwardTile) options() []string {
	return []string{fmt.Sprintf("-DMT=%d", t.fragments), fmt.Sprintf("-DBN=%d", t.keys),
		fmt.Sprintf("-DBLOCKS=%d", t.blocks)}
}

// sizes are the query rows of a block, its threads and its shared memory: Q, two stages of K and V, and for two maps
// the exchange buffer of a pair of warps (P in Q's place if Q stays in registers) and 16 bytes per row.
func (t forwardTile) sizes(s attnShape) (rows, threads, shared int) {
	const pairs = 4 // warps (or pairs of warps) along rows
	rows = 16 * t.fragments * pairs
	q, p := s.maps*rows*s.d*2, 0
	if s.maps == 2 {
		p = pairs * 2 * t.fragments * (t.keys/16*512 + 256)
		shared = rows * 16
	}
	if t.fragments == 1 && (t.blocks == 1 || s.dv <= 64) {
		q, p = max(q, p), 0
	}
	return rows, 32 * pairs * s.maps, shared + q + p + 2*t.keys*(s.keys*s.d+s.dv)*2
}

// attnTile is the geometry of kernels/attn_backward.cuh: query rows and keys per tile, warps per block, blocks per SM,
// and whether warps own keys.
type attnTile struct {
	rows, keys, warps, blocks int
	own                       bool
}

// backwardTile is the shape's tile.
func (s attnShape) backwardTile() attnTile {
	switch width := s.keys*s.d + s.dv; { // width of a key's sums
	case width <= 128 && s.maps == 1: // with two maps, registers run out: sharing S is 9 % faster
		return attnTile{64, 128, 4, 2, true}
	case width <= 256:
		return attnTile{64, 128, 8, 1, false}
	}
	return attnTile{64, 64, 8, 1, false}
}

func (t attnTile) options() []string {
	return []string{fmt.Sprintf("-DBM=%d", t.rows), fmt.Sprintf("-DBN=%d", t.keys), fmt.Sprintf("-DWARPS=%d", t.warps),
		fmt.Sprintf("-DBLOCKS=%d", t.blocks), fmt.Sprintf("-DOWN=%d", flag(t.own))}
}

// stats is the number of floats of a row's statistics.
func (s attnShape) stats() int { return 2 + 6*(s.maps-1) }

// shared is the tile's shared memory: K and V, two stages of Q, dO and statistics, W (unless warps own keys) and dS.
func (t attnTile) shared(s attnShape) int {
	stage, tiles := s.maps*t.rows*s.d*2+t.rows*s.dv*2+t.rows*s.stats()*4, 1+s.maps
	if t.own {
		tiles = 1
	}
	return t.keys*(s.keys*s.d+s.dv)*2 + 2*stage + tiles*t.rows*t.keys*2
}

// tiled finds the call's tiled kernels. They copy 16 bytes at a time, so all rows must be aligned to 16 bytes.
func (c *attnCall) tiled() (attnShape, attnTiled, bool) {
	s := attnShape{c.maps, c.keys, c.D, c.DV}
	k, ok := attnShapes[s]
	return s, k, ok && vec(c.q, c.k, c.v, c.out, c.raw, c.out2, c.dout, c.dq, c.dk, c.dv)
}

// attnGeneral are the kernels for any shape, by the number of maps.
var attnGeneral = [3]struct{ forward, queries, keys kernel }{
	1: {kernelOf("attention_general", "attention_general_forward"),
		kernelOf("attention_general", "attention_general_queries"),
		kernelOf("attention_general", "attention_general_keys")},
	2: {kernelOf("diffattention_general", "diffattention_general_forward"),
		kernelOf("diffattention_general", "diffattention_general_queries"),
		kernelOf("diffattention_general", "diffattention_general_keys")},
}

// generalWarps is the number of rows per block of the general kernels, one warp each.
const generalWarps = 4
