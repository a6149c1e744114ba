package device

import (
	"fmt"

	"antiphase/tensor"
)

// Chunker is a Device on which many rows of one sequence are faster together, through Attention over their own and
// earlier keys, than one by one through AttentionCached. Both compute the same function; a row's last bits may differ
// between them, so on such a device they depend on how a prompt was split.
type Chunker interface {
	// ChunkRows is the number of rows at and above which this pays.
	ChunkRows() int
}

// Pager is a Chunker that computes all chunks of a pass in one op that reads the cache by pages. chunks is I32 [n,4]:
// rows {From, To, Past, Slot} mean that rows From … To−1 of Q are positions Past, Past+1, … of Slot, all of them in the
// cache; longest is the largest To − From. Rows in no chunk are not changed. Q, Lam, Norm and Out are those of
// AttentionCached. The result is false, and nothing is done, if there is no kernel for the shape or the page size.
type Pager interface {
	Chunker
	AttentionChunks(a *Attn, c *Cache, chunks tensor.Tensor, longest int) bool
	DiffAttentionChunks(a *DiffAttn, c *Cache, chunks tensor.Tensor, longest int) bool
}

// CheckChunks panics if chunks has the wrong shape.
func CheckChunks(chunks tensor.Tensor) {
	if chunks.Type != tensor.I32 || chunks.Cols != 4 || chunks.Ld != 4 {
		panic(fmt.Sprintf("device: chunks are %v, want I32 [n,4]", chunks))
	}
}
