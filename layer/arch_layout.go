package layer

import "antiphase/device"

// archLayout holds the properties that most architectures leave at their defaults: the order of query heads in the
// projection, the grouping of heads, and the memory of the mixer beyond its inputs and outputs. An architecture that
// differs sets the field in its own file.
type archLayout struct {
	// groups is the number of groups for H heads if the configuration names none. Default: H.
	groups func(heads int) int
	// queryHeads is the number of query heads of width D in the projection, ordered by group. Default: Maps per output
	// head.
	queryHeads func(heads, groups int) int
	// query is the query head that makes map m of a head. Default: the Maps query heads of an output head are adjacent.
	query func(c *AttnConfig, head, m int) int
	// memory is the arena memory per row that the mixer needs beyond queries, keys, values and, for each map, an output
	// and a log-sum-exp: bytes kept for the backward pass, and bytes used during it. Default: none.
	memory func(c *AttnConfig, t device.Types) (kept, passing int)
}

// DefaultGroups is the number of groups for a number of heads if the configuration names none.
func (a *Arch) DefaultGroups(heads int) int {
	if a.groups == nil {
		return heads
	}
	return a.groups(heads)
}

// QueryHeads is the number of query heads of width D that a layer projects.
func (a *Arch) QueryHeads(heads, groups int) int {
	if a.queryHeads == nil {
		return heads * a.Maps
	}
	return a.queryHeads(heads, groups)
}

// Memory is the arena memory per row that attention needs in a training pass: bytes kept for the backward pass, and
// bytes used during it.
func (c *AttnConfig) Memory(t device.Types) (kept, passing int) {
	a, stat := c.Arch, t.Stat.Size()
	heads := actBytes(t, a.Values*c.HeadDim*c.Heads)
	qkv := actBytes(t, c.HeadDim*(a.QueryHeads(c.Heads, c.Groups)+(a.Keys+a.Values)*c.Groups))
	kept = qkv + a.Maps*(heads+stat*c.Heads) // out, A2·V and log-sum-exp
	if c.HeadNorm != HeadNormOff {
		kept += heads + stat*c.Heads // the output before the norm, and its 1/rms
	}
	passing = heads + qkv
	if a.memory != nil {
		k, p := a.memory(c, t)
		kept, passing = kept+k, passing+p
	}
	return kept, passing
}

// actBytes is the size of one row of an activation.
func actBytes(t device.Types, cols int) int { return t.Act.Size() * t.Stride(cols) }

// QueryHead is the query head that makes map m of a head.
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
