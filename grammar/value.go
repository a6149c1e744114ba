package grammar

// The rules of JSON's values. Numbers are short enough for any reader: 15 digits before the point, 15 after it,
// exponents of two digits.

// gap is an optional space after a comma or a colon.
func (b *builder) gap() { b.maybe(func() { b.text(" ") }) }

func (b *builder) digits(lo, hi int) { b.times(lo, hi, func() { b.class(span('0', '9')) }) }

func (b *builder) integer() {
	b.maybe(func() { b.text("-") })
	b.either(func() { b.text("0") }, func() {
		b.class(span('1', '9'))
		b.digits(0, 14)
	})
}

func (b *builder) number() {
	b.integer()
	b.maybe(func() {
		b.text(".")
		b.digits(1, 15)
	})
	b.maybe(func() {
		b.class(span('e', 'e', 'E'))
		b.maybe(func() { b.class(span('+', '+', '-')) })
		b.digits(1, 2)
	})
}

// str is a string of lo to hi characters.
func (b *builder) str(lo, hi int) {
	b.text(`"`)
	b.times(lo, hi, func() { b.call(b.char) })
	b.text(`"`)
}

// character is one character of a string: UTF-8, or an escape that is not half of a surrogate pair.
func (b *builder) character() {
	tail := span(0x80, 0xbf)
	then := func(sets ...set) func() {
		return func() {
			for _, s := range sets {
				b.class(s)
			}
		}
	}
	plain := span(0x20, 0x7f)
	for _, c := range []byte{'"', '\\'} {
		plain[c/64] &^= 1 << (c % 64)
	}
	hex := span('0', '9')
	hex.add('a', 'f')
	hex.add('A', 'F')
	notD := hex
	for _, c := range []byte{'d', 'D'} {
		notD[c/64] &^= 1 << (c % 64)
	}
	b.either(
		then(plain),
		then(span(0xc2, 0xdf), tail),
		then(span(0xe0, 0xe0), span(0xa0, 0xbf), tail),
		then(span(0xe1, 0xec, 0xee, 0xef), tail, tail),
		then(span(0xed, 0xed), span(0x80, 0x9f), tail),
		then(span(0xf0, 0xf0), span(0x90, 0xbf), tail, tail),
		then(span(0xf1, 0xf3), tail, tail, tail),
		then(span(0xf4, 0xf4), span(0x80, 0x8f), tail, tail),
		func() {
			b.text(`\`)
			b.either(
				then(span('"', '"', '\\', '/', 'b', 'f', 'n', 'r', 't')),
				func() {
					b.text("u")
					b.either(then(notD, hex, hex, hex), then(span('d', 'd', 'D'), span('0', '7'), hex, hex))
				})
		})
}

// list reads items between brackets: the rules of head in turn, then lo to hi of item. A negative item allows no
// further ones.
func (b *builder) list(head []int32, item int32, lo, hi int) {
	b.text("[")
	comma := func() {
		b.text(",")
		b.gap()
	}
	for i, r := range head {
		if i > 0 {
			comma()
		}
		b.call(r)
	}
	more := func(lo, hi int) {
		b.times(lo, hi, func() {
			comma()
			b.call(item)
		})
	}
	switch {
	case item < 0 || hi == 0:
	case len(head) > 0:
		more(lo, hi)
	default:
		rest := func() {
			b.call(item)
			more(max(lo-1, 0), hi-1)
		}
		if lo == 0 {
			b.maybe(rest)
		} else {
			rest()
		}
	}
	b.text("]")
}

// table reads an object with arbitrary keys whose values follow one rule.
func (b *builder) table(value int32) {
	member := func() {
		b.str(0, -1)
		b.text(":")
		b.gap()
		b.call(value)
	}
	b.text("{")
	b.maybe(func() {
		member()
		b.star(func() {
			b.text(",")
			b.gap()
			member()
		})
	})
	b.text("}")
}

// any is any JSON value.
func (b *builder) any(self int32) {
	b.either(
		func() { b.table(self) },
		func() { b.list(nil, self, 0, -1) },
		func() { b.str(0, -1) },
		b.number,
		func() { b.text("true") }, func() { b.text("false") }, func() { b.text("null") },
	)
}
