package recipe

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"testing"

	"antiphase/layer"
	"antiphase/model"
)

// A description of a size that gives a number of parameters or layers × width gives the right one, for every
// architecture.
func TestSizesAreAsDescribed(t *testing.T) {
	parameters, shape := regexp.MustCompile(`([\d.]+)M parameters`), regexp.MustCompile(`(\d+) × (\d+)`)
	checked := 0
	for _, s := range Sizes() {
		for _, a := range layer.Archs() {
			r, err := Named(s.Name, a.Name)
			if err != nil {
				t.Fatal(err)
			}
			if m := parameters.FindStringSubmatch(s.Doc); m != nil {
				checked++
				said, err := strconv.ParseFloat(m[1], 64)
				if got := float64(model.Table(r.Model).Count()) / 1e6; err != nil ||
					!(math.Abs(got-said) <= 0.03*said) {
					t.Errorf("%s %s: %q, and it has %.2fM", s.Name, a.Name, s.Doc, got)
				}
			}
			if m := shape.FindString(s.Doc); m != "" {
				checked++
				if got := fmt.Sprintf("%d × %d", r.Model.Layers, r.Model.Dim); got != m {
					t.Errorf("%s %s: %q, and it is %s", s.Name, a.Name, s.Doc, got)
				}
			}
		}
	}
	if checked < 8*len(layer.Archs()) {
		t.Errorf("%d descriptions were checked", checked)
	}
}
