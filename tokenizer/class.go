package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is a character class that the split patterns distinguish: \p{L}, \p{N}, \s and the rest.
type class uint8

const (
	other class = iota + 1
	letter
	number
	space
)

var asciiClass = func() (t [utf8.RuneSelf]class) {
	for r := range t {
		t[r] = slowClass(rune(r))
	}
	return t
}()

// classPages holds the class of every character in pages of 256; equal pages are shared. It is built on first use.
var classPages = sync.OnceValue(func() *[(unicode.MaxRune + 1) >> 8]*[256]class {
	var pages [(unicode.MaxRune + 1) >> 8]*[256]class
	shared := map[[256]class]*[256]class{}
	for p := range pages {
		var page [256]class
		for i := range page {
			page[i] = slowClass(rune(p<<8 | i))
		}
		if shared[page] == nil {
			shared[page] = &page
		}
		pages[p] = shared[page]
	}
	return &pages
})

func classOf(r rune) class { return classPages()[r>>8][r&255] }

func slowClass(r rune) class {
	switch {
	case isLetter(r):
		return letter
	case isNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}
