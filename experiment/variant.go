package experiment

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"antiphase/layer"
)

// Variant is an architecture with its own settings, under a name: "diff-flat diff model.lambda_init=constant
// model.lambda_const=0.2". It is a side of the comparison like any architecture, with the same tuning budget.
type Variant string

// parts are the variant's name, its architecture and its settings.
func (v Variant) parts() (name, arch string, set []string, err error) {
	words := strings.Fields(string(v))
	if len(words) < 3 {
		return "", "", nil, fmt.Errorf("--variant: %q; want NAME ARCH KEY=VALUE…", string(v))
	}
	name, arch, set = words[0], words[1], words[2:]
	if !filepath.IsLocal(name) || strings.ContainsAny(name, `/\:`) {
		return "", "", nil, fmt.Errorf("--variant: %q cannot be the name of a folder", name)
	}
	for _, s := range set {
		if !strings.Contains(s, "=") {
			return "", "", nil, fmt.Errorf("--variant: %s: %q is not a setting; want KEY=VALUE", name, s)
		}
	}
	if _, err := layer.LookupArch(arch); err != nil {
		return "", "", nil, fmt.Errorf("--variant: %s: %w", name, err)
	}
	return name, arch, set, nil
}

// sides are the names of all architectures and variants.
func (s *Spec) sides() []string {
	out := slices.Clone(s.Archs)
	for _, v := range s.Variants {
		name, _, _, _ := v.parts() // checked by Check
		out = append(out, name)
	}
	return out
}

// made is the architecture of a side, with the settings that make it a variant.
func (s *Spec) made(side string) (arch string, set []string) {
	for _, v := range s.Variants {
		if name, arch, set, err := v.parts(); err == nil && name == side {
			return arch, set
		}
	}
	return side, nil
}

// checkMeaning rejects a variant with a name that claims use, unless it is what the plan's command makes of its
// architecture.
func checkMeaning(s *Spec) error {
	for _, v := range s.Variants {
		name, arch, _, err := v.parts()
		if err != nil {
			return err
		}
		planned, size := plannedVariant(name)
		if planned == "" {
			continue
		}
		plan := &Spec{Sizes: []string{size}, Archs: []string{arch}, Variants: []Variant{planned}}
		_, of, _, _ := planned.parts() // checked by a test
		for _, here := range s.Sizes {
			same := of == arch
			if same {
				if same, err = sameVariant(plan, size, s, here, name); err != nil {
					return err
				}
			}
			if !same {
				return fmt.Errorf("--variant: %q is not what claims mean by %s, which is %q at size %s: use its "+
					"architecture and settings, or another name", string(v), name, string(planned), size)
			}
		}
	}
	return nil
}

// plannedVariant is the variant that claims mean by a name, and the size that its command has; "" if none do.
func plannedVariant(name string) (v Variant, size string) {
	for i := range cells {
		flags := flagsOf(cells[i].command)
		for _, text := range flags["variant"] {
			if x := Variant(text); strings.HasPrefix(text, name+" ") {
				return x, flags["size"][0]
			}
		}
	}
	return "", ""
}

// shape are the fields of a model that follow its size: of a variant their ratios to its architecture's count.
var shape = []string{"model.heads", "model.kv_heads", "model.head_dim", "model.ffn"}

// sameVariant reports whether a variant of two experiments changes the same of its architecture at a size of each.
func sameVariant(a *Spec, sizeA string, b *Spec, sizeB, name string) (bool, error) {
	x, err := changes(a, sizeA, name)
	if err != nil {
		return false, err
	}
	y, err := changes(b, sizeB, name)
	return maps.EqualFunc(x, y, func(p, q departure) bool {
		return p.value == q.value && math.Abs(p.ratio-q.ratio) <= 0.05*p.ratio // widths are rounded
	}), err
}

// departure is the value of a field that a variant changes, or of one of shape its ratio to the architecture's.
type departure struct {
	value string
	ratio float64
}

// changes are the fields in which a variant differs from its architecture at a size.
func changes(s *Spec, size, name string) (map[string]departure, error) {
	arch, _ := s.made(name)
	own, err := s.recipe(&Run{Size: size, Arch: name, LR: 1})
	if err != nil {
		return nil, err
	}
	base, err := s.recipe(&Run{Size: size, Arch: arch, LR: 1})
	if err != nil {
		return nil, err
	}
	out := map[string]departure{}
	was := base.Fields()
	for i, f := range own.Fields() {
		if f.Value == was[i].Value || f.Path == "name" {
			continue
		}
		out[f.Path] = departure{value: f.Value}
		if slices.Contains(shape, f.Path) {
			a, _ := strconv.ParseFloat(f.Value, 64) // whole numbers
			b, _ := strconv.ParseFloat(was[i].Value, 64)
			out[f.Path] = departure{ratio: a / b}
		}
	}
	return out, nil
}
