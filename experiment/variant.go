package experiment

import (
	"fmt"
	"path/filepath"
	"slices"
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
