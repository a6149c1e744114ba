package cuda

import "fmt"

// attnShape is what a tiled kernel is built for.
type attnShape struct{ maps, keys, d, dv int }

// attnTiled are the tiled kernels of one shape.
type attnTiled struct{ forward, backward, queries kernel }

// attnShapes are the shapes with tiled kernels: plain attention with DV = D or 2D, DIFF V1 (two key heads, DV = 2D) and DIFF
// V2 (one key head, DV = D), heads of 64, 96 and 128. All others go through the general kernels.
var attnShapes = func() map[attnShape]attnTiled {
	all := map[attnShape]attnTiled{}
	for _, d := range []int{64, 96, 128} {
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
	return attnTiled{
		kernelOf(unit, unit+"_forward", options...),
		kernelOf(unit+"_backward", unit+"_backward", options...),
		kernelOf(unit+"_backward", unit+"_queries", options...),
	}
}

// forwardTile is the geometry of kernels/attn_forward.cuh: query rows of a block, its threads and its shared memory.
func (s attnShape) forwardTile() (rows, threads, shared int) {
	const keys, pairs = 64, 4 // keys of a tile, warps (or pairs of warps) along rows
	fragments := 1
	if s.dv <= 128 {
		fragments = 2
	}
	rows = 16 * fragments * pairs
	shared = s.maps*rows*s.d*2 + 2*keys*(s.keys*s.d+s.dv)*2
	if s.maps == 2 {
		shared += 2*pairs*2*fragments*(keys/16*512+256) + rows*16
	}
	return rows, 32 * pairs * s.maps, shared
}

// backwardTile is the geometry of kernels/attn_backward.cuh: query rows and keys of a tile, floats of a row's statistics, and
// shared memory. Its blocks have 256 threads.
func (s attnShape) backwardTile() (rows, keys, stats, shared int) {
	rows, keys, stats = 64, 64, 2
	if s.keys*s.d+s.dv <= 256 {
		keys = 128
	}
	if s.maps == 1 && s.d+s.dv <= 128 {
		rows = 128
	}
	if s.maps == 2 {
		stats = 8
	}
	stage := s.maps*rows*s.d*2 + rows*s.dv*2 + rows*stats*4
	return rows, keys, stats, keys*(s.keys*s.d+s.dv)*2 + 2*stage + (1+s.maps)*rows*keys*2
}

// attnThreads is the block of the backward kernels.
const attnThreads = 256

// tiled finds the call's tiled kernels. Their copies are of 16 bytes, so all rows must lie on them.
func (c *attnCall) tiled() (attnShape, attnTiled, bool) {
	s := attnShape{c.maps, c.keys, c.D, c.DV}
	k, ok := attnShapes[s]
	return s, k, ok && vec(c.q, c.k, c.v, c.out, c.raw, c.out2, c.dout, c.dq, c.dk, c.dv)
}

// attnGeneral are the kernels for any shape, by the number of maps.
var attnGeneral = [3]struct{ forward, queries, keys kernel }{
	1: {kernelOf("attention_general", "attention_general_forward"), kernelOf("attention_general", "attention_general_queries"),
		kernelOf("attention_general", "attention_general_keys")},
	2: {kernelOf("diffattention_general", "diffattention_general_forward"), kernelOf("diffattention_general", "diffattention_general_queries"),
		kernelOf("diffattention_general", "diffattention_general_keys")},
}

// generalWarps is the number of rows that a block of the general kernels takes, one warp each.
const generalWarps = 4
