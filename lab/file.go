package lab

import (
	"context"

	"antiphase/layer"
	"antiphase/model"
)

// File is the data of a page without a server: the prompt as each model sees it, and the results of interventions on
// the first one. The page's modules read it (web/page/source.js).
type File struct {
	Text     string             `json:"text"`
	State    string             `json:"state"` // of the page; empty: as it begins
	Models   []Card             `json:"models"`
	Looks    []FileLook         `json:"looks"`
	Outcomes map[string]Outcome `json:"outcomes"` // by layer.Intervention.String
}

// Card describes a model as /v1/models does.
type Card struct {
	ID   string `json:"id"`
	Meta Meta   `json:"meta"`
}

// Meta is the part of a card that the lab reads.
type Meta struct {
	Arch   string `json:"arch"`
	Layers int    `json:"n_layer"`
	Heads  int    `json:"n_head"`
	Maps   int    `json:"n_maps"`
}

// FileLook is a reply about one model.
type FileLook struct {
	Model string `json:"model"`
	Whole bool   `json:"whole"` // maps of single tokens, next tokens after each
	*Reply
}

// Outcome is the result of interventions on a prompt.
type Outcome struct {
	Loss float64 `json:"loss"`
	Next []Next  `json:"next"` // after the last token
}

// Subject is a model with the prompt in its own tokens.
type Subject struct {
	Name  string
	Model *model.Model
	IDs   []int32
	Spell func(id int32) string
}

const fileTop = 8 // next tokens listed in a file

// Add runs the prompt through a further model, with at most this many cells: maps of all heads, in tiles if single
// tokens would be too many.
func (f *File) Add(ctx context.Context, s Subject, cells int) error {
	c, T := s.Model.Config, len(s.IDs)
	arch, err := layer.LookupArch(c.Arch)
	if err != nil {
		return err
	}
	q := Query{IDs: s.IDs, Maps: []string{A1, A2}[:arch.Maps], Size: DefaultSize, Next: upTo(T), Top: fileTop}
	if err := q.Complete(c); err != nil {
		return err
	}
	whole := T <= q.Size && q.Cost().Cells <= cells
	if !whole {
		q.Next, q.Rows = []int{T - 1}, []int{T - 1}
		for ; q.Size > 1 && q.Cost().Cells > cells; q.Size-- {
		}
	}
	r, err := Look(ctx, s.Model, &q, s.Spell, nil)
	if err != nil {
		return err
	}
	f.Models = append(f.Models, Card{s.Name, Meta{c.Arch, c.Layers, c.Heads, arch.Maps}})
	f.Looks = append(f.Looks, FileLook{s.Name, whole, r})
	return nil
}

// steps are the factors of λ that a file includes; the slider stops at them.
var steps = []float64{0, 0.25, 0.5, 0.75, 1.25, 1.5, 1.75, 2}

// Interventions lists what a file includes: λ scaled, the second map shuffled or averaged, in all layers and, if each
// is set, in each single layer; and then every single head disabled.
func Interventions(c model.Config, each bool) (list []layer.Intervention) {
	places := [][]int{nil}
	if each {
		for l := range c.Layers {
			places = append(places, []int{l})
		}
	}
	if arch, err := layer.LookupArch(c.Arch); err == nil && arch.Maps == 2 {
		for _, at := range places {
			for _, x := range steps {
				list = append(list, layer.Intervention{Layers: at, Lambda: &x})
			}
			for _, s := range []layer.Second{layer.SecondShuffled, layer.SecondAveraged} {
				list = append(list, layer.Intervention{Layers: at, Second: s})
			}
		}
	}
	for l := range c.Layers {
		for h := 0; each && h < c.Heads; h++ {
			list = append(list, layer.Intervention{Layers: []int{l}, Heads: []int{h}, Knockout: true})
		}
	}
	return list
}

// Try runs interventions one by one and stores their results.
func (f *File) Try(ctx context.Context, s Subject, list []layer.Intervention) error {
	if f.Outcomes == nil {
		f.Outcomes = map[string]Outcome{}
	}
	for _, v := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		q := Query{IDs: s.IDs, Next: []int{len(s.IDs) - 1}, Top: fileTop, Interventions: []layer.Intervention{v}}
		if err := q.Complete(s.Model.Config); err != nil {
			return err
		}
		r, err := Look(ctx, s.Model, &q, s.Spell, nil)
		if err != nil {
			return err
		}
		f.Outcomes[v.String()] = Outcome{r.Loss, r.Next}
	}
	return nil
}
