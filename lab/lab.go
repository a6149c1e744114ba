// Package lab computes what the attention lab shows for one prompt: the maps of chosen heads, λ, the loss of every
// token and the next tokens.
//
// A Query is completed and priced (Query.Complete, Query.Cost) before anything is computed, so that a caller can reject
// it if it is too large. Look runs the prompt once under a probe (probe.go), which reads the maps layer by layer; no
// map is ever held whole. A prompt longer than Query.Size is shown in tiles (tile.go). The Reply is plain data: the
// server sends it, `antiphase attend` writes it into a file, and the page reads both.
package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"antiphase/layer"
	"antiphase/model"
)

// Names of the maps. A head with one map has only A1.
const (
	A1   = "a1"
	A2   = "a2"
	Diff = "diff" // what the head applies to its values: A1 − λA2
)

// Query is a query about a prompt. Layers, heads and tokens are counted from 0.
type Query struct {
	IDs    []int32
	Layers []int    // nil: all
	Heads  []int    // of each layer; nil: all
	Maps   []string // nil: none
	Size   int      // maximum rows of a map; a longer prompt is shown in tiles of several tokens
	Rows   []int    // tokens whose exact rows are wanted as well, regardless of Size
	Next   []int    // tokens after which the most likely next ones are wanted
	Top    int      // how many of them

	Interventions []layer.Intervention // interventions for this query only
}

// maxInterventions is more than the number of heads in a network that anyone inspects.
const maxInterventions = 4096

// Complete fills in the defaults and rejects what the model does not have.
func (q *Query) Complete(c model.Config) error {
	arch, err := layer.LookupArch(c.Arch)
	if err != nil {
		return err
	}
	if len(q.IDs) == 0 {
		return &FieldError{"prompt", "has no tokens, must have at least one"}
	}
	if q.Size == 0 {
		q.Size = DefaultSize
	}
	if q.Layers == nil {
		q.Layers = upTo(c.Layers)
	}
	if q.Heads == nil {
		q.Heads = upTo(c.Heads)
	}
	for _, f := range []struct {
		name string
		list []int
		n    int
		of   string
	}{
		{"layers", q.Layers, c.Layers, "layers"}, {"heads", q.Heads, c.Heads, "heads"},
		{"rows", q.Rows, len(q.IDs), "tokens"}, {"next", q.Next, len(q.IDs), "tokens"},
	} {
		if err := checkList(f.name, f.list, f.n, f.of); err != nil {
			return err
		}
	}
	if len(q.Interventions) > maxInterventions {
		return &FieldError{
			"interventions",
			fmt.Sprintf("has %d entries, the most is %d", len(q.Interventions), maxInterventions),
		}
	}
	for _, v := range q.Interventions {
		err := layer.CheckIntervention(v, arch, c.Layers, c.Heads)
		if err == nil {
			err = errors.Join(
				checkList("layers", v.Layers, c.Layers, "layers"),
				checkList("heads", v.Heads, c.Heads, "heads"),
			)
		}
		if err != nil {
			return &FieldError{"interventions", strings.TrimPrefix(err.Error(), "intervention: ")}
		}
	}
	return q.checkMaps(arch)
}

func (q *Query) checkMaps(arch *layer.Arch) error {
	for i, name := range q.Maps {
		switch {
		case slices.Contains(q.Maps[:i], name):
			return &FieldError{"maps", fmt.Sprintf("has %.40q twice", name)}
		case name != A1 && name != A2 && name != Diff:
			return &FieldError{"maps", fmt.Sprintf("has %.40q, may have %s, %s and %s", name, A1, A2, Diff)}
		case name != A1 && arch.Maps < 2:
			return &FieldError{
				"maps",
				fmt.Sprintf("has %s, but the heads of this model have one map only, %s", name, A1),
			}
		}
	}
	return nil
}

// checkList reports an entry that is out of range or repeated.
func checkList(name string, list []int, n int, of string) error {
	if len(list) > n {
		return &FieldError{name, fmt.Sprintf("has %d entries, there are %d %s", len(list), n, of)}
	}
	seen := make([]bool, n)
	for _, i := range list {
		if i < 0 || i >= n {
			return &FieldError{name, fmt.Sprintf("has %d, must lie between 0 and %d: there are %d %s", i, n-1, n, of)}
		}
		if seen[i] {
			return &FieldError{name, fmt.Sprintf("has %d twice", i)}
		}
		seen[i] = true
	}
	return nil
}

// DefaultSize is the default number of rows of a map: more could not be distinguished on a page.
const DefaultSize = 256

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// FieldError is an invalid field of a query.
type FieldError struct{ Field, Problem string }

// Error implements error.
func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// Cost is the cost of a completed query.
type Cost struct {
	Cells   int // numbers in the reply
	Entries int // entries of maps to compute
}

// Cost returns the size of the reply and the amount of work. Each number of a query is bounded by the model's, but
// their product is not.
func (q *Query) Cost() Cost {
	T := len(q.IDs)
	n := tiles(T, q.Size).count
	heads := len(q.Layers) * len(q.Heads)
	c := Cost{Cells: T * heads}
	c.Cells += heads * len(q.Maps) * n * (n + 1) / 2
	for _, t := range q.Rows {
		c.Cells += heads * len(q.Maps) * (t + 1)
	}
	c.Cells += len(q.Next) * q.Top * 2
	maps := 0
	for _, name := range q.Maps {
		if maps++; name == Diff {
			maps++ // both maps are read again
		}
	}
	c.Entries = heads * maps * T * T
	return c
}

// Reply is the result of a query.
type Reply struct {
	Arch   string  `json:"arch"`
	Layers int     `json:"layers"`
	Heads  int     `json:"heads"`  // of a layer
	Maps   int     `json:"maps"`   // of a head: 1, or 2
	Tile   int     `json:"tile"`   // tokens per row of Head.Maps; 1 unless the prompt is longer than the requested size
	Cells  int     `json:"cells"`  // numbers in this reply
	Loss   float64 `json:"loss"`   // mean over the tokens after the first, nats
	Tokens []Token `json:"tokens"` // the prompt
	Shown  []Head  `json:"shown"`  // the requested heads, by layer and head
	Next   []Next  `json:"next"`   // most likely next tokens
}

// Token is one token of the prompt.
type Token struct {
	ID      int32    `json:"id"`
	Text    string   `json:"text"`
	Logprob *float64 `json:"logprob"` // given the tokens before it; nil for the first
}

// Head is one head. Maps are lower triangles row by row: row i has entries for columns 0 to i. In tiles, an entry is
// the attention summed over the key tile and averaged over the tokens of the query tile, so that row sums are
// preserved.
type Head struct {
	Layer   int               `json:"layer"`
	Head    int               `json:"head"`
	Lambda  float64           `json:"lambda"`            // mean over the tokens; 0 without λ
	Lambdas Floats            `json:"lambdas,omitempty"` // by token, where λ depends on it
	Maps    map[string]Floats `json:"maps,omitempty"`
	Rows    []Row             `json:"rows,omitempty"`
}

// Row is the row of one token in each map.
type Row struct {
	Token int               `json:"token"`
	Maps  map[string]Floats `json:"maps"`
}

// Next is the most likely next tokens after a token, best first.
type Next struct {
	Token int     `json:"token"`
	Top   []Token `json:"top"`
}

// Look runs a completed query. spell formats a token as text. Interventions last for the call; without any, losses and
// logits are bit-identical to those of model.Score and model.Logits. When ctx ends, the remaining heads are not read,
// and its cause is returned. rest, unless nil, is called between pieces of the work: after every layer, and after every
// pieceEntries entries of maps.
func Look(ctx context.Context, m *model.Model, q *Query, spell func(id int32) string, rest func()) (*Reply, error) {
	if len(q.Interventions) > 0 {
		if err := m.Intervene(q.Interventions...); err != nil {
			return nil, err
		}
		defer func() { _ = m.Intervene() }() // an empty list cannot fail
	}
	T := len(q.IDs)
	b := &model.Batch{B: 1, T: T, IDs: q.IDs, Targets: append(slices.Clone(q.IDs[1:]), -1)}
	p := newProbe(ctx, q, rest)
	r := &Reply{Arch: m.Config.Arch, Layers: m.Config.Layers, Heads: m.Config.Heads, Tile: p.tiles.size, Next: []Next{}}
	top := newTopper(q.Top, spell)
	err := m.Look(
		b,
		p,
		q.Next,
		func(i int, logits []float32) {
			r.Next = append(r.Next, Next{Token: i, Top: top.of(logits)})
			p.spend(len(logits))
		},
	)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	losses := make([]float32, T)
	m.Losses(losses)
	if err := m.Device().Sync(); err != nil {
		return nil, err
	}
	for i, id := range q.IDs {
		t := Token{ID: id, Text: spell(id)}
		if x := float64(losses[i]); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("lab: the loss of token %d is %v: the model does not give numbers", i+1, x)
		}
		if i > 0 {
			lp := -float64(losses[i-1])
			t.Logprob = &lp
			r.Loss -= lp / float64(T-1)
		}
		r.Tokens = append(r.Tokens, t)
	}
	r.Maps, r.Shown, r.Cells = p.maps, p.shown, q.Cost().Cells
	return r, nil
}
