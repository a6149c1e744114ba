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

// debts are the types that were larger when the rule was made, with the number of methods each had. A type may only lose
// methods; one that is within the bound leaves the list.
var debts = map[string]int{
	"server.Server": 68,
}

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

// manyMethods names the types above the bound and the debts that are out of date.
func manyMethods(all []*source, debts map[string]int) (out []string) {
	count := methods(all)
	for of, n := range count {
		switch owed, ok := debts[of]; {
		case ok && n > owed:
			out = append(out, fmt.Sprintf("%s has %d methods, and had %d when the rule was made: split it by concern", of, n, owed))
		case !ok && n > maxMethods:
			out = append(out, fmt.Sprintf("%s has %d methods, at most %d: split it by concern", of, n, maxMethods))
		}
	}
	for _, of := range slices.Sorted(maps.Keys(debts)) {
		if count[of] <= maxMethods {
			out = append(out, fmt.Sprintf("%s has %d methods: take it off the list of debts", of, count[of]))
		}
	}
	return out
}

func TestMethods(t *testing.T) { report(t, manyMethods(tree(t), debts)) }

func TestMethodsCanFail(t *testing.T) {
	with := func(n int) map[string]string {
		text := "package model\n"
		for i := range n {
			text += fmt.Sprintf("func (x *T[E]) f%d() {}\n", i)
		}
		return map[string]string{"model/x.go": text, "model/y.go": "package model\nfunc (x T[E]) f0() {}", "model/z_test.go": "package model\nfunc (x T[E]) g() {}"}
	}
	rule := func(debts map[string]int) func([]*source) []string {
		return func(all []*source) []string { return manyMethods(all, debts) }
	}
	pass(t, rule(nil), with(maxMethods))
	refuse(t, rule(nil), with(maxMethods+1))
	pass(t, rule(map[string]int{"model.T": maxMethods + 1}), with(maxMethods+1))
	refuse(t, rule(map[string]int{"model.T": maxMethods + 1}), with(maxMethods+2))
	refuse(t, rule(map[string]int{"model.T": maxMethods + 1}), with(maxMethods))
}
