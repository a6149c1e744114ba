package chat

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/nikolalohinski/gonja/v2/builtins"
	"github.com/nikolalohinski/gonja/v2/exec"
)

// harmless are gonja's filters whose results are at most slightly larger than their input.
var harmless = strings.Fields(`abs e escape float int length count list map
	reject rejectattr safe select selectattr sort`)

// chatFilters are all filters, including those inserted by guard.go.
func chatFilters() map[string]exec.FilterFunction {
	filters := map[string]exec.FilterFunction{
		guardFilter:   func(e *exec.Evaluator, in *exec.Value, _ *exec.VarArgs) *exec.Value { return budgetOf(e).made(in) },
		iterFilter:    iterable,
		itemFilter:    index,
		printFilter:   printable,
		truthFilter:   truth,
		presentFilter: present,
		partFilter:    part,
		opFilter: func(e *exec.Evaluator, in *exec.Value, p *exec.VarArgs) *exec.Value {
			return arithmetic(budgetOf(e), p.Args[0].String(), in, p.Args[1])
		},
		callFilter: func(e *exec.Evaluator, in *exec.Value, p *exec.VarArgs) *exec.Value {
			return method(budgetOf(e), in, p.Args[0].String(), p.Args[1:], p.KwArgs)
		},
		"tojson":     toJSON,
		"upper":      caseFilter(upper),
		"lower":      caseFilter(lower),
		"capitalize": caseFilter(capitalize),
		"title":      caseFilter(filterTitle),
		"join":       joinFilter,
		"replace": func(e *exec.Evaluator, in *exec.Value, p *exec.VarArgs) *exec.Value {
			return replaced(budgetOf(e), in.String(), argument(p, 0, "old").String(), argument(p, 1, "new").String(), argument(p, 2, "count"))
		},
		"regex_replace": regexReplace,
		"indent":        indent,
		"unique":        unique,
		"reverse":       reversed,
		"items": func(e *exec.Evaluator, in *exec.Value, _ *exec.VarArgs) *exec.Value {
			return method(budgetOf(e), in, "items", nil, nil)
		},
		"default":   fallback,
		"d":         fallback,
		"dictsort":  dictSort,
		"round":     round,
		"string":    text,
		"trim":      trim,
		"wordcount": wordCount,
	}
	for _, name := range []string{"first", "last", "max", "min"} {
		filters[name] = nonEmpty(name)
	}
	for _, name := range harmless {
		filters[name], _ = builtins.Filters.Get(name)
	}
	return filters
}

// chatEnvironment is everything that a chat template can name.
func chatEnvironment() *exec.Environment {
	return &exec.Environment{
		Context: exec.NewContext(map[string]any{
			"range": rangeList, "namespace": newNamespace, "dict": newDict, "raise_exception": raise, "strftime_now": strftimeNow,
			"none": nil, "None": nil, // gonja has no literal for it and takes it for an unknown name
		}),
		Filters: exec.NewFilterSet(chatFilters()), Tests: chatTests(), ControlStructures: chatStatements(), Methods: builtins.Methods,
	}
}

// argument is the i-th argument, by position or by name; nil's value if absent.
func argument(p *exec.VarArgs, i int, name string) *exec.Value {
	if v, ok := p.KwArgs[name]; ok {
		return v
	}
	if i < len(p.Args) {
		return p.Args[i]
	}
	return exec.AsValue(nil)
}

// iterable bounds the iterations of a loop before it begins.
func iterable(e *exec.Evaluator, in *exec.Value, _ *exec.VarArgs) *exec.Value {
	b := budgetOf(e)
	if in.IsError() {
		return in
	}
	n := in.Len()
	if n > maxItems {
		return b.fail("loops over %d items, at most %d are allowed", n, maxItems)
	}
	b.steps -= n / 4                           // gonja prepares all items before the first iteration
	if over := b.charge(64 * n); over != nil { // the memory it keeps for them
		return over
	}
	if in.IsString() {
		return exec.AsValue(items(in))
	}
	return in
}

// arithmetic is the part of Python's that templates use: texts concatenate and repeat, lists concatenate, numbers
// compute.
func arithmetic(b *budget, op string, x, y *exec.Value) *exec.Value {
	if x.IsError() {
		return x
	}
	text := x.IsString() || y.IsString()
	switch holds := orders[op]; {
	case holds != nil:
		c, err := compare(x, y)
		if err != nil {
			return b.fail("operator %s: %w", op, err)
		}
		return exec.AsValue(holds(c))
	case op == "==" || op == "!=":
		return exec.AsValue(equal(x, y) == (op == "=="))
	case op == "~" || op == "+" && text:
		if over := b.charge(printed(x) + printed(y)); over != nil {
			return over
		}
		return exec.AsValue(asText(b, x) + asText(b, y))
	case op == "*" && text:
		if y.IsString() {
			x, y = y, x
		}
		if !y.IsInteger() && !y.IsBool() {
			return b.fail("operator * does not go with %s", kinds(x, y))
		}
		n, s := max(whole(y), 0), x.String()
		if n > maxValue || n*len(s) > maxValue {
			return b.fail("%w", errLarge)
		}
		if over := b.charge(n * len(s)); over != nil {
			return over
		}
		return exec.AsValue(strings.Repeat(s, n))
	case op == "+" && x.IsList() && y.IsList():
		list := append(items(x), items(y)...)
		return b.made(exec.AsValue(list))
	case !x.IsNumber() && !x.IsBool() || !y.IsNumber() && !y.IsBool():
		return b.fail("operator %s does not go with %s", op, kinds(x, y))
	}
	if over := b.charge(0); over != nil {
		return over
	}
	if x.IsFloat() || y.IsFloat() || op == "/" {
		return floats(b, op, x.Float(), y.Float())
	}
	return integers(b, op, whole(x), whole(y))
}

// whole converts an integer or a bool to a number.
func whole(v *exec.Value) int {
	if v.IsBool() {
		if v.Bool() {
			return 1
		}
		return 0
	}
	return v.Integer()
}

func kinds(x, y *exec.Value) string { return fmt.Sprintf("%T and %T", x.Interface(), y.Interface()) }

// simple implements the operators that integers and floats share; nil for others.
func simple[T int | float64](op string, x, y T) *exec.Value {
	switch op {
	case "+":
		return exec.AsValue(x + y)
	case "-":
		return exec.AsValue(x - y)
	case "*":
		return exec.AsValue(x * y)
	}
	return nil
}

func integers(b *budget, op string, x, y int) *exec.Value {
	if v := simple(op, x, y); v != nil {
		return v
	}
	switch op {
	case "//", "%":
		if y == 0 {
			return b.fail("division by zero")
		}
		q, r := x/y, x%y
		if r != 0 && (r < 0) != (y < 0) { // Python rounds down
			q, r = q-1, r+y
		}
		if op == "%" {
			return exec.AsValue(r)
		}
		return exec.AsValue(q)
	case "**":
		if y < 0 {
			return floats(b, op, float64(x), float64(y))
		}
		if math.Abs(math.Pow(float64(x), float64(y))) >= 1<<63 {
			return b.fail("%d ** %d has more than 63 bits", x, y)
		}
		return exec.AsValue(power(x, y))
	}
	return b.fail("operator %s is unknown", op)
}

// power is x to the y, by squaring.
func power(x, y int) int {
	p := 1
	for ; y > 0; y /= 2 {
		if y%2 == 1 {
			p *= x
		}
		x *= x
	}
	return p
}

func floats(b *budget, op string, x, y float64) *exec.Value {
	if y == 0 && (op == "/" || op == "//" || op == "%") {
		return b.fail("division by zero")
	}
	if v := simple(op, x, y); v != nil {
		return v
	}
	switch op {
	case "/":
		return exec.AsValue(x / y)
	case "//":
		return exec.AsValue(math.Floor(x / y))
	case "%":
		return exec.AsValue(x - y*math.Floor(x/y))
	case "**":
		return exec.AsValue(math.Pow(x, y))
	}
	return b.fail("operator %s is unknown", op)
}

// printed is the approximate printed size of a value; every value was measured when it was created.
func printed(v *exec.Value) int {
	if v.IsString() {
		return len(v.String())
	}
	left := maxValue
	if measure(v.Interface(), 0, &left) != nil {
		return maxValue + 1
	}
	return maxValue - left
}

func joined(b *budget, v *exec.Value, sep string) *exec.Value {
	if v.Len() > maxItems {
		return b.fail("joins more than %d items", maxItems)
	}
	list := items(v)
	n := len(sep) * len(list)
	for _, x := range list {
		if n += printed(exec.AsValue(x)); n > maxValue {
			break
		}
	}
	if over := b.charge(n); over != nil {
		return over
	}
	texts := make([]string, len(list))
	for i, x := range list {
		texts[i] = asText(b, exec.AsValue(x))
	}
	return exec.AsValue(strings.Join(texts, sep))
}

func replaced(b *budget, s, old, with string, limit *exec.Value) *exec.Value {
	n := -1
	if limit.IsInteger() {
		n = limit.Integer()
	}
	times := strings.Count(s, old)
	if n >= 0 {
		times = min(times, n)
	}
	if len(with) > 0 && times > maxValue/len(with) {
		return b.fail("%w", errLarge)
	}
	if over := b.charge(len(s) + times*len(with)); over != nil {
		return over
	}
	return exec.AsValue(strings.Replace(s, old, with, n))
}

// rangeList is range(stop), range(start, stop) and range(start, stop, step).
func rangeList(e *exec.Evaluator, p *exec.VarArgs) (*exec.Value, error) {
	at := make([]int, len(p.Args))
	for i, a := range p.Args {
		at[i] = a.Integer()
	}
	start, stop, step := 0, 0, 1
	switch len(at) {
	case 1:
		stop = at[0]
	case 2:
		start, stop = at[0], at[1]
	case 3:
		start, stop, step = at[0], at[1], at[2]
	}
	if step == 0 || len(at) < 1 || len(at) > 3 {
		return nil, errors.New("range: want one to three numbers, the step not zero")
	}
	list := []any{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(list) == maxItems {
			return budgetOf(e).fail("range: more than %d numbers", maxItems), nil
		}
		list = append(list, i)
	}
	return exec.AsValue(list), nil
}

// newNamespace is Jinja's namespace, the only object whose attributes can be set.
func newNamespace(e *exec.Evaluator, p *exec.VarArgs) (*exec.Value, error) {
	if len(p.Args) > 0 {
		return budgetOf(e).fail("namespace: attributes must be named"), nil
	}
	ns := map[string]any{}
	for k, v := range p.KwArgs {
		ns[k] = v.Interface()
	}
	return exec.AsValue(ns), nil
}

// newDict is dict(); guard.go rewrites dict(a=1) as {'a': 1}, which keeps the order.
func newDict(e *exec.Evaluator, p *exec.VarArgs) *exec.Value {
	if len(p.Args) > 0 {
		return budgetOf(e).fail("dict: items must be named")
	}
	d := exec.NewDict()
	for _, k := range sortedKeys(p.KwArgs) {
		d.Pairs = append(d.Pairs, &exec.Pair{Key: exec.AsValue(k), Value: p.KwArgs[k]})
	}
	return exec.AsValue(d)
}

// raise ends the rendering with the template's own message.
func raise(e *exec.Evaluator, p *exec.VarArgs) (*exec.Value, error) {
	b := budgetOf(e)
	b.fail("%s", argument(p, 0, "message").String())
	return nil, b.err
}
