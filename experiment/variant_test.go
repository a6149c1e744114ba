package experiment

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"antiphase/layer"
)

// A variant may not have the name of an architecture, in --arch or not, nor one that claims use for something else.
func TestVariantNames(t *testing.T) {
	with := func(size string, v Variant) error {
		s := nanoSpec(8)
		s.Sizes, s.Archs, s.Variants = []string{size}, []string{"diff"}, []Variant{v}
		s.Set, s.Steps, s.Every, s.Probes, s.Tasks = nil, 0, 0, nil, []Ask{"lm"}
		return s.Check()
	}
	for _, a := range layer.Archs() {
		err := with("nano", Variant(a.Name+" diff model.head_norm=off"))
		want := "--variant: " + a.Name + " is the name of an architecture; a variant needs one of its own, such as " +
			a.Name + "-changed"
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v", a.Name, err)
		}
	}
	for _, x := range []struct {
		size string
		v    Variant
		ok   bool
	}{
		{"nano", "diff-nonorm diff model.head_norm=off", true},
		{"small", "diff-nonorm diff model.head_norm=off", true},
		{"nano", "diff-nonorm transformer model.head_norm=off", false},
		{"nano", "diff-nonorm diff model.head_norm=off optim.beta2=0.9", false},
		{"nano", "diff-nonorm diff optim.beta2=0.9", false},
		{"nano", "diff-l02 diff model.lambda_const=0.20 model.lambda_init=constant", true},
		{"nano", "diff-l02 diff model.lambda_init=constant model.lambda_const=0.3", false},
		{"mini", "diff2-grouped diff2 model.kv_heads=3", true},
		{"mini", "diff2-grouped diff2 model.kv_heads=2", false},
		{"mini", "diff2-grouped diff model.kv_heads=1", false},
		{"tiny", "diff2-grouped diff2 model.kv_heads=2", true},
		{"160m", "diff2-grouped diff2 model.kv_heads=3", false},
		{"160m", "diff2-grouped diff2 model.kv_heads=6", true},
		{"tiny", "transformer-1.5h transformer model.heads=6 model.kv_heads=2 model.ffn=304", true},
		{"tiny", "transformer-1.5h transformer model.heads=8 model.kv_heads=2 model.ffn=304", false},
		{"tiny", "diff2-mine diff2 model.kv_heads=1", true},
	} {
		err := with(x.size, x.v)
		if (err == nil) != x.ok {
			t.Errorf("%s, %s: %v", x.size, x.v, err)
		}
		name, _, _ := strings.Cut(string(x.v), " ")
		planned, size := plannedVariant(name)
		for _, word := range []string{name, string(planned), size, "another name"} {
			if err != nil && !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v does not say %q", x.v, err, word)
			}
		}
	}
}

// Whatever claims name is an architecture, or a variant that a command of the plan defines, everywhere as the same.
func TestClaimsAreDefined(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range claims {
		for _, name := range []string{c.arch, c.than} {
			if _, err := layer.LookupArch(name); err == nil || name == "" {
				continue
			}
			v, size := plannedVariant(name)
			if _, _, _, err := v.parts(); err != nil || size == "" {
				t.Errorf("%s is defined as %q, size %q", name, v, size)
			}
			seen[name] = true
		}
	}
	if len(seen) < 10 {
		t.Errorf("%q", slices.Sorted(maps.Keys(seen)))
	}
	for _, c := range cells {
		for _, v := range flagsOf(c.command)["variant"] {
			name, _, _ := strings.Cut(v, " ")
			if first, _ := plannedVariant(name); string(first) != v {
				t.Errorf("%q and %q", first, v)
			}
		}
	}
}

// A command's words are those that were quoted for it, on any system.
func TestFlagsOf(t *testing.T) {
	hard := []string{"", "it's", `say "x"`, `a\b`, "  two  spaces ", `'`, `''\'`, "–"}
	for _, system := range []string{"linux", "windows"} {
		line, want := "antiphase", []string{"antiphase"}
		for _, w := range hard {
			if system == "windows" && strings.Contains(w, `"`) {
				continue // no Windows path has it, and shells there have no one rule
			}
			line, want = line+" "+shellWord(w, system), append(want, w)
		}
		if got := shellWords(line); !slices.Equal(got, want) {
			t.Errorf("%s: %s is %q", system, line, got)
		}
	}
	got := flagsOf(`antiphase compare --set a=1 --set='b=2 3' --json -q --task "lm x=1" --inexact --dir x`)
	want := map[string][]string{"set": {"a=1", "b=2 3"},
		"json": {""}, "task": {"lm x=1"}, "inexact": {""}, "dir": {"x"}}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%q", got)
	}
}
