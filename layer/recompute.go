package layer

// Recompute says which activations a training pass drops. The backward pass forms them again from what is left, by the same ops on
// the same numbers, so that gradients have the same bits either way.
type Recompute string

// RecomputeAttention drops what attention keeps (queries, keys, values and the outputs of its heads); RecomputeBlocks keeps the
// residual stream before each block and nothing else.
const (
	RecomputeOff       Recompute = "off"
	RecomputeAttention Recompute = "attention"
	RecomputeBlocks    Recompute = "blocks"
)

// Recomputes lists the choices, from the least recomputed to the most.
var Recomputes = []Recompute{RecomputeOff, RecomputeAttention, RecomputeBlocks}
