package model

import (
	"fmt"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// CheckSplit reports why a model cannot be split over this many ranks, and which numbers work.
func (c Config) CheckSplit(parts int) error {
	if parts == 1 {
		return nil
	}
	a, err := c.attn(0)
	if err != nil {
		return err
	}
	if err := a.CheckSplit(parts); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		n    int
	}{{"ffn", c.FFN}, {"vocab", c.Vocab}} {
		if f.n%parts != 0 {
			return fmt.Errorf("tp=%d does not divide %s = %d; a multiple such as %d would be shared equally",
				parts, f.name, f.n, (f.n+parts-1)/parts*parts)
		}
	}
	return nil
}

// PartOf is the configuration of one rank's part of a split model, as far as shapes go: its heads, groups and columns.
func (c Config) PartOf(parts int) Config {
	c.Heads, c.KVHeads, c.FFN = c.Heads/parts, c.KVHeads/parts, c.FFN/parts
	return c
}

// PartCount is the number of scalars that each rank of a split model holds.
func (c Config) PartCount(parts int) int {
	return newNetwork(nil, c, layer.NewSplit(paper(parts)), nil).Params.Count()
}

// paper is a Team without ranks, for counting.
type paper int

func (paper) Rank() int                          { return 0 }
func (n paper) Size() int                        { return int(n) }
func (paper) AllReduce(tensor.Tensor) error      { return nil }
func (paper) AllGather(_, _ tensor.Tensor) error { return nil }

// Split is how ranks split the model; nil if they do not.
func (n *network) Split() *layer.Split { return n.Params.Split }

// findShared lists, part by part, the gradients to sum over ranks; adjacent ones are merged.
func (n *network) findShared() {
	if n.Split() == nil {
		return
	}
	n.shared = make([][]tensor.Tensor, n.Parts())
	for i := range n.shared {
		for _, p := range n.Part(i) {
			if p.Shared && p.G.Ok() {
				n.shared[i] = join(n.shared[i], p.G)
			}
		}
	}
}

// join appends t, or extends the last tensor if t begins within one cache line of padding after it.
func join(list []tensor.Tensor, t tensor.Tensor) []tensor.Tensor {
	if n := len(list); n > 0 {
		last := &list[n-1]
		end := last.Off + last.Cols*last.Type.Size()
		if last.Buf == t.Buf && t.Off >= end && t.Off-end < 128*t.Type.Size() {
			last.Cols = (t.Off-last.Off)/t.Type.Size() + t.Cols
			last.Ld = last.Cols
			return list
		}
	}
	return append(list, t)
}

// finish completes the gradients of a part of a split model.
func (n *network) finish(part int) {
	for _, t := range n.shared[part] {
		n.Split().Sum(t)
	}
}

// own maps ids to this rank's rows of the vocabulary, or to Elsewhere.
func (n *network) own(dst, ids []int32) []int32 {
	s := n.Split()
	if s == nil {
		return ids
	}
	dst = dst[:len(ids)]
	for i, id := range ids {
		dst[i] = s.Local(id, n.Config.Vocab, device.Elsewhere)
	}
	return dst
}
