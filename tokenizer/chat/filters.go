package chat

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/nikolalohinski/gonja/v2/builtins"
	"github.com/nikolalohinski/gonja/v2/exec"
)

// compare orders two numbers, two texts or two lists; Python has no order for other pairs.
func compare(x, y *exec.Value) (int, error) {
	number := func(v *exec.Value) bool { return v.IsNumber() || v.IsBool() }
	switch {
	case x.IsString() && y.IsString():
		return strings.Compare(x.String(), y.String()), nil
	case x.IsFloat() && number(y) || number(x) && y.IsFloat():
		return cmp.Compare(asFloat(x), asFloat(y)), nil
	case number(x) && number(y):
		return cmp.Compare(whole(x), whole(y)), nil
	case x.IsList() && y.IsList():
		a, b := items(x), items(y)
		for i := range min(len(a), len(b)) {
			v, w := exec.AsValue(a[i]), exec.AsValue(b[i])
			if !v.EqualValueTo(w) {
				return compare(v, w)
			}
		}
		return cmp.Compare(len(a), len(b)), nil
	}
	return 0, fmt.Errorf("there is no order of %s", kinds(x, y))
}

// equal is Python's ==, for which True is 1.
func equal(x, y *exec.Value) bool {
	if x.IsBool() && y.IsNumber() || x.IsNumber() && y.IsBool() {
		return asFloat(x) == asFloat(y)
	}
	return x.EqualValueTo(y)
}

// asFloat converts a number or a bool.
func asFloat(v *exec.Value) float64 {
	if v.IsBool() {
		return float64(whole(v))
	}
	return v.Float()
}

// attribute is what a filter compares or prints of an item: the item itself, or what path leads to, such as a.b or 0.
func attribute(item any, path *exec.Value) *exec.Value {
	v := exec.AsValue(item)
	if path.IsInteger() {
		v, _ = indexed{v}.GetItem(path.Integer())
		return v
	}
	if !path.IsString() {
		return v
	}
	for _, part := range strings.Split(path.String(), ".") {
		if n, err := strconv.Atoi(part); err == nil && v.IsList() {
			v, _ = indexed{v}.GetItem(n)
		} else if next, ok := v.GetItem(part); ok {
			v = next
		} else {
			return exec.AsValue(nil)
		}
	}
	return v
}

// orders are the comparisons, by the result of compare.
var orders = map[string]func(int) bool{
	"<": func(c int) bool { return c < 0 }, "<=": func(c int) bool { return c <= 0 },
	">": func(c int) bool { return c > 0 }, ">=": func(c int) bool { return c >= 0 },
}

// nonEmpty is gonja's filter of a list that has items. One of an empty list is undefined: in a text template an error,
// as all that is undefined, else None.
func nonEmpty(name string) exec.FilterFunction {
	f, _ := builtins.Filters.Get(name)
	return func(e *exec.Evaluator, in *exec.Value, p *exec.VarArgs) *exec.Value {
		switch {
		case in.IsError() || in.Len() > 0:
			return f(e, in, p)
		case budgetOf(e).python:
			return exec.AsValue(fmt.Errorf("there is no %s item", name))
		}
		return exec.AsValue(nil)
	}
}

// fallback is default: another value for what is undefined and, if asked, for what is false. Only text templates tell None
// from undefined.
func fallback(e *exec.Evaluator, in *exec.Value, p *exec.VarArgs) *exec.Value {
	if !in.IsError() && (!in.IsNil() || budgetOf(e).python) && (!argument(p, 1, "boolean").IsTrue() || truth(e, in, p).IsTrue()) {
		return in
	}
	if v := argument(p, 0, "default_value"); !v.IsNil() || len(p.Args) > 0 {
		return v
	}
	return exec.AsValue("")
}

// folded is a text in lower case unless case matters; other values stay as they are.
func folded(v *exec.Value, caseMatters bool) *exec.Value {
	if v.IsString() && !caseMatters {
		return exec.AsValue(lower(v.String()))
	}
	return v
}

// unique keeps the first of equal elements. It accepts few elements because it compares all pairs.
func unique(e *exec.Evaluator, in *exec.Value, p *exec.VarArgs) *exec.Value {
	b := budgetOf(e)
	if in.Len() > 2000 {
		return b.fail("unique: more than 2000 items")
	}
	caseMatters, path := argument(p, 0, "case_sensitive").IsTrue(), argument(p, 1, "attribute")
	var kept []any
	var keys []*exec.Value
	for _, x := range items(in) {
		key := folded(attribute(x, path), caseMatters)
		if !slices.ContainsFunc(keys, func(k *exec.Value) bool { return equal(key, k) }) {
			kept, keys = append(kept, x), append(keys, key)
		}
	}
	return b.made(exec.AsValue(kept))
}

// dictSort lists a dict's pairs by key, or by value.
func dictSort(e *exec.Evaluator, in *exec.Value, p *exec.VarArgs) *exec.Value {
	b := budgetOf(e)
	v := method(b, in, "items", nil, nil)
	list, ok := v.Interface().([]any)
	if !ok {
		return v
	}
	at := 0
	switch by := argument(p, 1, "by"); {
	case by.IsNil() || by.String() == "key":
	case by.String() == "value":
		at = 1
	default:
		return b.fail("dictsort: by must be 'key' or 'value', not %.40q", by.String())
	}
	caseMatters := argument(p, 0, "case_sensitive").IsTrue()
	var failed error
	slices.SortStableFunc(list, func(x, y any) int {
		c, err := compare(folded(exec.AsValue(x.([]any)[at]), caseMatters), folded(exec.AsValue(y.([]any)[at]), caseMatters))
		failed = cmp.Or(failed, err)
		if argument(p, 2, "reverse").IsTrue() {
			return -c
		}
		return c
	})
	if failed != nil {
		return b.fail("dictsort: %w", failed)
	}
	return v
}

// joinFilter joins items, or an attribute of each.
func joinFilter(e *exec.Evaluator, in *exec.Value, p *exec.VarArgs) *exec.Value {
	b := budgetOf(e)
	if in.Len() > maxItems {
		return b.fail("joins more than %d items", maxItems)
	}
	if path := argument(p, 1, "attribute"); !path.IsNil() {
		list := items(in)
		for i, x := range list {
			list[i] = attribute(x, path).Interface()
		}
		in = exec.AsValue(list)
	}
	return joined(b, in, argument(p, 0, "d").String())
}

// indent puts a margin before each line except the first, or before that too; other blank lines stay blank unless asked.
func indent(e *exec.Evaluator, in *exec.Value, p *exec.VarArgs) *exec.Value {
	b := budgetOf(e)
	margin := "    "
	switch w := argument(p, 0, "width"); {
	case w.IsString():
		margin = w.String()
	case w.IsInteger():
		if n := w.Integer(); n < 0 || n > 1000 {
			return b.fail("indent: a width of %d", n)
		}
		margin = strings.Repeat(" ", w.Integer())
	}
	first, blank := argument(p, 1, "first").IsTrue(), argument(p, 2, "blank").IsTrue()
	s := asText(b, in)
	lines := splitLines(s+"\n", false)
	if over := b.charge(len(s) + len(lines)*len(margin)); over != nil {
		return over
	}
	texts := make([]string, len(lines))
	for i, x := range lines {
		texts[i] = x.(string)
		if i == 0 && first || i > 0 && (blank || texts[i] != "") {
			texts[i] = margin + texts[i]
		}
	}
	return exec.AsValue(strings.Join(texts, "\n"))
}

// wordCount counts runs of letters, digits and underscores.
func wordCount(e *exec.Evaluator, in *exec.Value, _ *exec.VarArgs) *exec.Value {
	if in.IsError() {
		return in
	}
	return exec.AsValue(len(strings.FieldsFunc(asText(budgetOf(e), in), func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r)
	})))
}

// text is Python's str.
func text(e *exec.Evaluator, in *exec.Value, _ *exec.VarArgs) *exec.Value {
	if in.IsError() {
		return in
	}
	return exec.AsValue(asText(budgetOf(e), in))
}

// trim is str.strip of any value's text.
func trim(e *exec.Evaluator, in *exec.Value, p *exec.VarArgs) *exec.Value {
	if in.IsError() {
		return in
	}
	return exec.AsValue(strip(asText(budgetOf(e), in), argument(p, 0, "chars"), strings.Trim, strings.TrimFunc))
}

// round is Python's: halves go to the even neighbour, and a whole number stays one. floor and ceil always give floats.
func round(e *exec.Evaluator, in *exec.Value, p *exec.VarArgs) *exec.Value {
	b := budgetOf(e)
	digits, how := 0, "common"
	if v := argument(p, 0, "precision"); !v.IsNil() {
		digits = v.Integer()
	}
	if v := argument(p, 1, "method"); !v.IsNil() {
		how = v.String()
	}
	if in.IsError() {
		return in
	}
	if !in.IsNumber() && !in.IsBool() || digits < -300 || digits > 300 {
		return b.fail("round: %.40q to %d digits", in.String(), digits)
	}
	x, scale := asFloat(in), math.Pow(10, float64(digits))
	switch {
	case how == "floor":
		return exec.AsValue(math.Floor(x*scale) / scale)
	case how == "ceil":
		return exec.AsValue(math.Ceil(x*scale) / scale)
	case how != "common":
		return b.fail("round: method must be common, ceil or floor, not %.40q", how)
	case !in.IsFloat() && digits >= 0:
		return exec.AsValue(whole(in))
	case digits < 0:
		x = math.RoundToEven(x*scale) / scale
	default:
		if y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', digits, 64), 64); err == nil {
			x = y
		}
	}
	if !in.IsFloat() {
		return exec.AsValue(int(x))
	}
	return exec.AsValue(x)
}
