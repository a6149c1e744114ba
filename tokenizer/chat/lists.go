package chat

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// path is what a filter compares or prints of an item: the item itself if by is None, or what by leads to, such as a.b
// or 0.
func (r *run) path(v, by any) any {
	s, ok := isText(by)
	if !ok {
		if by == nil {
			return v
		}
		return r.item(v, by)
	}
	r.checkTime()
	for _, part := range partsOf(s, ".") {
		if n, err := strconv.Atoi(part); err == nil {
			v = r.item(v, n)
		} else {
			v = r.item(v, part)
		}
	}
	return v
}

// partsOf splits what an attribute is given by. No value is nested deeper than the most parts.
func partsOf(attribute, sep string) []string {
	if n := strings.Count(attribute, sep) + 1; n > maxNesting {
		fail("an attribute of %d parts, at most %d are read", n, maxNesting)
	}
	return strings.Split(attribute, sep)
}

// folded is a text in lower case unless case matters; other values stay as they are.
func folded(v any, caseMatters any) any {
	if s, ok := isText(v); ok && !truth(caseMatters) {
		return lower(s)
	}
	return v
}

// sortBy sorts a list by keys, all of which are made first.
func (r *run) sortBy(all []any, reverse any, key func(any) any) []any {
	keys := make([]any, len(all))
	order := make([]int, len(all))
	for i, x := range all {
		if i%1000 == 0 {
			r.checkTime()
		}
		keys[i], order[i] = key(x), i
	}
	n := 0
	slices.SortStableFunc(order, func(i, j int) int {
		if n++; n%1000 == 0 {
			r.checkTime()
		}
		if truth(reverse) {
			i, j = j, i
		}
		return compare(keys[i], keys[j])
	})
	out := make([]any, len(all))
	for i, k := range order {
		out[i] = all[k]
	}
	return out
}

func sorted(r *run, v any, p params) any {
	a := p.bind("sort", 0, "reverse", "case_sensitive", "attribute")
	by := []any{a[2]}
	if s, ok := isText(a[2]); ok {
		by = nil
		for _, path := range partsOf(s, ",") {
			by = append(by, path)
		}
	}
	return list(r.sortBy(each(v), a[0], func(x any) any {
		r.use(128 * len(by))
		keys := make(list, len(by)) // of equal items no order is asked, whatever they are
		for i, path := range by {
			keys[i] = folded(r.path(x, path), a[1])
		}
		return keys
	}))
}

// dictSort lists a dict's pairs by key, or by value.
func dictSort(r *run, v any, p params) any {
	a := p.bind("dictsort", 0, "case_sensitive", "by", "reverse")
	d, ok := v.(*dict)
	if !ok {
		fail("dictsort: %s is not a dict", kindOf(v))
	}
	at := 0
	switch by := a[1]; {
	case by == nil || equal(by, "key"):
	case equal(by, "value"):
		at = 1
	default:
		fail("dictsort: by must be 'key' or 'value', not %s", short(by))
	}
	return list(r.sortBy(d.pairs(), a[2], func(x any) any { return folded(x.(tuple)[at], a[0]) })) // pairs are tuples
}

// unique keeps the first of equal elements.
func unique(r *run, v any, p params) any {
	a := p.bind("unique", 0, "case_sensitive", "attribute")
	seen := newDict()
	var kept []any
	for _, x := range each(v) {
		r.checkTime()
		key := folded(r.path(x, a[1]), a[0])
		n := len(seen.keys)
		if seen.set(key, nil); len(seen.keys) > n {
			kept = append(kept, x)
		}
	}
	return &generator{rest: kept}
}

// extreme is max or min: the first item that none is beyond.
func extreme(name, op string) filterFunc {
	return func(r *run, v any, p params) any {
		a := p.bind(name, 0, "case_sensitive", "attribute")
		all := each(v)
		if len(all) == 0 {
			return r.missing("no " + name + " item, the list is empty")
		}
		best := all[0]
		key := folded(r.path(best, a[1]), a[0])
		for _, x := range all[1:] {
			if k := folded(r.path(x, a[1]), a[0]); inOrder(op, k, key) {
				best, key = x, k
			}
		}
		return best
	}
}

func sum(r *run, v any, p params) any {
	a := p.bind("sum", 0, "attribute", "start")
	total := a[1]
	if total == nil {
		total = 0
	}
	if is[string](total) || is[markup](total) {
		fail("sum: begins with a text; join puts texts together")
	}
	for _, x := range each(v) {
		total = r.arithmetic("+", total, r.path(x, a[0]))
	}
	return total
}

// mapFilter is map: an attribute of each item, or a filter of it.
func mapFilter(r *run, v any, p params) any {
	if !truth(v) {
		return &generator{}
	}
	all := slices.Clone(each(v))
	by, isAttribute := p.named["attribute"]
	if len(p.args) > 0 || !isAttribute {
		if len(p.args) == 0 {
			fail("map needs a filter or an attribute")
		}
		name := textOf("map", p.args[0])
		defer r.enter()() // it may be map
		for i, x := range all {
			all[i] = r.filter(name, x, params{p.args[1:], p.names, p.named})
		}
		return &generator{rest: all}
	}
	p.bind("map", 0, "attribute", "default")
	for i, x := range all {
		r.take(0)
		all[i] = r.pathOr(x, by, p.named["default"])
	}
	return &generator{rest: all}
}

// pathOr is path with a default for what is undefined, unless it is None.
func (r *run) pathOr(v, by, otherwise any) any {
	s, ok := isText(by)
	if !ok {
		s = ""
	}
	parts := []any{by}
	if ok {
		parts = nil
		for _, part := range partsOf(s, ".") {
			parts = append(parts, part)
		}
	}
	for _, part := range parts {
		if v = r.path(v, part); is[*undefined](v) && otherwise != nil {
			v = otherwise
		}
	}
	return v
}

// chosen is select, reject, selectattr and rejectattr: the items for which a test holds, or does not.
func chosen(name string, keep, byAttribute bool) filterFunc {
	return func(r *run, v any, p params) any {
		if !truth(v) { // None too
			return &generator{}
		}
		all, args := each(v), p.args
		var by any
		if byAttribute {
			if len(args) == 0 {
				fail("%s needs an attribute", name)
			}
			by, args = args[0], args[1:]
		}
		var out []any
		for _, x := range all {
			r.take(0)
			y := r.path(x, by)
			holds := false
			if len(args) == 0 {
				holds = truth(y)
			} else {
				holds = r.test(textOf(name, args[0]), y, params{args[1:], p.names, p.named})
			}
			if holds == keep {
				out = append(out, x)
			}
		}
		return &generator{rest: out}
	}
}

// batch makes lists of n items, the last one filled if asked.
func batch(_ *run, v any, p params) any {
	a := p.bind("batch", 1, "linecount", "fill_with")
	n := intOf("batch", a[0], 0)
	if n < 1 || n > maxItems {
		fail("batch: of %d items", n)
	}
	var out []any
	for part := range slices.Chunk(each(v), n) {
		one := append(list{}, part...)
		for a[1] != nil && len(one) < n {
			one = append(one, a[1])
		}
		out = append(out, one)
	}
	return &generator{rest: out}
}

// groupBy sorts items by an attribute and lists those of each value.
func groupBy(r *run, v any, p params) any {
	a := p.bind("groupby", 1, "attribute", "default", "case_sensitive")
	key := func(x any) any { return folded(r.pathOr(x, a[0], a[1]), a[2]) }
	var out list
	var group list
	var of any
	for i, x := range r.sortBy(each(v), false, key) {
		if k := key(x); i == 0 || !equal(k, of) {
			if i > 0 {
				out = append(out, tuple{r.pathOr(group[0], a[0], a[1]), group})
			}
			of, group = k, nil
		}
		group = append(group, x)
	}
	if group != nil {
		out = append(out, tuple{r.pathOr(group[0], a[0], a[1]), group})
	}
	return out
}

// toInt is the filter int: a text may be a number with a point, and what is no number is the default.
func toInt(_ *run, v any, p params) any {
	a := p.bind("int", 0, "default", "base")
	if a[0] == nil {
		a[0] = 0
	}
	if u, ok := v.(*undefined); ok {
		u.fail()
	}
	if n, ok := isInt(v); ok {
		return n
	}
	f, ok := v.(float64)
	if s, isString := isText(v); isString {
		if n, ok := parseInt(s, intOf("int", a[1], 10)); ok {
			return n
		}
		f, ok = parseFloat(s)
		ok = ok && !math.IsInf(f, 0)
	}
	switch {
	case !ok || math.IsNaN(f):
		return a[0]
	case math.Abs(f) >= 1<<63:
		fail("int: %v has more than 63 bits", f)
	}
	return int(f)
}

func toFloat(_ *run, v any, p params) any {
	a := p.bind("float", 0, "default")
	if u, ok := v.(*undefined); ok {
		u.fail()
	}
	if f, ok := isNumber(v); ok {
		return f
	}
	if s, ok := isText(v); ok {
		if f, ok := parseFloat(s); ok {
			return f
		}
	}
	if a[0] == nil {
		return 0.0
	}
	return a[0]
}

// parseInt reads an integer as Python's int does.
func parseInt(s string, base int) (int, bool) {
	s = strings.ToLower(strings.TrimFunc(s, isSpace))
	sign := ""
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		sign, s = s[:1], s[1:]
	}
	prefix := map[int]string{2: "0b", 8: "0o", 16: "0x"}[base]
	s = strings.TrimPrefix(s, prefix)
	if strings.HasPrefix(s, "_") && prefix == "" || strings.HasSuffix(s, "_") || strings.Contains(s, "__") ||
		strings.ContainsAny(s, "+-") {
		return 0, false
	}
	n, err := strconv.ParseInt(sign+strings.ReplaceAll(s, "_", ""), base, 64)
	return int(n), err == nil
}

// parseFloat reads a number as Python's float does.
func parseFloat(s string) (float64, bool) {
	s = strings.TrimFunc(s, isSpace)
	if strings.ContainsAny(s, "xXpP") || strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") ||
		strings.Contains(s, "__") {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return f, err == nil || math.IsInf(f, 0)
}
