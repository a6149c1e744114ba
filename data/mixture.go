package data

import (
	"fmt"
	"math"
	"strings"
)

// Share is a component's part in a mixture.
type Share struct {
	Weight float64 `json:"weight,omitempty"` // rows are drawn in proportion to it
	Epochs float64 `json:"epochs,omitempty"` // passes at most; 0: no bound
}

// rows is the number of whole rows that the share allows. No run takes 2^48 rows: more are no bound, so that sums of
// numbers of rows do not overflow.
func (s Share) rows(tokens, t uint64) uint64 {
	n := s.Epochs * float64(tokens) / float64(t)
	if s.Epochs == 0 || n >= 1<<48 {
		return math.MaxUint64
	}
	return uint64(n)
}

// shareList formats a mixture for display.
func shareList(shares []Share) string {
	if shares == nil {
		return "all sources together, without weights"
	}
	var b strings.Builder
	for i, s := range shares {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%g", s.Weight)
		if s.Epochs > 0 {
			fmt.Fprintf(&b, " (at most %g epochs)", s.Epochs)
		}
	}
	return "weights " + b.String()
}

func checkShares(shares []Share) error {
	for _, s := range shares {
		if !(s.Weight > 0) || math.IsInf(s.Weight, 0) || !(s.Epochs >= 0) || math.IsInf(s.Epochs, 0) {
			return fmt.Errorf(
				"a share of weight %g and %g epochs: want a positive weight, and a positive number of epochs or none",
				s.Weight, s.Epochs)
		}
	}
	return nil
}

// Shares returns those that the set was built with, nil if it is not mixed.
func (m *Manifest) Shares() (shares []Share) {
	for _, s := range m.Sources {
		if s.Weight == 0 {
			return nil
		}
		shares = append(shares, s.Share)
	}
	return shares
}

// Mix returns the split with rows drawn from each of its sources in proportion to a weight. The set must have been
// built with shares.
func (s *Split) Mix(shares []Share) (*Split, error) {
	if err := checkShares(shares); err != nil {
		return nil, fmt.Errorf("data: mix: %w", err)
	}
	if len(shares) != len(s.sources) {
		return nil, fmt.Errorf("data: mix: %d shares for the %d sources of the set", len(shares), len(s.sources))
	}
	mixed := *s
	mixed.shares, mixed.parts = shares, nil
	for i, name := range s.sources {
		var own []*Shard
		for j, sh := range s.shards {
			if s.partOf[j] == i+1 {
				own = append(own, sh)
			}
			if s.partOf[j] == 0 {
				return nil, fmt.Errorf("data: mix: the sources of %s lie in common shards; build it again with weights",
					s.dir)
			}
		}
		if len(own) == 0 {
			return nil, &SourceError{Source: name, Fault: "gave no text to train on"}
		}
		mixed.parts = append(mixed.parts, newComponent(name, s.eos != nil, own))
	}
	return &mixed, nil
}

// Part is one component of a split, from which rows are drawn.
type Part struct {
	Source string
	Tokens int64   // of one epoch
	Share  float64 // of the rows until a source ends; 1 if not mixed
	Epochs float64 // upper bound; 0 means none
}

// Parts lists the components.
func (s *Split) Parts() (list []Part) {
	sum := 0.0
	for _, x := range s.shares {
		sum += x.Weight
	}
	for i := range s.parts {
		p := Part{Source: s.parts[i].name, Tokens: int64(s.parts[i].tokens()), Share: 1}
		if s.shares != nil {
			p.Share, p.Epochs = s.shares[i].Weight/sum, s.shares[i].Epochs
		}
		list = append(list, p)
	}
	return list
}
