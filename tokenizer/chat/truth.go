package chat

import (
	"fmt"
	"strings"

	"github.com/nikolalohinski/gonja/v2/builtins"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/nodes"
)

// condition guards an expression of which only the truth matters, unless it is nil.
func condition(e *nodes.Expression) error {
	if *e == nil {
		return nil
	}
	at := (*e).Position()
	err := guard(e)
	*e = filtered(at, *e, truthFilter)
	return err
}

// truth makes an empty dict false, as in Python; gonja takes every dict for true.
func truth(_ *exec.Evaluator, in *exec.Value, _ *exec.VarArgs) *exec.Value {
	if d, ok := in.Interface().(*exec.Dict); ok && len(d.Pairs) == 0 {
		return exec.AsValue(false)
	}
	return in
}

// guardTest rewrites a test. "x is defined" asks whether there is an x, which may be None: gonja takes None for undefined.
func guardTest(n *nodes.TestExpression) error {
	if err := guardList(n.Test.Args); err != nil {
		return err
	}
	if err := guardMap(n.Test.Kwargs); err != nil {
		return err
	}
	if n.Test.Name != "defined" && n.Test.Name != "undefined" {
		return guardAll(&n.Expression)
	}
	at := n.Position()
	key := func(s string) nodes.Expression { return &nodes.String{Location: at, Val: s} }
	switch x := n.Expression.(type) {
	case *nodes.Name:
		n.Expression = filtered(at, x, presentFilter, key(x.Name.Val))
	case *nodes.GetAttribute:
		if err := guardParts(&x.Node); err != nil {
			return err
		}
		n.Expression = filtered(at, x.Node, partFilter, key(x.Attribute))
	case *nodes.GetItem:
		if err := guardParts(&x.Node, &x.Arg); err != nil {
			return err
		}
		n.Expression = filtered(at, x.Node, partFilter, nodes.Expression(x.Arg))
	default:
		return guardAll(&n.Expression)
	}
	return nil
}

// present replaces None by true if it is the value of a variable. A parameter of a macro that was not given is None too:
// parameters are held as gonja's values, and stay as they are.
func present(e *exec.Evaluator, in *exec.Value, p *exec.VarArgs) *exec.Value {
	if in.IsError() || !in.IsNil() {
		return in
	}
	if held, ok := e.Environment.Context.Get(p.Args[0].String()); ok && held == nil {
		return exec.AsValue(true)
	}
	return in
}

// part takes an item or an attribute of a value, which is evaluated once: tests inside each other would otherwise take
// twice the time at every level. None that is there is replaced by true.
func part(e *exec.Evaluator, in *exec.Value, p *exec.VarArgs) *exec.Value {
	of := index(e, in, p)
	if of.IsError() || of.IsNil() {
		return of
	}
	key := p.Args[0]
	x, found := of.GetItem(key.Interface())
	if !found && key.IsString() {
		x, found = in.GetAttribute(key.String())
	}
	if found && !x.IsNil() {
		return x
	}
	there := false
	switch of := in.Interface().(type) {
	case *exec.Dict:
		for _, pair := range of.Pairs {
			there = there || pair.Key.EqualValueTo(key)
		}
	case map[string]any:
		_, there = of[key.String()]
	default:
		there = in.IsList() && key.IsInteger() && fromEnd(key.Integer(), in.Len()) >= 0
	}
	if there {
		return exec.AsValue(true)
	}
	return exec.AsValue(nil)
}

// sameTests are gonja's tests that agree with jinja2's.
var sameTests = strings.Fields(`boolean callable defined divisibleby eq equalto == even float in integer iterable mapping
	ne != none sameas string true undefined`)

// chatTests are all tests.
func chatTests() *exec.TestSet {
	plain := func(f func(*exec.Value) bool) exec.TestFunction {
		return func(_ *exec.Evaluator, in *exec.Value, _ *exec.VarArgs) (bool, error) { return f(in), nil }
	}
	tests := map[string]exec.TestFunction{
		"false":    plain(func(v *exec.Value) bool { return v.IsBool() && !v.Bool() }),
		"number":   plain(func(v *exec.Value) bool { return v.IsNumber() || v.IsBool() }),
		"odd":      plain(func(v *exec.Value) bool { return v.IsInteger() && v.Integer()%2 != 0 }),
		"sequence": plain(func(v *exec.Value) bool { return v.IsList() || v.IsString() || v.IsDict() }),
		"lower":    plain(func(v *exec.Value) bool { return allCased(v.String(), isLower) }),
		"upper":    plain(func(v *exec.Value) bool { return allCased(v.String(), isUpper) }),
	}
	for op, names := range map[string]string{"<": "lt lessthan <", "<=": "le <=", ">": "gt greaterthan >", ">=": "ge >="} {
		for _, name := range strings.Fields(names) {
			tests[name] = func(_ *exec.Evaluator, in *exec.Value, p *exec.VarArgs) (bool, error) {
				if len(p.Args) != 1 {
					return false, fmt.Errorf("test %s takes one argument, got %d", name, len(p.Args))
				}
				c, err := compare(in, p.Args[0])
				return err == nil && orders[op](c), err
			}
		}
	}
	for _, name := range sameTests {
		tests[name], _ = builtins.Tests.Get(name)
	}
	return exec.NewTestSet(tests)
}
