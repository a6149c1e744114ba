package device

// Chunker is a Device on which many rows of one sequence are better taken together, through Attention over their own keys
// and those before, than one by one through AttentionCached. Both compute the same function; a row's last bits may differ
// between them, so that on such a device they depend on how a prompt was cut.
type Chunker interface {
	// ChunkRows is the number of rows from which on this pays.
	ChunkRows() int
}
