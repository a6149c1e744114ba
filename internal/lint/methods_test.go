package lint

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"testing"
)

// A type with more methods than this does several things. What it embeds counts where it is declared.
const maxMethods = 25

// methods counts the methods that each type declares, by package and name. Systems' variants of one method count once;
// tests and generated files do not count.
func methods(all []*source) map[string]int {
	names := map[string]map[string]bool{}
	for _, s := range all {
		if s.ast == nil || s.test || s.generated {
			continue
		}
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			of := s.dir + "." + receiver(f.Recv)
			if names[of] == nil {
				names[of] = map[string]bool{}
			}
			names[of][f.Name.Name] = true
		}
	}
	count := map[string]int{}
	for of, all := range names {
		count[of] = len(all)
	}
	return count
}

// manyMethods names the types above the bound.
func manyMethods(all []*source) (out []string) {
	count := methods(all)
	for _, of := range slices.Sorted(maps.Keys(count)) {
		if n := count[of]; n > maxMethods {
			out = append(out, fmt.Sprintf("%s has %d methods, at most %d: split it by concern", of, n, maxMethods))
		}
	}
	return out
}

func TestMethods(t *testing.T) { report(t, manyMethods(tree(t))) }

func TestMethodsCanFail(t *testing.T) {
	with := func(n int) map[string]string {
		text := "package model\n"
		for i := range n {
			text += fmt.Sprintf("func (x *T[E]) f%d() {}\n", i)
		}
		return map[string]string{"model/x.go": text, "model/y.go": "package model\nfunc (x T[E]) f0() {}",
			"model/z_test.go": "package model\nfunc (x T[E]) g() {}"}
	}
	pass(t, manyMethods, with(maxMethods))
	refuse(t, manyMethods, with(maxMethods+1))
}
