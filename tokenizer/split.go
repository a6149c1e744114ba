package tokenizer

import (
	"fmt"
	"slices"
)

// span is a stretch of a text; a matcher's spans cover the text in order.
type span struct {
	start, stop int
	match       bool
}

// matcher appends the spans of s to dst.
type matcher func(dst []span, s string) []span

// matchPattern makes a matcher of a pattern.
func matchPattern(p pattern) matcher {
	return func(dst []span, s string) []span {
		done := 0
		p.each(s, func(start, stop int) {
			if done < start {
				dst = append(dst, span{done, start, false})
			}
			dst = append(dst, span{start, stop, true})
			done = stop
		})
		if done < len(s) {
			dst = append(dst, span{done, len(s), false})
		}
		return dst
	}
}

// matchScanner makes a matcher of a scanner.
func matchScanner(scan scanner) matcher {
	return func(dst []span, s string) []span {
		for i := 0; i < len(s); {
			j := scan(s, i)
			dst = append(dst, span{i, j, true})
			i = j
		}
		return dst
	}
}

// matchRune makes a matcher in which every character with the property is a separate match.
func matchRune(is func(rune) bool) matcher {
	return func(dst []span, s string) []span {
		done := 0
		for i, r := range s {
			if !is(r) {
				continue
			}
			if done < i {
				dst = append(dst, span{done, i, false})
			}
			done = i + runeLen(s, i)
			dst = append(dst, span{i, done, true})
		}
		if done < len(s) {
			dst = append(dst, span{done, len(s), false})
		}
		return dst
	}
}

// behavior determines what happens to matches. The pieces between them are always kept.
type behavior string

const (
	removed            behavior = "Removed"
	isolated           behavior = "Isolated"
	mergedWithPrevious behavior = "MergedWithPrevious"
	mergedWithNext     behavior = "MergedWithNext"
	contiguous         behavior = "Contiguous"
)

func (b behavior) check() error {
	switch b {
	case removed, isolated, mergedWithPrevious, mergedWithNext, contiguous:
		return nil
	}
	return fmt.Errorf(
		"unknown behavior %q; known are Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous", string(b))
}

// apply turns a matcher's spans, in place, into the spans that become pieces; match then means "drop".
func (b behavior) apply(spans []span) []span {
	switch b {
	case removed:
		return spans
	case mergedWithNext:
		// The mirror image of mergedWithPrevious: from the end, a match joins the piece after it.
		slices.Reverse(spans)
		spans = fold(spans, func(s span, prev bool) bool { return s.match && !prev })
		slices.Reverse(spans)
		return spans
	case mergedWithPrevious:
		return fold(spans, func(s span, prev bool) bool { return s.match && !prev })
	case contiguous:
		return fold(spans, func(s span, prev bool) bool { return s.match == prev })
	}
	return fold(spans, func(span, bool) bool { return false })
}

// fold joins each span with the previous one if join says so; prev tells whether that one was a match, false at first.
func fold(spans []span, join func(s span, prev bool) bool) []span {
	out, prev := spans[:0], false
	for _, s := range spans {
		joined := join(s, prev) && len(out) > 0
		prev = s.match
		if joined {
			last := &out[len(out)-1]
			last.start, last.stop = min(last.start, s.start), max(last.stop, s.stop)
			continue
		}
		out = append(out, span{s.start, s.stop, false})
	}
	return out
}
