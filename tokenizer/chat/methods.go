package chat

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// textMethod is a method of Python's str: its parameters, how many of them must be given, and what it does. None of
// those given by name is empty.
type textMethod struct {
	need  int
	names []string
	call  func(r *run, s string, a []any) any
}

var (
	onePart  = []string{""}
	bounded  = []string{"", "", ""} // a part, and where to begin and to end the search
	splitter = []string{"sep", "maxsplit"}
)

// plain is a method without parameters.
func plain(f func(string) any) textMethod {
	return textMethod{call: func(_ *run, s string, _ []any) any { return f(s) }}
}

// textMethods are those of str whose results are bounded by the size of their input; casings are others.
var textMethods map[string]textMethod

func init() { // join and replace refer to filters, which refer to methods
	textMethods = map[string]textMethod{
		"strip": {0, onePart, func(_ *run, s string, a []any) any { return strip(s, a[0], strings.TrimFunc) }},
		"lstrip": {0, onePart, func(_ *run, s string,
			a []any) any {
			return strip(s, a[0], strings.TrimLeftFunc)
		}},
		"rstrip": {0, onePart, func(_ *run, s string,
			a []any) any {
			return strip(s, a[0], strings.TrimRightFunc)
		}},
		"startswith": {1, bounded, func(_ *run, s string, a []any) any { return atEnd(s, a, strings.HasPrefix) }},
		"endswith":   {1, bounded, func(_ *run, s string, a []any) any { return atEnd(s, a, strings.HasSuffix) }},
		"find":       {1, bounded, func(_ *run, s string, a []any) any { return found(s, a, strings.Index) }},
		"rfind":      {1, bounded, func(_ *run, s string, a []any) any { return found(s, a, strings.LastIndex) }},
		"index": {1, bounded, func(_ *run, s string,
			a []any) any {
			return mustFind(found(s, a, strings.Index))
		}},
		"rindex": {1, bounded, func(_ *run, s string,
			a []any) any {
			return mustFind(found(s, a, strings.LastIndex))
		}},
		"count": {1, bounded, countText},
		"removeprefix": {1, onePart, func(_ *run, s string,
			a []any) any {
			return strings.TrimPrefix(s, textOf("removeprefix", a[0]))
		}},
		"removesuffix": {1, onePart, func(_ *run, s string,
			a []any) any {
			return strings.TrimSuffix(s, textOf("removesuffix", a[0]))
		}},
		"split":  {0, splitter, func(_ *run, s string, a []any) any { return split(s, a[0], a[1], false) }},
		"rsplit": {0, splitter, func(_ *run, s string, a []any) any { return split(s, a[0], a[1], true) }},
		"splitlines": {0, []string{"keepends"},
			func(_ *run, s string, a []any) any { return splitLines(s, truth(a[0])) }},
		"partition":  {1, onePart, func(_ *run, s string, a []any) any { return partition(s, a[0], false) }},
		"rpartition": {1, onePart, func(_ *run, s string, a []any) any { return partition(s, a[0], true) }},
		"replace":    {2, []string{"", "", "count"}, func(r *run, s string, a []any) any { return r.replaced(s, a) }},
		"join":       {1, onePart, func(r *run, s string, a []any) any { return r.joined(toJoin(a[0]), s, true) }},
		"zfill":      {1, onePart, func(_ *run, s string, a []any) any { return zeroFill(s, a[0]) }},
		"ljust":      {1, []string{"", ""}, func(_ *run, s string, a []any) any { return aligned(s, '<', a) }},
		"rjust":      {1, []string{"", ""}, func(_ *run, s string, a []any) any { return aligned(s, '>', a) }},
		"center":     {1, []string{"", ""}, func(_ *run, s string, a []any) any { return aligned(s, '^', a) }},
		"isdigit":    plain(func(s string) any { return every(s, isDigit) }),
		"isdecimal":  plain(func(s string) any { return every(s, unicode.IsDigit) }),
		"isnumeric":  plain(func(s string) any { return every(s, unicode.IsNumber) }),
		"isalpha":    plain(func(s string) any { return every(s, unicode.IsLetter) }),
		"isalnum": plain(func(s string) any {
			return every(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
		}),
		"isspace": plain(func(s string) any { return every(s, isSpace) }),
		"isascii": plain(func(s string) any { return isASCII(s) }),
		"isupper": plain(func(s string) any { return allCased(s, isUpper) }),
		"islower": plain(func(s string) any { return allCased(s, isLower) }),
	}
	for name, f := range casings {
		textMethods[name] = plain(func(s string) any { return f(s) })
	}
}

// otherTextMethods are methods of str that are not supported: they are defined, and a call fails.
var otherTextMethods = strings.Fields(
	"encode expandtabs format_map isidentifier isprintable istitle maketrans translate")

// isMutating reports whether a name is a method that changes a list or a dict, which a template must not.
func isMutating(v any, name string) bool {
	switch v.(type) {
	case list:
		return slices.Contains([]string{"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"},
			name)
	case *dict:
		return slices.Contains([]string{"clear", "pop", "popitem", "setdefault", "update"}, name)
	}
	return false
}

// boundMethod is a method of a text, a list, a tuple or a dict.
func boundMethod(v any, name string) (any, bool) {
	if s, ok := isText(v); ok {
		return textFunction(s, name)
	}
	if of, isTuple, ok := seqItems(v); ok && (name == "index" || name == "count" || name == "copy" && !isTuple) {
		return &function{name: name, call: func(r *run, p params) any { return r.listMethod(of, name, p) }}, true
	}
	if d, ok := v.(*dict); ok && slices.Contains([]string{"get", "keys", "values", "items", "copy"}, name) {
		return &function{name: name, call: func(r *run, p params) any { return r.dictMethod(d, name, p) }}, true
	}
	return nil, false
}

// textFunction is a method of a text.
func textFunction(s, name string) (any, bool) {
	if name == "format" {
		return &function{name: name, call: func(r *run, p params) any { return formatText(r, s, p) }}, true
	}
	m, ok := textMethods[name]
	if !ok && !slices.Contains(otherTextMethods, name) {
		return nil, false
	}
	return &function{name: name, call: func(r *run, p params) any {
		if !ok {
			fail("method %.40q of texts is not supported", name)
		}
		a := p.bind(name, m.need, m.names...)
		size := len(s)
		if casings[name] != nil {
			size *= mostCased
		}
		r.take(size)
		return m.call(r, s, a)
	}}, true
}

func (r *run) dictMethod(d *dict, name string, p params) any {
	r.take(16 * len(d.keys))
	if name == "get" {
		a := p.bind(name, 1, "", "")
		if _, ok := hash(a[0]); !ok {
			fail("get: %s cannot be a key", kindOf(a[0]))
		}
		if v, ok := d.get(a[0]); ok {
			return v
		}
		return a[1]
	}
	p.bind(name, 0)
	switch name {
	case "keys":
		return &view{"dict_keys", d.keys}
	case "values":
		return &view{"dict_values", d.values}
	case "items":
		return &view{"dict_items", d.pairs()}
	}
	return d // a copy, which nothing can change either
}

// listMethod is the index of a value, which must occur, or how often it occurs.
func (r *run) listMethod(of []any, name string, p params) any {
	if name == "copy" {
		p.bind(name, 0)
		return slices.Clone(list(of))
	}
	a := p.bind(name, 1, "", "", "")
	r.take(16 * len(of))
	r.checkTime()
	if name == "count" {
		n := 0
		for _, x := range of {
			if equal(x, a[0]) {
				n++
			}
		}
		return n
	}
	from := min(max(intOf(name, a[1], 0), 0), len(of))
	at := slices.IndexFunc(of[from:], func(x any) bool { return equal(x, a[0]) })
	if at < 0 {
		fail("index: %s is not there", short(a[0]))
	}
	return from + at
}

// isSpace is str.isspace of a character: Unicode's white space and the four separators of ASCII.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// strip removes characters of a set, or white space.
func strip(s string, cut any, trim func(string, func(rune) bool) string) string {
	if cut == nil {
		return trim(s, isSpace)
	}
	set := map[rune]bool{} // both texts may be long
	for _, r := range textOf("strip", cut) {
		set[r] = true
	}
	return trim(s, func(r rune) bool { return set[r] })
}

// atEnd is str.startswith and str.endswith: of one text or any of several, within bounds.
func atEnd(s string, a []any, has func(string, string) bool) bool {
	parts, ok := a[0].(tuple)
	if !ok {
		parts = tuple{a[0]}
	}
	part, _, inside := window(s, a[1], a[2])
	return slices.ContainsFunc(parts,
		func(x any) bool { return has(part, textOf("startswith or endswith", x)) && inside })
}

// found is the index of a text within bounds, in characters; -1 if it is not there.
func found(s string, a []any, index func(string, string) int) int {
	want := textOf("find or index", a[0])
	part, before, ok := window(s, a[1], a[2])
	if !ok {
		return -1
	}
	at := index(part, want)
	if at < 0 {
		return -1
	}
	return before + utf8.RuneCountInString(part[:at])
}

// mustFind fails for what was not found.
func mustFind(at int) any {
	if at < 0 {
		fail("index: the text is not there")
	}
	return at
}

func countText(_ *run, s string, a []any) any {
	want := textOf("count", a[0])
	if part, _, ok := window(s, a[1], a[2]); ok {
		return strings.Count(part, want)
	}
	return 0
}

// raisedDigits are digits that are not decimal: raised, lowered, in circles and the like.
var raisedDigits = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xb2, 0xb3, 1}, {0xb9, 0xb9, 1}, {0x1369, 0x1371, 1}, {0x19da, 0x19da, 1}, {0x2070, 0x2070, 1},
		{0x2074, 0x2079, 1},
		{0x2080, 0x2089, 1}, {0x2460, 0x2468, 1}, {0x2474, 0x247c, 1}, {0x2488, 0x2490, 1}, {0x24ea, 0x24ea, 1},
		{0x24f5, 0x24fd, 1},
		{0x24ff, 0x24ff, 1}, {0x2776, 0x277e, 1}, {0x2780, 0x2788, 1}, {0x278a, 0x2792, 1},
	},
	R32: []unicode.Range32{{0x10a40, 0x10a43, 1}, {0x10e60, 0x10e68, 1}, {0x11052, 0x1105a, 1},
		{0x1f100, 0x1f10a, 1}},
	LatinOffset: 2,
}

func isDigit(r rune) bool { return unicode.IsDigit(r) || unicode.Is(raisedDigits, r) }

func every(s string, f func(rune) bool) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !f(r) }) < 0
}

// zeroFill is str.zfill: zeros after the sign.
func zeroFill(s string, width any) string {
	sign := ""
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		sign, s = s[:1], s[1:]
	}
	return sign + padded(s, '0', '>', widthOf(intOf("zfill", width, 0))-len(sign))
}

// aligned is str.ljust, rjust and center.
func aligned(s string, how byte, a []any) string {
	fill := ' '
	if a[1] != nil {
		f := []rune(textOf("a fill character", a[1]))
		if len(f) != 1 {
			fail("a fill of %d characters", len(f))
		}
		fill = f[0]
	}
	width := widthOf(intOf("a width", a[0], 0))
	// Python puts the odd one to the left if the width is odd.
	if pad := width - utf8.RuneCountInString(s); how == '^' && pad > 0 {
		left := pad/2 + pad&width&1
		return padded(padded(s, fill, '>', width-pad+left), fill, '<', width)
	}
	return padded(s, fill, how, width)
}
