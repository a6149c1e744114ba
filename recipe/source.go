package recipe

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Source is one source of text. In a recipe it is a string, PATH or PATH@WEIGHT, or an object with path, weight and
// epochs.
type Source struct {
	Path   string  // a file, a folder, a glob, synthetic[:options], goroot or a built token set
	Weight float64 // rows are drawn in proportion to it; 0 if no source has a weight
	Epochs float64 // maximum number of passes; 0 means no bound
}

// Paths makes sources without weights.
func Paths(paths ...string) []Source {
	out := make([]Source, len(paths))
	for i, p := range paths {
		out[i].Path = p
	}
	return out
}

// ParseSource reads PATH, PATH@WEIGHT or an object in JSON. An @ before a slash belongs to the path; for a path that
// begins with a brace write ./{.
func ParseSource(s string) (Source, error) {
	if strings.HasPrefix(s, "{") {
		return parseObject([]byte(s))
	}
	i := strings.LastIndexByte(s, '@')
	if i < 0 || strings.ContainsAny(s[i:], `/\`) {
		return Source{Path: s}, nil
	}
	w, err := strconv.ParseFloat(s[i+1:], 64)
	if err != nil {
		return Source{}, fmt.Errorf(
			`source %q: weight %q is not a number; for a path with an @ in its name write {"path": %q}`, s, s[i+1:], s)
	}
	return Source{Path: s[:i], Weight: w}, positive(s, "weight", w)
}

func positive(source, what string, x float64) error {
	const low, high = 1e-18, 1e18 // sums, and products with numbers of rows, stay finite and exact enough
	switch {
	case !(x > 0):
		return fmt.Errorf("source %q: %s is %g, must be positive", source, what, x)
	case x < low || x > high:
		return fmt.Errorf("source %q: %s is %g, must be from %g to %g", source, what, x, low, high)
	}
	return nil
}

// String formats the source for display.
func (s Source) String() string {
	out := s.Path
	if s.Weight > 0 {
		out += "@" + strconv.FormatFloat(s.Weight, 'g', -1, 64)
	}
	if s.Epochs > 0 {
		out += fmt.Sprintf(" (at most %g epochs)", s.Epochs)
	}
	return out
}

// sourceJSON is a source as an object; absent fields are nil.
type sourceJSON struct {
	Path   string   `json:"path"`
	Weight *float64 `json:"weight,omitempty"`
	Epochs *float64 `json:"epochs,omitempty"`
}

// MarshalJSON writes a string if that is sufficient.
func (s Source) MarshalJSON() ([]byte, error) {
	if p, _ := ParseSource(s.Path); s == p { // not of a path that is no source
		return json.Marshal(s.Path)
	}
	o := sourceJSON{Path: s.Path}
	if s.Weight != 0 {
		o.Weight = &s.Weight
	}
	if s.Epochs != 0 {
		o.Epochs = &s.Epochs
	}
	return json.Marshal(o)
}

// UnmarshalJSON takes a string or an object.
func (s *Source) UnmarshalJSON(b []byte) (err error) {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*s, err = ParseSource(text)
		return err
	}
	*s, err = parseObject(b)
	return err
}

func parseObject(b []byte) (Source, error) {
	var o sourceJSON
	if err := decode(b, &o); err != nil {
		return Source{}, fmt.Errorf("a source is a string or an object with path, weight and epochs: %w", err)
	}
	s := Source{Path: o.Path}
	for _, f := range []struct {
		name string
		from *float64
		to   *float64
	}{{"weight", o.Weight, &s.Weight}, {"epochs", o.Epochs, &s.Epochs}} {
		if f.from == nil {
			continue
		}
		if err := positive(o.Path, f.name, *f.from); err != nil {
			return Source{}, err
		}
		*f.to = *f.from
	}
	return s, nil
}

// Mixed reports whether rows are drawn from each source separately.
func (d *Data) Mixed() bool {
	return len(d.Sources) > 0 && (d.Sources[0].Weight > 0 || d.Sources[0].Epochs > 0)
}

// checkSources requires a weight for all sources or for none.
func (d *Data) checkSources() error {
	if len(d.Sources) == 0 {
		return fmt.Errorf("data.sources: is empty; name files, a folder, \"synthetic\" or \"goroot\"")
	}
	weighted := 0
	for _, s := range d.Sources {
		if s.Path == "" {
			return fmt.Errorf("data.sources: one of them is empty; name files, a folder, \"synthetic\" or \"goroot\"")
		}
		if s.Weight > 0 {
			weighted++
		}
		if s.Epochs > 0 && s.Weight == 0 && len(d.Sources) > 1 {
			return fmt.Errorf("data.sources: %s has a bound on its epochs and no weight; give all sources weights", s)
		}
	}
	switch {
	case weighted != 0 && weighted != len(d.Sources):
		return fmt.Errorf("data.sources: %d of %d have a weight; give all of them one, or none", weighted,
			len(d.Sources))
	case d.Mixed() && d.Order == "stream":
		return fmt.Errorf("data.order: a stream takes all sources as one; drop the weights, or set data.order=random")
	case d.Mixed() && d.MaxTokens > 0:
		return fmt.Errorf(
			"data.max_tokens: would cut the last sources off; with weights, bound each source by its epochs")
	}
	return nil
}
