package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// stage takes one piece of text and passes pieces to the next stage. Stages are built once, as closures, and the last
// one is the model, so a text is processed word by word without building a list of words.
type stage func(st *scratch, p piece)

// preTokenizer makes a stage that feeds next. slot numbers its own buffers in scratch; last is set for the one before
// the model.
type preTokenizer interface {
	stage(next stage, slot int, last bool) stage
}

// buildStages chains the pre-tokenizers before the model. Slot 0 belongs to the model.
func buildStages(pres []preTokenizer, m *bpe) (stage, int) {
	if n := len(pres); n > 0 {
		if _, ok := pres[n-1].(byteLevelPre); ok {
			return chain(pres, m.byteWord), n + 1
		}
	}
	return chain(pres, m.textWord), len(pres) + 1
}

func chain(pres []preTokenizer, next stage) stage {
	for i := len(pres) - 1; i >= 0; i-- {
		next = pres[i].stage(next, i+1, i == len(pres)-1)
	}
	return next
}

// byteLevelPre optionally prepends a space, optionally splits by PatternGPT2, and spells bytes in the byte-level
// alphabet. Directly before the model it omits the spelling: the model then reads raw bytes, which is equivalent and
// faster.
type byteLevelPre struct{ prefixSpace, useRegex bool }

func (b byteLevelPre) stage(next stage, slot int, last bool) stage {
	emit := next
	if !last {
		emit = func(st *scratch, p piece) {
			buf := appendByteText(make([]byte, 0, 2*len(p.s)), p.s)
			next(st, piece{view(buf), p.first})
		}
	}
	return func(st *scratch, p piece) {
		if b.prefixSpace && p.s[0] != ' ' {
			st.bufs[slot] = append(append(st.bufs[slot][:0], ' '), p.s...)
			p.s = view(st.bufs[slot])
		}
		if !b.useRegex {
			emit(st, p)
			return
		}
		for i := 0; i < len(p.s); {
			j := scanGPT2(p.s, i)
			emit(st, piece{p.s[i:j], p.first && i == 0})
			i = j
		}
	}
}

// scanPre splits with a scanner and keeps every word.
type scanPre struct{ scan scanner }

func (b scanPre) stage(next stage, _ int, _ bool) stage {
	return func(st *scratch, p piece) {
		for i := 0; i < len(p.s); {
			j := b.scan(p.s, i)
			next(st, piece{p.s[i:j], p.first && i == 0})
			i = j
		}
	}
}

// splitPre splits with any matcher and behavior; invert swaps matches and the text between them.
type splitPre struct {
	match  matcher
	do     behavior
	invert bool
}

func (b splitPre) stage(next stage, slot int, _ bool) stage {
	return func(st *scratch, p piece) {
		spans := b.match(st.spans[slot][:0], p.s)
		if b.invert {
			for i := range spans {
				spans[i].match = !spans[i].match
			}
		}
		spans = b.do.apply(spans)
		for _, s := range spans {
			if !s.match && s.start < s.stop {
				next(st, piece{p.s[s.start:s.stop], p.first && s.start == 0})
			}
		}
		st.spans[slot] = spans
	}
}

// metaspacePre writes spaces as another character, prepends one according to its scheme, and splits before each of
// them.
type metaspacePre struct {
	rep    string // one character
	scheme string // always, first, never
	split  bool
}

func (b metaspacePre) stage(next stage, slot int, _ bool) stage {
	if b.split {
		rep, _ := utf8.DecodeRuneInString(b.rep)
		cut := splitPre{matchRune(func(r rune) bool { return r == rep }), mergedWithNext, false}
		next = cut.stage(next, slot, false)
	}
	return func(st *scratch, p piece) {
		buf := st.bufs[slot][:0]
		starts := strings.HasPrefix(p.s, b.rep) || p.s[0] == ' '
		if !starts && (b.scheme == "always" || b.scheme == "first" && p.first) {
			buf = append(buf, b.rep...)
		}
		for i := range len(p.s) {
			if p.s[i] == ' ' {
				buf = append(buf, b.rep...)
			} else {
				buf = append(buf, p.s[i])
			}
		}
		st.bufs[slot] = buf
		next(st, piece{view(buf), p.first})
	}
}

// whitespacePre keeps runs of word characters and runs of other visible characters.
func whitespacePre() preTokenizer {
	kind := func(r rune) int {
		switch {
		case isWord(r):
			return 1
		case unicode.IsSpace(r):
			return 0
		}
		return 2
	}
	return splitPre{do: removed, match: func(dst []span, s string) []span {
		start, was := 0, -1
		for i, r := range s {
			if k := kind(r); k != was {
				if i > 0 {
					dst = append(dst, span{start, i, was == 0})
				}
				start, was = i, k
			}
		}
		return append(dst, span{start, len(s), was == 0})
	}}
}

// runeLen returns the width of the character at byte i, 1 for an invalid byte.
func runeLen(s string, i int) int {
	_, n := utf8.DecodeRuneInString(s[i:])
	return n
}
