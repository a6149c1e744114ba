package cuda

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// trials are kernels that are measured on a GPU before they replace the ones in use. ANTIPHASE_TRY lists those to use,
// separated by commas, instead of chosen; none is none of them.
type trials struct {
	ring  int  // fewest classes for the cross-entropy that reads each logit once, classify_ring.cu; 0 for never
	warps bool // norms of many rows, one warp for each, rmsnorm_warps.cu

	last                      bool // attention on Hopper: blocks of the last items are started together, hopper_order.cuh
	loopForward, loopBackward bool // the same: as many blocks as SMs, which stay
	turns, narrow             bool // its forward pass of V1 at d = 128: warpgroups alternate, tiles of 64 keys
	poly                      bool // its forward pass at d = 64: some exponentials by multiply-adds
	ahead, weave, fill, deep  bool // its backward pass of two maps: see attn_hopper_backward.go
}

// chosen are the trials that have won.
const chosen = "ring,warps"

// choose parses the list for a GPU of a major architecture; kernels that it cannot run are left out.
func (t *trials) choose(list string, major int) error {
	switches := map[string]*bool{"warps": &t.warps, "last": &t.last, "loop-forward": &t.loopForward, "loop-backward": &t.loopBackward,
		"turns": &t.turns, "narrow": &t.narrow, "poly": &t.poly, "ahead": &t.ahead, "weave": &t.weave, "fill": &t.fill, "deep": &t.deep}
	for name := range strings.SplitSeq(cmp.Or(list, chosen), ",") {
		on, ok := switches[name]
		switch {
		case ok:
			*on = true
		case name == "ring" && major == 9:
			t.ring = ringLeast
		case name != "" && name != "none" && name != "ring":
			return fmt.Errorf("cuda: ANTIPHASE_TRY=%s: %q is unknown; there are none, ring, %s", list, name,
				strings.Join(slices.Sorted(maps.Keys(switches)), ", "))
		}
	}
	return nil
}
