package chat

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// filterFunc is a filter: of a value, with arguments.
type filterFunc func(r *run, v any, p params) any

// filters are all filters.
var filters map[string]filterFunc

func init() { // map refers to filters
	filters = map[string]filterFunc{
		"tojson": toJSON, "regex_replace": regexReplace, "indent": indent, "unique": unique, "reverse": reversed,
		"join":    joinFilter,
		"default": fallback, "d": fallback, "dictsort": dictSort, "sort": sorted, "round": round, "int": toInt,
		"float": toFloat,
		"map":   mapFilter, "list": toList, "items": itemsFilter, "first": first, "last": last, "sum": sum,
		"abs": absolute, "batch": batch,
		"length": lengthFilter, "count": lengthFilter, "attr": attrFilter, "format": formatFilter, "center": centered,
		"groupby": groupBy,
		"upper":   caseFilter("upper", upper), "lower": caseFilter("lower", lower),
		"title":      caseFilter("title", filterTitle),
		"capitalize": caseFilter("capitalize", capitalize), "truncate": truncate, "wordcount": wordCount,
		"max": extreme("max", ">"), "min": extreme("min", "<"),
		"select": chosen("select", true, false), "reject": chosen("reject", false, false),
		"selectattr": chosen("selectattr", true, true), "rejectattr": chosen("rejectattr", false, true),
		"e": escapeFilter, "escape": escapeFilter,
		"safe":   func(_ *run, v any, _ params) any { return markup(str(v)) },
		"string": func(_ *run, v any, _ params) any { return softText(v) },
		"trim": func(_ *run, v any, p params) any {
			return strip(str(v), p.bind("trim", 0, "chars")[0], strings.TrimFunc)
		},
		"replace": func(r *run, v any, p params) any {
			a := p.bind("replace", 2, "old", "new", "count")
			return r.replaced(str(v), []any{str(a[0]), str(a[1]), a[2]}) // the method takes texts only
		},
	}
}

func escapeFilter(r *run, v any, _ params) any {
	m := escapeHTML(v)
	r.take(len(m))
	return m
}

// softText is a value's text; markup stays markup.
func softText(v any) any {
	if m, ok := v.(markup); ok {
		return m
	}
	return str(v)
}

// fallback is default: another value for what is undefined and, if asked, for what is false.
func fallback(_ *run, v any, p params) any {
	a := p.bind("default", 0, "default_value", "boolean")
	if _, named := p.named["default_value"]; len(p.args) == 0 && !named {
		a[0] = ""
	}
	if is[*undefined](v) || truth(a[1]) && !truth(v) {
		return a[0]
	}
	return v
}

func lengthFilter(_ *run, v any, p params) any {
	p.bind("length", 0)
	n, ok := length(v)
	if !ok {
		fail("%s has no length", kindOf(v))
	}
	return n
}

func toList(_ *run, v any, p params) any {
	p.bind("list", 0)
	return append(list{}, each(v)...)
}

func itemsFilter(_ *run, v any, p params) any {
	p.bind("items", 0)
	d, ok := v.(*dict)
	switch {
	case ok:
		return &generator{rest: d.pairs()}
	case is[*undefined](v):
		return &generator{}
	}
	return &generator{late: "items: " + kindOf(v) + " is not a dict"}
}

func first(r *run, v any, p params) any {
	p.bind("first", 0)
	if g, ok := v.(*generator); ok && len(g.rest) > 0 {
		x := g.rest[0]
		g.rest = g.rest[1:]
		return x
	}
	if s, ok := isText(v); ok && s != "" {
		_, n := utf8.DecodeRuneInString(s)
		return s[:n]
	}
	if all := each(v); len(all) > 0 {
		return all[0]
	}
	return r.missing("no first item, the list is empty")
}

func last(r *run, v any, p params) any {
	p.bind("last", 0)
	if is[*generator](v) {
		fail("last: a generator cannot be reversed")
	}
	if s, ok := isText(v); ok && s != "" {
		_, n := utf8.DecodeLastRuneInString(s)
		return s[len(s)-n:]
	}
	if all := each(v); len(all) > 0 {
		return all[len(all)-1]
	}
	return r.missing("no last item, the list is empty")
}

func absolute(_ *run, v any, p params) any {
	p.bind("abs", 0)
	if n, ok := isInt(v); ok && n < 0 {
		return integers("-", 0, n)
	} else if ok {
		return n
	}
	f, ok := v.(float64)
	if !ok {
		fail("abs of %s", kindOf(v))
	}
	return math.Abs(f)
}

func attrFilter(r *run, v any, p params) any {
	name := textOf("attr", p.bind("attr", 1, "name")[0])
	if x, ok := r.attributeOf(v, name); ok {
		return x
	}
	return r.missing(kindOf(v) + " has no attribute '" + name + "'")
}

// reversed is a text or a list from its end to its beginning.
func reversed(r *run, v any, p params) any {
	p.bind("reverse", 0)
	if n, ok := length(v); ok && n > maxItems {
		fail("reverses %d items, at most %d are allowed", n, maxItems)
	}
	all := slices.Clone(each(v))
	r.take(16 * len(all))
	slices.Reverse(all)
	if _, ok := isText(v); ok {
		return r.joined(all, "", false)
	}
	return &generator{rest: all}
}

// toJoin are items that are joined.
func toJoin(v any) []any {
	if n, ok := length(v); ok && n > maxItems {
		fail("joins more than %d items", maxItems)
	}
	return each(v)
}

// joined puts items together. Python's own join takes only texts.
func (r *run) joined(all []any, sep string, textsOnly bool) any {
	n := len(sep) * max(len(all)-1, 0)
	for _, x := range all {
		if n += printed(x); n > maxValue {
			break
		}
	}
	r.take(n)
	texts := make([]string, len(all))
	for i, x := range all {
		if _, ok := isText(x); !ok && textsOnly {
			fail("join: item %d is %s, not a text", i, kindOf(x))
		}
		texts[i] = str(x)
	}
	return strings.Join(texts, sep)
}

// joinFilter joins items, or an attribute of each.
func joinFilter(r *run, v any, p params) any {
	a := p.bind("join", 0, "d", "attribute")
	all := toJoin(v)
	if a[1] != nil {
		all = slices.Clone(all)
		for i, x := range all {
			all[i] = r.path(x, a[1])
		}
	}
	sep := ""
	if _, named := p.named["d"]; named || len(p.args) > 0 {
		sep = str(a[0])
	}
	return r.joined(all, sep, false)
}

// replaced is s with a[0] replaced by a[1], at most a[2] times.
func (r *run) replaced(s string, a []any) any {
	old, with := textOf("replace", a[0]), textOf("replace", a[1])
	n := intOf("replace", a[2], -1)
	times := strings.Count(s, old)
	if n >= 0 {
		times = min(times, n)
	}
	if len(with) > 0 && times > maxValue/len(with) {
		fail("%w", errLarge)
	}
	r.take(len(s) + times*len(with))
	return strings.Replace(s, old, with, n)
}

// indent puts a margin before each line except the first, or before that too; other blank lines stay blank unless
// asked.
func indent(r *run, v any, p params) any {
	a := p.bind("indent", 0, "width", "first", "blank")
	margin, isString := isText(a[0])
	if !isString {
		n := intOf("indent", a[0], 4)
		if n > 1000 {
			fail("indent: a width of %d", n)
		}
		margin = strings.Repeat(" ", max(n, 0))
	}
	s := textOf("indent", v)
	lines := splitLines(s+"\n", false)
	r.take(len(s) + len(lines)*len(margin))
	texts := make([]string, len(lines))
	for i, x := range lines {
		texts[i] = x.(string) // the lines of a text
		if i == 0 && truth(a[1]) || i > 0 && (truth(a[2]) || texts[i] != "") {
			texts[i] = margin + texts[i]
		}
	}
	return strings.Join(texts, "\n")
}

// wordCount counts runs of letters, digits and underscores.
func wordCount(_ *run, v any, p params) any {
	p.bind("wordcount", 0)
	return countWords(str(v), func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) })
}

// round is Python's: halves go to the even neighbour, and a whole number stays one. floor and ceil always give floats.
func round(_ *run, v any, p params) any {
	a := p.bind("round", 0, "precision", "method")
	digits, how := intOf("round", a[0], 0), "common"
	if a[1] != nil {
		how = str(a[1])
	}
	x, ok := isNumber(v)
	n, whole := isInt(v)
	if !ok || digits < -300 || digits > 300 {
		fail("round: %s to %d digits", short(v), digits)
	}
	scale := math.Pow(10, float64(digits))
	switch {
	case how == "floor":
		return math.Floor(x*scale) / scale
	case how == "ceil":
		return math.Ceil(x*scale) / scale
	case how != "common":
		fail("round: method must be common, ceil or floor, not %.40q", how)
	case whole && digits >= 0:
		return n
	case digits < 0:
		x = math.RoundToEven(x*scale) / scale
	default:
		if y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', digits, 64), 64); err == nil {
			x = y
		}
	}
	if whole {
		return int(x)
	}
	return x
}

// truncate cuts a text, at a word's end unless asked otherwise.
func truncate(_ *run, v any, p params) any {
	a := p.bind("truncate", 0, "length", "killwords", "end", "leeway")
	n, leeway, end := min(intOf("truncate", a[0], 255), maxValue), min(intOf("truncate", a[3], 5), maxValue),
		"..." // their sum fits
	if a[2] != nil {
		end = textOf("truncate", a[2])
	}
	tail := len([]rune(end))
	size, ok := length(v)
	if !ok {
		fail("truncate: %s has no length", kindOf(v))
	}
	if size <= n+leeway && n >= tail && leeway >= 0 {
		return v
	}
	s := []rune(textOf("truncate", v))
	if n < tail || leeway < 0 {
		fail("truncate: to %d characters with a leeway of %d", n, leeway)
	}
	cut := string(s[:n-tail])
	if !truth(a[1]) {
		if i := strings.LastIndexByte(cut, ' '); i >= 0 {
			cut = cut[:i]
		}
	}
	return cut + end
}

func centered(_ *run, v any, p params) any {
	a := p.bind("center", 0, "width")
	if a[0] == nil {
		a[0] = 80
	}
	return aligned(str(v), '^', []any{a[0], nil})
}
