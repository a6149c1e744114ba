package cuda

import (
	"cmp"
	"fmt"
	"strings"
)

// trials are kernels that are measured on a GPU before they replace the ones in use. ANTIPHASE_TRY lists those to use,
// separated by commas, instead of chosen; none is none of them.
type trials struct {
	ring  int  // fewest classes for the cross-entropy that reads each logit once, classify_ring.cu; 0 for never
	warps bool // norms of many rows, one warp for each, rmsnorm_warps.cu
}

// chosen are the trials that have won.
const chosen = "ring,warps"

// choose parses the list for a GPU of a major architecture; kernels that it cannot run are left out.
func (t *trials) choose(list string, major int) error {
	for name := range strings.SplitSeq(cmp.Or(list, chosen), ",") {
		switch name {
		case "", "none":
		case "ring":
			if major == 9 {
				t.ring = ringLeast
			}
		case "warps":
			t.warps = true
		default:
			return fmt.Errorf("cuda: ANTIPHASE_TRY=%s: %q is unknown; there are none, ring and warps", list, name)
		}
	}
	return nil
}
