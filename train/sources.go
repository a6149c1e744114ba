package train

import (
	"fmt"

	"antiphase/data"
	"antiphase/recipe"
)

// Sources opens the recipe's sources.
func Sources(r recipe.Recipe) ([]data.Source, error) {
	var src []data.Source
	for _, named := range r.Data.Sources {
		s, err := data.Open(named.Path)
		if err != nil {
			return nil, err
		}
		src = append(src, s)
	}
	return src, nil
}

// Overlaps warns of sources of a recipe that share text, which makes its held-out loss too good.
func Overlaps(r recipe.Recipe, src []data.Source) []string {
	if r.Data.HeldOut == 0 {
		return nil
	}
	var specs []string
	for _, s := range r.Data.Sources {
		specs = append(specs, s.Path)
	}
	return data.Overlaps(specs, src)
}

// shares are the recipe's weights and bounds; nil if the sources are not mixed.
func shares(r recipe.Recipe) (list []data.Share) {
	if !r.Data.Mixed() {
		return nil
	}
	for _, s := range r.Data.Sources {
		x := data.Share{Weight: s.Weight, Epochs: s.Epochs}
		if x.Weight == 0 { // a single source with a bound on its epochs
			x.Weight = 1
		}
		list = append(list, x)
	}
	return list
}

// trainSplit is the set's training split, mixed as the recipe says, or as the set was built.
func trainSplit(set *data.Set, r recipe.Recipe) (*data.Split, error) {
	sp, err := set.Split(data.Train)
	if err != nil {
		return nil, err
	}
	mix := shares(r)
	if mix == nil && builtSet(r) != "" {
		mix = set.Manifest.Shares()
	}
	if mix == nil {
		return sp, nil
	}
	return sp.Mix(mix)
}

// loader returns batches of B rows from a split in the recipe's order.
func loader(sp *data.Split, r recipe.Recipe, B int, seed uint64) *data.Loader {
	if r.Data.Order == data.OrderStream {
		return data.NewStream(sp, B, r.Train.SeqLen, seed)
	}
	return data.NewLoader(sp, B, r.Train.SeqLen, seed)
}

// checkRows rejects sources that cannot fill a row, and a run that needs more rows than its sources' epochs allow.
func checkRows(sp *data.Split, rows *data.Loader, r recipe.Recipe) error {
	T := int64(r.Train.SeqLen)
	for _, p := range sp.Parts() {
		if p.Tokens < T {
			return &data.SourceError{Source: p.Source, Fault: fmt.Sprintf(
				"has %d tokens to train on, one row has train.seq_len = %d: give more text or shorter rows",
				p.Tokens, T)}
		}
		if p.Epochs > 0 && p.Epochs*float64(p.Tokens) < float64(T) {
			return &data.SourceError{Source: p.Source, Fault: fmt.Sprintf("has %d tokens to train on, of which %g "+
				"epochs are less than one row of train.seq_len = %d: allow more epochs, or leave the source out",
				p.Tokens, p.Epochs, T)}
		}
	}
	want := uint64(r.Train.Steps) * uint64(r.Train.Batch)
	if have := rows.Left(); want > have {
		fault := fmt.Sprintf("%d steps of %d rows are %d rows, and the epochs allow %d:", r.Train.Steps,
			r.Train.Batch, want, have)
		for _, p := range sp.Parts() {
			fault += fmt.Sprintf("\n  %s: %d tokens × %g epochs = %d rows of %d", p.Source, p.Tokens, p.Epochs,
				int64(float64(p.Tokens)*p.Epochs)/T, T)
		}
		return &data.SourceError{Source: "mixture", Fault: fault +
			fmt.Sprintf("\nset train.steps=%d, or allow more epochs", have/uint64(r.Train.Batch))}
	}
	return nil
}
