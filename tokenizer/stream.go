package tokenizer

import "strings"

// Stream decodes ids incrementally. The strings returned by Push and Flush, joined, equal what Decode returns for all
// the ids; none of them splits a UTF-8 character. A Stream belongs to one goroutine.
type Stream struct {
	t       *Tokenizer
	skip    bool
	filters []filter
	head    sink // where tokens enter the chain
	text    strings.Builder
}

// Stream returns a new streaming decoder; skipSpecial leaves special tokens out of the text.
func (t *Tokenizer) Stream(skipSpecial bool) *Stream {
	s := &Stream{t: t, skip: skipSpecial, filters: make([]filter, len(t.decoder))}
	out := sink(func(x string) { s.text.WriteString(x) })
	if t.noDecoder {
		first := true
		s.head = func(x string) {
			if !first {
				out(" ")
			}
			first = false
			out(x)
		}
		return s
	}
	fused := make([]bool, len(t.decoder)+1)
	for i, d := range t.decoder {
		fused[i+1] = fused[i] || d.fuses()
	}
	for i := len(t.decoder) - 1; i >= 0; i-- {
		s.filters[i] = t.decoder[i].open(out, fused[i])
		out = s.filters[i].push
	}
	s.head = out
	return s
}

// Push takes the next id and returns the text that is now certain, which may be empty. An id outside the vocabulary has
// no text.
func (s *Stream) Push(id int32) string {
	s.push(id)
	return s.take()
}

// Flush ends the text and returns what was held back; an unfinished character becomes U+FFFD.
func (s *Stream) Flush() string {
	for _, f := range s.filters {
		f.flush()
	}
	return s.take()
}

func (s *Stream) push(id int32) {
	if id < 0 || int(id) >= len(s.t.text) || s.t.text[id] == "" || s.skip && s.t.isSkip[id] {
		return
	}
	s.head(s.t.text[id])
}

func (s *Stream) take() string {
	text := s.text.String()
	s.text.Reset()
	return text
}

// Decode returns the text of ids; skipSpecial leaves special tokens out. Bytes that are not UTF-8 become U+FFFD.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	s := t.Stream(skipSpecial)
	s.text.Grow(4 * len(ids))
	for _, id := range ids {
		s.push(id)
	}
	return s.Flush()
}
