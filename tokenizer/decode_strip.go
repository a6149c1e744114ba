package tokenizer

import "strings"

// stripDecoder removes up to start characters equal to content at the beginning of each string and up to stop at its
// end.
type stripDecoder struct {
	content     string // one character
	start, stop int
}

func (stripDecoder) fuses() bool { return false }
func (d stripDecoder) open(out sink, fused bool) filter {
	if fused {
		return &stripFilter{d: d, out: out, left: d.start}
	}
	return mapFilter{out, func(s string) string {
		for n := d.start; n > 0 && strings.HasPrefix(s, d.content); n-- {
			s = s[len(d.content):]
		}
		for n := d.stop; n > 0 && strings.HasSuffix(s, d.content); n-- {
			s = s[:len(s)-len(d.content)]
		}
		return s
	}}
}

// stripFilter strips one string that arrives in fragments: left counts the characters that may still be removed at the
// beginning, held is the number of characters at the end that may turn out to be the last.
type stripFilter struct {
	d    stripDecoder
	out  sink
	left int
	held int
}

func (f *stripFilter) push(s string) {
	for f.left > 0 && s != "" {
		if !strings.HasPrefix(s, f.d.content) {
			f.left = 0
			break
		}
		s = s[len(f.d.content):]
		f.left--
	}
	if f.d.stop == 0 {
		f.out(s)
		return
	}
	s = strings.Repeat(f.d.content, f.held) + s
	f.held = 0
	for f.held < f.d.stop && strings.HasSuffix(s, f.d.content) {
		s = s[:len(s)-len(f.d.content)]
		f.held++
	}
	f.out(s)
}

func (f *stripFilter) flush() { f.held = 0 }
