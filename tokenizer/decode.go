package tokenizer

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// decodeStep is one decoder of the file's chain; open creates its state for one text.
//
// Hugging Face decoders map a list of strings to a list of strings. Here each is a filter that takes the strings one at
// a time, so that whole texts and streams share one implementation. After ByteLevel or Fuse the list has a single
// string. It arrives in fragments that never split a character, and fused tells the filter so.
type decodeStep interface {
	open(out sink, fused bool) filter
	fuses() bool // its output is a single string
}

// sink takes the strings a filter emits.
type sink func(s string)

// filter is the state of a decoder for one text.
type filter interface {
	push(s string)
	flush() // the text has ended: emit what was held back
}

// byteLevelDecoder reads the byte-level alphabet; bytes that are not UTF-8 become U+FFFD.
type byteLevelDecoder struct{}

func (byteLevelDecoder) fuses() bool                  { return true }
func (byteLevelDecoder) open(out sink, _ bool) filter { return &byteLevelFilter{out: out} }

type byteLevelFilter struct {
	out  sink
	held []byte // the beginning of a character
	text []byte
}

func (f *byteLevelFilter) push(s string) {
	f.held = appendByteLevel(f.held, s)
	f.emit(false)
}
func (f *byteLevelFilter) flush() { f.emit(true) }

func (f *byteLevelFilter) emit(final bool) {
	var n int
	f.text, n = lossy(f.text[:0], f.held, final)
	f.held = append(f.held[:0], f.held[n:]...)
	if len(f.text) > 0 {
		f.out(string(f.text))
	}
}

// byteFallbackDecoder turns runs of <0xNN> into text; a run that is not UTF-8 becomes one U+FFFD per byte. A run can be
// decided only at its end, or as soon as it can no longer become valid.
type byteFallbackDecoder struct{}

func (byteFallbackDecoder) fuses() bool { return false }
func (byteFallbackDecoder) open(out sink, fused bool) filter {
	f := &byteFallbackFilter{out: out}
	if fused {
		return &holdFilter{f: f}
	}
	return f
}

type byteFallbackFilter struct {
	out sink
	run []byte
	bad bool // the run is known to be invalid; its bytes so far have been emitted
}

func fallbackByte(tok string) (byte, bool) {
	if len(tok) != 6 || tok[:3] != "<0x" || tok[5] != '>' {
		return 0, false
	}
	// Hugging Face's integer parser also accepts a plus sign, but no vocabulary writes a byte that way.
	b, err := strconv.ParseUint(tok[3:5], 16, 8)
	return byte(b), err == nil
}

func (f *byteFallbackFilter) push(s string) {
	b, ok := fallbackByte(s)
	if !ok {
		f.flush()
		f.out(s)
		return
	}
	if f.bad {
		f.out("\uFFFD")
		return
	}
	f.run = append(f.run, b)
	if i := validPrefix(f.run); i < len(f.run) {
		if _, open := invalidPart(f.run[i:]); !open {
			f.bad = true
			f.out(strings.Repeat("\uFFFD", len(f.run)))
		}
	}
}

func (f *byteFallbackFilter) flush() {
	if !f.bad && len(f.run) > 0 {
		if utf8.Valid(f.run) {
			f.out(string(f.run))
		} else {
			f.out(strings.Repeat("\uFFFD", len(f.run)))
		}
	}
	f.run, f.bad = f.run[:0], false
}

// validPrefix returns the length of the longest valid UTF-8 prefix.
func validPrefix(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return len(b)
}

// fuseDecoder joins everything into one string.
type fuseDecoder struct{}

func (fuseDecoder) fuses() bool { return true }
func (fuseDecoder) open(out sink, _ bool) filter {
	return mapFilter{out, func(s string) string { return s }}
}

// replaceDecoder replaces a pattern in each string.
type replaceDecoder struct {
	re      pattern
	content string
}

func (replaceDecoder) fuses() bool { return false }
func (d replaceDecoder) open(out sink, fused bool) filter {
	f := mapFilter{out, func(s string) string { return d.re.replace(s, d.content, room(len(s))) }}
	if fused && !d.re.single() {
		return &holdFilter{f: f}
	}
	return f
}

// metaspaceDecoder writes its character as a space and leaves it out of the first string.
type metaspaceDecoder struct {
	rep  string
	drop bool // prepend_scheme is not never
}

func (d metaspaceDecoder) text(s string, first bool) string {
	if first && d.drop {
		return strings.ReplaceAll(s, d.rep, "")
	}
	return strings.ReplaceAll(s, d.rep, " ")
}

func (metaspaceDecoder) fuses() bool { return false }
func (d metaspaceDecoder) open(out sink, fused bool) filter {
	first := true
	return mapFilter{out, func(s string) string {
		s = d.text(s, first)
		first = first && fused
		return s
	}}
}

// mapFilter changes each string independently.
type mapFilter struct {
	out sink
	f   func(string) string
}

func (f mapFilter) push(s string) { f.out(f.f(s)) }
func (f mapFilter) flush()        {}

// holdFilter collects the fragments of a fused string for a decoder that needs the whole.
type holdFilter struct {
	f    filter
	text strings.Builder
}

func (h *holdFilter) push(s string) { h.text.WriteString(s) }
func (h *holdFilter) flush() {
	if h.text.Len() > 0 {
		h.f.push(h.text.String())
		h.text.Reset()
	}
	h.f.flush()
}
