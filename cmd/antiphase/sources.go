package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"antiphase/data"
	"antiphase/recipe"
	"antiphase/tokenizer"
	"antiphase/train"
)

// sourceRow is a source in a table.
type sourceRow struct {
	Source string  `json:"source"`
	Tokens int64   `json:"tokens"`           // training tokens, excluding held-out text
	About  bool    `json:"about,omitempty"`  // estimated
	Share  float64 `json:"share"`            // of the tokens that a run draws
	Epochs float64 `json:"epochs,omitempty"` // that a run of the recipe makes of it; 0: not asked
	Bound  float64 `json:"at_most,omitempty"`
}

// manifestRows are the sources of a token set.
func manifestRows(m *data.Manifest) (list []sourceRow) {
	for _, s := range m.Sources {
		list = append(list, sourceRow{Source: s.Name, Tokens: s.Tokens - s.HeldOut, Share: s.Weight, Bound: s.Epochs})
	}
	return shareOut(list)
}

// shareOut converts weights, or tokens if there are no weights, to shares.
func shareOut(list []sourceRow) []sourceRow {
	weights, tokens := 0.0, 0.0
	for _, s := range list {
		weights, tokens = weights+s.Share, tokens+float64(s.Tokens)
	}
	for i := range list {
		if s := &list[i]; weights > 0 {
			s.Share /= weights
		} else {
			s.Share = float64(s.Tokens) / max(tokens, 1)
		}
	}
	return list
}

// sourceRows are the sources of a recipe with what its steps draw from them: counted in a built set, otherwise
// estimated from the beginning of each, which fails if one cannot be used.
func (a *app) sourceRows(ctx context.Context, r recipe.Recipe) (list []sourceRow, err error) {
	if len(r.Data.Sources) == 1 && data.IsSet(r.Data.Sources[0].Path) {
		m, err := data.ReadManifest(r.Data.Sources[0].Path)
		if err != nil {
			return nil, err
		}
		list = manifestRows(m)
	} else if list, err = a.estimateRows(ctx, r); err != nil {
		return nil, err
	}
	want := float64(r.Train.Steps) * float64(r.Train.Batch*r.Train.SeqLen)
	if lacks := drawn(list, want); lacks > 0 {
		a.note(
			"warning: the epochs allow about %.0f of %d steps, more are refused: set train.steps, or allow more epochs",
			(want-lacks)/want*float64(r.Train.Steps), r.Train.Steps)
	}
	return list, nil
}

// drawn fills in what a run draws of each source: shares of the tokens, and epochs. A source that reaches its bound
// leaves the rest to the others. It returns the number of tokens that no source may give.
func drawn(list []sourceRow, want float64) (lacks float64) {
	if want == 0 {
		return 0
	}
	most := func(s *sourceRow) float64 { // tokens
		if s.Bound == 0 {
			return math.Inf(1)
		}
		return s.Bound * float64(s.Tokens)
	}
	tokens, ended := make([]float64, len(list)), make([]bool, len(list))
	left := want
	for again := true; again; {
		again = false
		weights := 0.0
		for i := range list {
			if !ended[i] {
				weights += list[i].Share
			}
		}
		part := left / weights // of the tokens, for a weight of 1
		for i := range list {
			s := &list[i]
			if ended[i] {
				continue
			}
			if tokens[i] = s.Share * part; tokens[i] > most(s) {
				tokens[i], ended[i], again = most(s), true, true
			}
		}
		left = want
		for i := range list {
			if ended[i] {
				left -= tokens[i]
			}
		}
	}
	total := 0.0
	for _, n := range tokens {
		total += n
	}
	for i := range list {
		s := &list[i]
		s.Share, s.Epochs = tokens[i]/max(total, 1), tokens[i]/max(float64(s.Tokens), 1)
	}
	if slices.Contains(ended, false) {
		return 0
	}
	return left
}

func (a *app) estimateRows(ctx context.Context, r recipe.Recipe) (list []sourceRow, err error) {
	src, err := train.Sources(r)
	if err != nil {
		return nil, err
	}
	for _, s := range train.Overlaps(r, src) {
		a.note("warning: %s", s)
	}
	var tok *tokenizer.Tokenizer
	switch r.Tokenizer.Path {
	case "": // it will be trained
	case "bytes":
		tok = tokenizer.Bytes()
	default:
		if tok, err = tokenizer.Load(r.Tokenizer.Path); err != nil {
			return nil, err
		}
	}
	const look = 8 << 20 // bytes of text
	left := math.Inf(1)  // tokens until the set has data.max_tokens, which takes the sources in order
	if r.Data.MaxTokens > 0 {
		left = float64(r.Data.MaxTokens)
	}
	for i, s := range src {
		e, err := data.EstimateText(ctx, s, look)
		if err != nil {
			return nil, err
		}
		// Bytes per token of a tokenizer trained on the text, roughly.
		per := 0.37*math.Log2(float64(max(r.Tokenizer.Vocab, 257))) - 1.3
		if tok != nil {
			per = float64(len(e.Sample)) / float64(max(len(tok.EncodeOrdinary(nil, e.Sample)), 1))
		}
		named := r.Data.Sources[i]
		tokens := min(float64(e.Bytes)/per, left)
		left -= tokens
		list = append(list, sourceRow{Source: named.Path, Tokens: int64(tokens * (1 - r.Data.HeldOut)), About: true,
			Share: named.Weight, Bound: named.Epochs})
	}
	return shareOut(list), nil
}

// printSources is the table of sources.
func printSources(to io.Writer, list []sourceRow) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "tokens\tshare\tepochs\tat most\t  source\t")
	for _, s := range list {
		about, epochs, bound := "", "–", "–"
		if s.About {
			about = "about "
		}
		if s.Epochs > 0 {
			epochs = fmt.Sprintf("%.2f", s.Epochs)
		}
		if s.Bound > 0 {
			bound = fmt.Sprintf("%g", s.Bound)
		}
		fmt.Fprintf(w, "%s%s\t%.1f %%\t%s\t%s\t  %s\t\n", about, count(float64(s.Tokens)), 100*s.Share, epochs,
			bound, s.Source)
	}
	return w.Flush()
}
