package infer

import "strings"

// stopper holds back text that may be the beginning of a stop string.
type stopper struct {
	stops []string
	held  string // always a proper prefix of some stop string
}

// add takes a piece of text and returns what is certain to remain. If a stop string is complete, out ends before it and
// hit is true. The stop string that is complete first counts, however the text was divided into pieces; of two that end
// at the same byte the longer one.
func (s *stopper) add(piece string) (out string, hit bool) {
	if len(s.stops) == 0 {
		return piece, false
	}
	if piece == "" {
		return "", false
	}
	text := s.held + piece
	start, end := -1, len(text)+1
	for _, w := range s.stops {
		i := strings.Index(text, w)
		if i < 0 {
			continue
		}
		if n := i + len(w); n < end || n == end && i < start {
			start, end = i, n
		}
	}
	if start >= 0 {
		s.held = ""
		return text[:start], true
	}
	n := len(text) - s.open(text)
	s.held = text[n:]
	return text[:n], false
}

// open is the length of the longest suffix of text that begins a stop string.
func (s *stopper) open(text string) int {
	most := 0
	for _, w := range s.stops {
		for n := min(len(w)-1, len(text)); n > most; n-- {
			if strings.HasSuffix(text, w[:n]) {
				most = n
			}
		}
	}
	return most
}

// flush returns what was held back, at the end of the text.
func (s *stopper) flush() string {
	held := s.held
	s.held = ""
	return held
}
