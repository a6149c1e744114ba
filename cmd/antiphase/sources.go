package main

import (
	"fmt"
	"text/tabwriter"

	"antiphase/data"
)

// printSources is the table of what a token set was made from.
func (a *app) printSources(m *data.Manifest) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "tokens\theld out\tshare\tepochs\tdocuments\t  source\t")
	sum := 0.0
	for _, s := range m.Sources {
		sum += s.Weight
	}
	for _, s := range m.Sources {
		share, epochs := float64(s.Tokens-s.HeldOut)/float64(max(m.Tokens-heldOutOf(m), 1)), ""
		if s.Weight > 0 {
			share = s.Weight / sum
		}
		if s.Epochs > 0 {
			epochs = fmt.Sprintf("≤ %g", s.Epochs)
		}
		fmt.Fprintf(w, "%d\t%d\t%.1f %%\t%s\t%d\t  %s\t\n", s.Tokens, s.HeldOut, 100*share, epochs, s.Docs, s.Name)
	}
	return w.Flush()
}

func heldOutOf(m *data.Manifest) (n int64) {
	for _, s := range m.Sources {
		n += s.HeldOut
	}
	return n
}
