package experiment

import (
	"fmt"
	"slices"
	"strings"

	"antiphase/eval"
	"antiphase/eval/report"
)

// tuning is every run of an experiment, and the selected learning rates.
type tuning struct {
	all   []Row
	sizes []string
	archs []string
	best  map[[2]string]float64
}

// by is the measure that selected the learning rates, and its label.
func (f *tuning) by() (measure, label string) {
	measure = heldOut
	if len(f.all) > 0 {
		measure = f.all[0].tunedBy()
	}
	if measure == heldOut {
		return heldOut, "held-out loss"
	}
	for _, r := range f.all {
		if r.Measure == measure && r.Label != "" {
			return measure, strings.TrimSuffix(r.Label, ", %") + " (" + measure + ")"
		}
	}
	return measure, measure
}

// says is a sentence about how the learning rates were selected.
func (f *tuning) says() string {
	most := 0
	for _, size := range f.sizes {
		for _, arch := range f.archs {
			most = max(most, len(f.rates(size, arch)))
		}
	}
	if most < 2 {
		return "One learning rate was tried for each architecture, so nothing was tuned."
	}
	measure, label := f.by()
	s := "The learning rate of each architecture is the one with the best " + label
	if measure != heldOut {
		s = strings.TrimSuffix(s, label) + "“" + label + "”, not the one with the lowest held-out loss"
		if strings.HasSuffix(f.all[0].Tuned, orLoss) {
			s += ", which decides only among rates at a floor of the score"
		}
	}
	return s + "; the tuning grid shows all of them."
}

// grid lists every learning rate of every side.
func (f *tuning) grid() report.Listing {
	measure, label := f.by()
	head := []string{"size", "architecture", "learning rate", "seeds", "held-out loss, mean"}
	if measure != heldOut {
		head = append(head, label+", mean")
	}
	out := report.Listing{Title: "Tuning grid", Rows: [][]string{append(head, "chosen")},
		Note: "The learning rate of each architecture is chosen by " + label + " at the end of training. The " +
			"means are over the seeds that every rate has; these also count in the comparison, for every architecture."}
	var low []string
	for _, size := range f.sizes {
		for _, arch := range f.archs {
			for _, lr := range f.rates(size, arch) {
				out.Rows = append(out.Rows, f.gridRow(size, arch, lr))
			}
			if f.allFloored(size, arch, measure) {
				low = append(low, arch)
			}
		}
	}
	if len(low) > 0 {
		how := "so held-out loss decided"
		if !strings.HasSuffix(f.all[0].Tuned, orLoss) {
			how = "so the choice is by chance"
		}
		out.Note += fmt.Sprintf(" Every rate of %s is at a floor of the score, %s.", strings.Join(low, ", "), how)
	}
	out.Note += f.ends()
	return out
}

// ends names the sides whose selected rate is the lowest or highest of those tried: a better one may lie beyond.
func (f *tuning) ends() (note string) {
	var low, high []string
	measure, _ := f.by()
	for _, size := range f.sizes {
		for _, arch := range f.archs {
			rates, name := f.rates(size, arch), arch
			if len(f.sizes) > 1 {
				name = size + " " + arch
			}
			if best := f.best[[2]string{size, arch}]; len(rates) < 2 || f.allFloored(size, arch, measure) {
				continue
			} else if best == slices.Min(rates) {
				low = append(low, name)
			} else if best == slices.Max(rates) {
				high = append(high, name)
			}
		}
	}
	if len(low) > 0 {
		note += fmt.Sprintf(" The lowest rate tried was chosen for %s: a lower one may be better.",
			strings.Join(low, ", "))
	}
	if len(high) > 0 {
		note += fmt.Sprintf(" The highest rate tried was chosen for %s: a higher one may be better.",
			strings.Join(high, ", "))
	}
	return note
}

// allFloored reports whether a score tells nothing about a side's rates: each is on its floor.
func (f *tuning) allFloored(size, arch, measure string) bool {
	n := 0
	for _, r := range f.all {
		if r.Size == size && r.Arch == arch && r.Measure == measure {
			if _, on := r.floored(); !on {
				return false
			}
			n++
		}
	}
	return n > 0
}

func (f *tuning) gridRow(size, arch string, lr float64) []string {
	_, common := compared(trials(f.all)[side{size, arch}])
	var seeds []string
	of := func(measure string) (rows []Row) {
		for _, r := range f.all {
			if r.Size == size && r.Arch == arch && r.LR == lr && r.Measure == measure &&
				slices.Contains(common, r.Seed) {
				rows = append(rows, r)
			}
		}
		return rows
	}
	for _, r := range f.all {
		if r.Size == size && r.Arch == arch && r.LR == lr && (r.Measure == heldOut || r.Measure == Failed) {
			seeds = append(seeds, fmt.Sprint(r.Seed))
		}
	}
	failed := of(Failed)
	out := []string{size, arch, fmt.Sprintf("%g", lr), strings.Join(seeds, " "), meanText(of(heldOut), len(failed))}
	if measure, _ := f.by(); measure != heldOut {
		out = append(out, meanText(of(measure), len(failed)))
	}
	if f.best[[2]string{size, arch}] == lr {
		return append(out, "▸")
	}
	return append(out, "")
}

// meanText is the mean of a measure over runs, and the number of others that diverged.
func meanText(rows []Row, failed int) string {
	sum := 0.0
	for _, r := range rows {
		sum += r.Value
	}
	text := "–"
	if len(rows) > 0 {
		text = fmt.Sprintf("%.4f", sum/float64(len(rows)))
		if r := rows[0]; r.Better == eval.Higher && strings.HasSuffix(r.Label, "%") {
			text = fmt.Sprintf("%.1f %%", 100*sum/float64(len(rows)))
		}
	}
	switch {
	case failed > 0 && len(rows) == 0:
		return "diverged"
	case failed > 0:
		return fmt.Sprintf("%s; %d diverged", text, failed)
	}
	return text
}

// untuned describes how the tuning of two sides differs, or "".
func (f *tuning) untuned(size, a, b string) string {
	x, y := f.rates(size, a), f.rates(size, b)
	if slices.Equal(x, y) {
		return ""
	}
	if len(x) == len(y) {
		return fmt.Sprintf("learning rates tried: %s of %s, %s of %s", listed(x), a, listed(y), b)
	}
	return fmt.Sprintf("learning rates tried: %d of %s, %d of %s", len(x), a, len(y), b)
}

// rates are the learning rates tried for a side.
func (f *tuning) rates(size, arch string) []float64 {
	var out []float64
	for _, r := range f.all {
		if r.Size == size && r.Arch == arch && !slices.Contains(out, r.LR) {
			out = append(out, r.LR)
		}
	}
	slices.Sort(out)
	return out
}
