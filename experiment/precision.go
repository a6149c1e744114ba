package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// precision is that of the device, "" if it is not known. Rows of older versions have it in the name of their machine.
func (o *origin) precision() string {
	if o.Precision != "" {
		return o.Precision
	}
	var parts []string
	for _, s := range strings.Split(o.Machine, ", ") {
		if slices.Contains([]string{"fp32", "bf16", "int8", "int8 cache"}, s) {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ", ")
}

// samePrecision rejects runs that were computed in different precisions: one table would compare them. It returns the
// first row with a known one, nil if there is none.
func samePrecision(rows []Row) (known *Row, err error) {
	for i := range rows {
		r := &rows[i]
		switch p := r.precision(); {
		case p == "":
		case known == nil:
			known = r
		case p != known.precision():
			return nil, fmt.Errorf("%s and %s are both of experiment %s, but were computed in %s and %s", known.Run,
				r.Run, r.Experiment, known.precision(), p)
		}
	}
	return known, nil
}

// onePrecision rejects runs, of this folder and from elsewhere, in different precisions, and in another one than that
// of this process if runs are left for it.
func onePrecision(l *lab, have map[string][]Row) error {
	rows, err := l.rows()
	if err != nil {
		return nil // publishing says what is wrong with them
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		rows = append(rows, have[name]...)
	}
	first, err := samePrecision(rows)
	if err != nil {
		return fmt.Errorf("%w: %w", err, errOtherRows)
	}
	if first == nil || l.Precision == "" || first.precision() == l.Precision {
		return nil
	}
	runs, err := chosen(l.spec, rows, false)
	for i := range runs {
		if r := &runs[i]; !l.done(r) && have[r.Name()] == nil {
			return fmt.Errorf("%s was computed in %s, %s would be in %s: use the same --device and --precision, or "+
				"another --dir: %w", first.Run, first.precision(), r.Name(), l.Precision, errOtherRows)
		}
	}
	return err
}
