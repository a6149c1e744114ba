package layer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"antiphase/device"
	"antiphase/tensor"
)

// Intervention changes what attention heads compute at run time, without changing weights. Layers and heads count from
// 0; an empty list means all. A differential head becomes
//
//	head = HeadNorm((A1 − f·λ·A2')·V)
//
// with f = Lambda and A2' the result of Second applied to A2. Gradients ignore interventions.
type Intervention struct {
	Layers   []int    `json:"layers,omitempty"`
	Heads    []int    `json:"heads,omitempty"`
	Lambda   *float64 `json:"lambda,omitempty"`   // factor on λ; 0 drops the second map, absent leaves λ
	Second   Second   `json:"second,omitempty"`   // replaces the second map
	Seed     uint64   `json:"seed,omitempty"`     // for Shuffled
	Knockout bool     `json:"knockout,omitempty"` // the head's output is zero
}

// Second replaces a differential head's second map.
type Second string

// The values of Second.
const (
	SecondAsIs     Second = ""
	SecondShuffled Second = "shuffled" // each row's entries permuted over the positions that it sees
	SecondAveraged Second = "averaged" // uniform over the positions that a row sees
)

// edit is the combined effect of all interventions on one head.
type edit struct {
	lambda   float64
	second   Second
	seed     uint64
	knockout bool
}

// edits are those of one layer's heads; nil if there are none.
type edits []edit

// Intervene makes the layer's forward passes, with and without a cache, apply the interventions that name it. An empty
// list, or one that changes nothing, restores the plain computation. Factors of λ multiply; of several Seconds for one
// head the last counts.
func (l *Attention) Intervene(list []Intervention) error {
	heads := make(edits, l.cfg.Heads)
	for h := range heads {
		heads[h].lambda = 1
	}
	for _, v := range list {
		if err := v.check(l.cfg.Arch, l.cfg.Heads); err != nil {
			return err
		}
		if len(v.Layers) == 0 || slices.Contains(v.Layers, l.cfg.Layer) {
			heads.apply(v)
		}
	}
	l.cfg.edits = nil
	if slices.ContainsFunc(heads, func(e edit) bool { return e != edit{lambda: 1} }) {
		l.cfg.edits = heads
	}
	return nil
}

// ByHost reports whether passes need the host (for interventions or low-bit attention) and so cannot be recorded.
func (l *Attention) ByHost() bool { return l.cfg.edits != nil || l.low != nil }

func (es edits) apply(v Intervention) {
	for h := range es {
		if len(v.Heads) > 0 && !slices.Contains(v.Heads, h) {
			continue
		}
		e := &es[h]
		if v.Lambda != nil {
			e.lambda *= *v.Lambda
		}
		if v.Second != SecondAsIs {
			e.second, e.seed = v.Second, v.Seed
		}
		e.knockout = e.knockout || v.Knockout
	}
}

// check reports what an architecture with this many heads does not support.
func (v Intervention) check(a *Arch, heads int) error {
	for _, h := range v.Heads {
		if h < 0 || h >= heads {
			return fmt.Errorf("intervention: head %d, counted from 0: there are %d", h, heads)
		}
	}
	if v.Lambda != nil && !(*v.Lambda > -1e6 && *v.Lambda < 1e6) {
		return fmt.Errorf("intervention: λ times %g: want a factor between -1e6 and 1e6", *v.Lambda)
	}
	switch v.Second {
	case SecondAsIs, SecondShuffled, SecondAveraged:
	default:
		return fmt.Errorf("intervention: second is %q, must be %q or %q", v.Second, SecondShuffled, SecondAveraged)
	}
	if a.Maps == 1 && (v.Lambda != nil || v.Second != SecondAsIs) {
		return fmt.Errorf(
			"intervention: heads of the architecture %s have one map and no λ; they can only be knocked out", a.Name)
	}
	return nil
}

// CheckIntervention validates an intervention for a network with this many layers and heads.
func CheckIntervention(v Intervention, a *Arch, layers, heads int) error {
	for _, l := range v.Layers {
		if l < 0 || l >= layers {
			return fmt.Errorf("intervention: layer %d, counted from 0: there are %d", l, layers)
		}
	}
	return v.check(a, heads)
}

// scaled returns λ, Stat [1,1] or [N,H], times each head's factor.
func (es edits) scaled(p *Pass, lam tensor.Tensor, rows int) tensor.Tensor {
	if !slices.ContainsFunc(es, func(e edit) bool { return e.lambda != 1 }) {
		return lam
	}
	x := readAll(p.Dev, lam)
	same := !slices.ContainsFunc(es, func(e edit) bool { return e.lambda != es[0].lambda })
	if len(x) == 1 && same {
		out := p.stat(1, 1)
		device.WriteFloats(p.Dev, out, []float64{x[0] * es[0].lambda})
		return out
	}
	out, y := p.stat(rows, len(es)), make([]float64, rows*len(es))
	for i := range y {
		at := i
		if len(x) == 1 {
			at = 0
		}
		y[i] = x[at] * es[i%len(es)].lambda
	}
	device.WriteFloats(p.Dev, out, y)
	return out
}

// recomputed lists the heads whose second map differs from what the device computes.
func (es edits) recomputed() (heads []int) {
	for h, e := range es {
		if e.second != SecondAsIs && e.lambda != 0 && !e.knockout {
			heads = append(heads, h)
		}
	}
	return heads
}

// knock zeroes the output of disabled heads.
func (es edits) knock(p *Pass, out tensor.Tensor, width int) {
	for h, e := range es {
		if e.knockout {
			p.Dev.Zero(out.Columns(h*width, (h+1)*width))
		}
	}
}

// remap replaces a row of the second map in place; the row need not sum to 1. Its entries belong to the positions
// visible at position pos. The shuffled order depends only on seed, layer, head and position, not on the other rows of
// the pass.
func (es edits) remap(row []float64, layer, head, pos int) {
	if es == nil {
		return
	}
	switch e := es[head]; e.second {
	case SecondShuffled:
		g := rand.New(rand.NewPCG(e.seed, uint64(layer)<<48|uint64(head)<<32|uint64(pos)))
		g.Shuffle(len(row), func(i, j int) { row[i], row[j] = row[j], row[i] })
	case SecondAveraged:
		sum := 0.0
		for _, x := range row {
			sum += x
		}
		for i := range row {
			row[i] = sum / float64(len(row))
		}
	}
}

// String formats an intervention as ParseIntervention reads it.
func (v Intervention) String() string {
	var what []string
	if v.Lambda != nil {
		what = append(what, fmt.Sprintf("lambda=%g", *v.Lambda))
	}
	if v.Second != SecondAsIs {
		s := "second=" + string(v.Second)
		if v.Seed != 0 {
			s += ":" + strconv.FormatUint(v.Seed, 10)
		}
		what = append(what, s)
	}
	if v.Knockout {
		what = append(what, "knockout")
	}
	if len(what) == 0 {
		what = append(what, "nothing")
	}
	out := strings.Join(what, "+")
	if len(v.Layers) > 0 {
		out += "@L" + numbers(v.Layers)
	}
	if len(v.Heads) > 0 {
		out += "@H" + numbers(v.Heads)
	}
	return out
}

func numbers(list []int) string {
	var out []string
	for _, x := range list {
		out = append(out, strconv.Itoa(x+1))
	}
	return strings.Join(out, ".")
}

// ParseIntervention reads "lambda=0.5", "second=shuffled:7", "second=averaged", "knockout", or several joined by +,
// followed by a place: "@L2" (layer 2), "@L1.3@H2" (head 2 of layers 1 and 3). Nothing may be given twice. The text
// counts layers and heads from 1, as listings do.
func ParseIntervention(text string) (v Intervention, err error) {
	what, places, placed := strings.Cut(text, "@")
	for _, s := range strings.Split(what, "+") {
		if err := v.parse(s); err != nil {
			return v, err
		}
	}
	if !placed {
		return v, nil
	}
	for _, s := range strings.Split(places, "@") {
		list, err := places1(s)
		switch {
		case err != nil:
			return v, fmt.Errorf("intervention %q: %w", text, err)
		case s[0] == 'L' && v.Layers == nil:
			v.Layers = list
		case s[0] == 'H' && v.Heads == nil:
			v.Heads = list
		default:
			return v, fmt.Errorf("intervention %q: @%c is given twice; several are joined by dots, as in @L1.3", text,
				s[0])
		}
	}
	return v, nil
}

// places1 parses "L1.3" or "H2", counted from 1.
func places1(s string) (list []int, err error) {
	if len(s) < 2 || s[0] != 'L' && s[0] != 'H' {
		return nil, fmt.Errorf("%q is not a place; want @L2, @H1 or @L1.3@H2", s)
	}
	for _, n := range strings.Split(s[1:], ".") {
		x, err := strconv.Atoi(n)
		if err != nil || x < 1 {
			return nil, fmt.Errorf("%q in %q is not a number from 1", n, s)
		}
		list = append(list, x-1)
	}
	return list, nil
}

func (v *Intervention) parse(s string) error {
	key, value, _ := strings.Cut(s, "=")
	switch {
	case key == "nothing" && value == "":
	case key == "knockout" && value == "":
		v.Knockout = true
	case key == "lambda" && v.Lambda == nil:
		f, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("intervention %q: %q is not a factor", s, value)
		}
		v.Lambda = &f
	case key == "second" && value != "" && value[0] != ':' && v.Second == SecondAsIs:
		kind, seed, seeded := strings.Cut(value, ":")
		v.Second = Second(kind)
		if seeded {
			n, err := strconv.ParseUint(seed, 10, 64)
			if err != nil {
				return fmt.Errorf("intervention %q: %q is not a seed", s, seed)
			}
			v.Seed = n
		}
	default:
		return fmt.Errorf(
			"intervention %q: want nothing, lambda=FACTOR, second=shuffled, second=averaged or knockout, each once", s)
	}
	return nil
}
