package layer

// Recompute selects the activations a training pass drops. The backward pass recomputes them with the same ops on the
// same numbers, so gradients are bit-identical.
type Recompute string

// RecomputeAttention drops what attention saves (queries, keys, values and head outputs). RecomputeBlocks saves only
// the residual stream before each block.
const (
	RecomputeOff       Recompute = "off"
	RecomputeAttention Recompute = "attention"
	RecomputeBlocks    Recompute = "blocks"
)

// Recomputes lists the choices, least recomputation first.
var Recomputes = []Recompute{RecomputeOff, RecomputeAttention, RecomputeBlocks}
