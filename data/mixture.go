package data

import (
	"fmt"
	"math"
	"strings"
)

// Share is what a component gives to a mixture.
type Share struct {
	Weight float64 `json:"weight"`           // rows are drawn in proportion to it
	Epochs float64 `json:"epochs,omitempty"` // passes at most; 0: no bound
}

// rows is the number of whole rows that the share allows.
func (s Share) rows(tokens, t uint64) uint64 {
	if s.Epochs == 0 {
		return math.MaxUint64
	}
	return uint64(s.Epochs * float64(tokens) / float64(t))
}

// shareList is a mixture for people.
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
