package layer

import "antiphase/device"

// archLayout holds what most architectures leave at its default: how query heads lie in the projection, how heads are grouped, and
// what the mixer keeps in memory beside its inputs and outputs. An architecture that differs sets the field in its own file.
type archLayout struct {
	// groups is how many groups H heads have unless a configuration says so. Default: H.
	groups func(heads int) int
	// queryHeads is how many query heads of width D are projected, those of a group side by side. Default: Maps for every output head.
	queryHeads func(heads, groups int) int
	// query is the query head of map m of a head. Default: the Maps query heads of an output head are neighbours.
	query func(c *AttnConfig, head, m int) int
	// memory is what the mixer takes of the arena per row beside queries, keys, values, and for each map an output and a logarithm
	// of sums: bytes kept for the backward pass, and bytes of the backward pass itself. Default: none.
	memory func(c *AttnConfig, t device.Types) (kept, passing int)
}

// DefaultGroups is how many groups so many heads have unless a configuration says otherwise.
func (a *Arch) DefaultGroups(heads int) int {
	if a.groups == nil {
		return heads
	}
	return a.groups(heads)
}

// QueryHeads is how many query heads of width D a layer projects.
func (a *Arch) QueryHeads(heads, groups int) int {
	if a.queryHeads == nil {
		return heads * a.Maps
	}
	return a.queryHeads(heads, groups)
}

// Memory is what a training pass takes of the arena per row for attention's own work: bytes kept for the backward pass, and bytes of
// the backward pass itself.
func (c *AttnConfig) Memory(t device.Types) (kept, passing int) {
	a, stat := c.Arch, t.Stat.Size()
	heads := actBytes(t, a.Values*c.HeadDim*c.Heads)
	qkv := actBytes(t, c.HeadDim*(a.QueryHeads(c.Heads, c.Groups)+(a.Keys+a.Values)*c.Groups))
	kept = qkv + a.Maps*(heads+stat*c.Heads) // out, A2·V and logarithms of sums
	if c.HeadNorm != HeadNormOff {
		kept += heads + stat*c.Heads // before the norm, and its deviations
	}
	passing = heads + qkv
	if a.memory != nil {
		k, p := a.memory(c, t)
		kept, passing = kept+k, passing+p
	}
	return kept, passing
}

// actBytes is what a row of an activation takes.
func actBytes(t device.Types, cols int) int { return t.Act.Size() * t.Stride(cols) }

// QueryHead is the query head of map m of a head.
func (c *AttnConfig) QueryHead(head, m int) int {
	if c.Arch.query == nil {
		return head*c.Arch.Maps + m
	}
	return c.Arch.query(c, head, m)
}

// group is the group whose keys and values map m of a head reads.
func (c *AttnConfig) group(head, m int) int {
	return c.QueryHead(head, m) / (c.Arch.QueryHeads(c.Heads, c.Groups) / c.Groups)
}
