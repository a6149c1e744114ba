package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"antiphase/model"
)

// equalTo is how far apart the parameters of two sides may be and count as equal: architectures cannot match exactly.
const equalTo = 0.01

// sized is a side with its number of parameters.
type sized struct {
	side
	name       string // as shown
	parameters int
}

// differs says that a side has another number of parameters than another, with both counts; "" if they are equal.
func (w sized) differs(from sized) string {
	if w.parameters == 0 || from.parameters == 0 {
		return ""
	}
	more := float64(w.parameters)/float64(from.parameters) - 1
	if math.Abs(more) <= equalTo {
		return ""
	}
	return fmt.Sprintf("unequal parameters: %s has %d, %s %d (%s %%)", w.name, w.parameters, from.name, from.parameters,
		strings.ReplaceAll(fmt.Sprintf("%+.1f", 100*more), "-", "−"))
}

// unequal are sentences about the sides that differ from the first of their size.
func unequal(list []sized) (out []string) {
	for _, w := range list {
		first := slices.IndexFunc(list, func(x sized) bool { return x.size == w.size })
		if s := w.differs(list[first]); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Unequal are sentences about the sides of a grid that have another number of parameters than the first of their size:
// a comparison between them is not one of equal models.
func Unequal(runs []Run) []string {
	var list []sized
	for i := range runs {
		r := &runs[i]
		s := side{r.Size, r.Arch}
		if !slices.ContainsFunc(list, func(w sized) bool { return w.side == s }) {
			list = append(list, sized{s, r.Size + " " + r.Arch, r.parameters()})
		}
	}
	return unequal(list)
}

// parameters of the run's model.
func (r *Run) parameters() int { return model.Table(r.Recipe.Model).Count() }

// sized is a side with its number of parameters, 0 if it has no run.
func (f *final) sized(size, arch string) sized {
	w := sized{side: side{size, arch}, name: f.side(size, arch)}
	if i := slices.IndexFunc(f.rows, func(r Row) bool { return r.Size == size && r.Arch == arch }); i >= 0 {
		w.parameters = f.rows[i].Parameters
	}
	return w
}

// allSized are all sides that have runs.
func (f *final) allSized() (out []sized) {
	for _, size := range f.sizes {
		for _, arch := range f.archs {
			if w := f.sized(size, arch); w.parameters > 0 {
				out = append(out, w)
			}
		}
	}
	return out
}

// unequal says that a run's model is not of the size of the first side's; "" if it is.
func (s *Spec) unequal(r *Run) string {
	first := Run{Size: r.Size, Arch: s.sides()[0], LR: r.LR, Seed: r.Seed}
	var err error
	if first.Recipe, err = s.recipe(&first); err != nil {
		return "" // the grid has made it before
	}
	list := Unequal([]Run{first, *r})
	return strings.Join(list, "; ")
}
