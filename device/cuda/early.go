package cuda

import "antiphase/tensor"

// span is memory that a kernel wrote, or of which CacheWrite wrote rows.
type span struct {
	from, to uint64
	kept     kept
}

// kept are the rows of a CacheWrite, by its arguments.
type kept struct {
	slot, pos uint64
	rows      int
}

// fresh lists what early kernels (kernels/early.cuh) have written since the last other kernel, or since the host last
// waited. It may still be in flight when the next early kernel starts, which must not read it before waiting. The spans
// of a step repeat, so the list stays short. A span that stays in it too long costs time: memory that is freed and
// reused looks as if it were still being written.
type fresh struct {
	spans []span
	over  bool // the list overflowed
}

const maxSpans = 1024

func (f *fresh) clear() { f.spans, f.over = f.spans[:0], false }

// wrote records outputs of an early kernel.
func (f *fresh) wrote(all ...tensor.Tensor) {
	for _, t := range all {
		f.note(spanOf(t))
	}
}

func (f *fresh) note(s span) {
	for i := range f.spans {
		if o := &f.spans[i]; o.from == s.from && o.to == s.to {
			if o.kept != s.kept {
				o.kept = kept{}
			}
			return
		}
	}
	if len(f.spans) == maxSpans {
		f.over = true
	} else if s.to > s.from {
		f.spans = append(f.spans, s)
	}
}

// settled reports whether t was written before any kernel still in flight began, except for these rows of CacheWrite.
func (f *fresh) settled(t tensor.Tensor, but kept) bool {
	s := spanOf(t)
	for _, o := range f.spans {
		if o.from < s.to && s.from < o.to && (o.kept.rows == 0 || o.kept != but) {
			return false
		}
	}
	return !f.over
}

func spanOf(t tensor.Tensor) span {
	if !t.Ok() || t.Len() == 0 {
		return span{}
	}
	return span{from: ptr(t), to: ptr(t) + uint64(((t.Rows-1)*t.Ld+t.Cols)*t.Type.Size())}
}
