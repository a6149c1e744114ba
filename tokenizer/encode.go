package tokenizer

import "unsafe"

// Option changes what [Tokenizer.Encode] does.
type Option uint8

const (
	// NoTemplate leaves out the special tokens of the post-processor's template.
	NoTemplate Option = iota + 1
	// Ordinary reads the text as text only: added and special tokens spelled in it are not recognised.
	Ordinary
)

// piece is a stretch of text being encoded.
type piece struct {
	s     string
	first bool // it begins where the whole text begins (Metaspace's prepend_scheme "first")
}

// scratch is the working memory of one encoding goroutine.
type scratch struct {
	dst      []int32
	ordinary bool
	bufs     [][]byte // one per rewriting stage
	spans    [][]span // one per splitting stage
	sym      []int32  // symbols of the current word
	rank     []int32  // rank[i]: merge rank of symbols i and i+1
	nodes    []node   // linked symbols of a long word
	heap     []uint64 // its candidate merges
}

// view returns b's bytes as a string without copying; b must not change while the string is in use.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func (t *Tokenizer) borrow(dst []int32, ordinary bool) *scratch {
	st, _ := t.pool.Get().(*scratch)
	if st == nil {
		st = &scratch{bufs: make([][]byte, t.slots), spans: make([][]span, t.slots)}
	}
	st.dst, st.ordinary = dst, ordinary
	return st
}

func (t *Tokenizer) giveBack(st *scratch) []int32 {
	dst := st.dst
	st.dst = nil
	t.pool.Put(st)
	return dst
}

// Encode returns the ids of text, added tokens recognised, inside the post-processor's template.
func (t *Tokenizer) Encode(text string, opt ...Option) []int32 {
	template, ordinary := true, false
	for _, o := range opt {
		template = template && o != NoTemplate
		ordinary = ordinary || o == Ordinary
	}
	ids := make([]int32, 0, len(text)/3+8)
	if template {
		ids = append(ids, t.template.prefix...)
	}
	if ordinary {
		ids = t.EncodeOrdinary(ids, text)
	} else {
		ids = t.Append(ids, text)
	}
	if template {
		ids = append(ids, t.template.suffix...)
	}
	return ids
}

// Append appends the ids of text to dst: added tokens are recognised, no template is applied.
func (t *Tokenizer) Append(dst []int32, text string) []int32 {
	st := t.borrow(dst, false)
	t.cut(t.rawTrie, text,
		func(a, b int) { t.segment(st, piece{text[a:b], a == 0}) },
		func(id int32) { st.dst = append(st.dst, id) })
	return t.giveBack(st)
}

// segment encodes text that contains no token of rawTrie.
func (t *Tokenizer) segment(st *scratch, p piece) {
	p = t.normal(p)
	t.cut(t.normTrie, p.s,
		func(a, b int) { t.pre(st, piece{p.s[a:b], p.first && a == 0}) },
		func(id int32) { st.dst = append(st.dst, id) })
}

// EncodeOrdinary appends the ids of text to dst, reading it as text only: a special token spelled inside an untrusted
// document becomes the ids of its characters.
func (t *Tokenizer) EncodeOrdinary(dst []int32, text string) []int32 {
	if text == "" {
		return dst
	}
	st := t.borrow(dst, true)
	p := t.normal(piece{text, true})
	if p.s != "" {
		t.pre(st, p)
	}
	return t.giveBack(st)
}
