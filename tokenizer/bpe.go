package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// bpe is the byte pair encoding model: a word becomes its characters' ids, then the adjacent pair with the lowest merge
// rank (leftmost among equals) is replaced by the merged id until no pair has a merge.
type bpe struct {
	vocab        map[string]int32
	merges       pairTable
	byteID       [256]int32     // id of each byte's letter in the byte-level alphabet, or -1
	asciiID      [128]int32     // id of each ASCII character, or -1
	runeID       map[rune]int32 // ids of the other one-character tokens
	fallback     [256]int32     // id of <0xNN>, or -1
	unk          int32          // -1: unknown characters are dropped
	fuseUnk      bool           // a run of unknown characters becomes one unk
	byteFallback bool           // an unknown character becomes its bytes' <0xNN> when all exist
	ignoreMerges bool           // a word that is a token becomes that token
	special      map[string]bool
	cuts         []cutRune
	cache        wordCache
}

// cutRune is a character before which a long word may be cut without changing the result: no merge joins a token that
// ends in a character outside joins with a token that begins with r. This turns texts that form one word (no
// pre-tokenizer, as in Llama 2) into short cacheable words.
type cutRune struct {
	r     rune
	text  string
	joins map[rune]bool
}

// newBPE builds the lookup tables; merges are in rank order and a later duplicate of a pair replaces the earlier.
func newBPE(vocab map[string]int32, merges []mergeRule) *bpe {
	m := &bpe{vocab: vocab, unk: -1, runeID: map[rune]int32{}}
	get := func(s string) int32 {
		if id, ok := vocab[s]; ok {
			return id
		}
		return -1
	}
	const hex = "0123456789ABCDEF"
	for b := range 256 {
		m.byteID[b] = get(byteText[b])
		m.fallback[b] = get("<0x" + hex[b>>4:b>>4+1] + hex[b&15:b&15+1] + ">")
		if b < 128 {
			m.asciiID[b] = get(string(rune(b)))
		}
	}
	for tok, id := range vocab {
		if r, n := utf8.DecodeRuneInString(tok); n > 0 && n == len(tok) && r >= 128 {
			m.runeID[r] = id
		}
	}
	m.merges = newPairTable(len(merges))
	for rank, mr := range merges {
		m.merges.put(mr.left, mr.right, merge{rank: int32(rank), id: mr.out})
	}
	m.cache = newWordCache(len(vocab))
	return m
}

// findCuts fills cuts from the merges' spellings.
func (m *bpe) findCuts(merges [][2]string) {
	for _, r := range []rune{'▁', ' '} {
		if _, known := m.vocab[string(r)]; !known || m.ignoreMerges {
			continue
		}
		c := cutRune{r: r, text: string(r), joins: map[rune]bool{}}
		for _, pair := range merges {
			if strings.HasPrefix(pair[1], c.text) {
				last, _ := utf8.DecodeLastRuneInString(pair[0])
				c.joins[last] = true
			}
		}
		m.cuts = append(m.cuts, c)
	}
}

// charID returns the id of the character at the start of s, or -1, and its length.
func (m *bpe) charID(s string) (int32, int) {
	if s[0] < utf8.RuneSelf {
		return m.asciiID[s[0]], 1
	}
	r, n := utf8.DecodeRuneInString(s)
	if id, ok := m.runeID[r]; ok && n > 1 {
		return id, n
	}
	return -1, n
}

// byteWord is the last stage after a ByteLevel pre-tokenizer: p holds raw bytes.
func (m *bpe) byteWord(st *scratch, p piece) { m.word(st, p.s, true) }

// textWord is the last stage of the other pre-tokenizers.
func (m *bpe) textWord(st *scratch, p piece) {
	s := p.s
	for len(m.cuts) > 0 && len(s) > 1 {
		i := m.cutPoint(s)
		if i < 0 {
			break
		}
		m.word(st, s[:i], false)
		s = s[i:]
	}
	m.word(st, s, false)
}

// cutPoint returns the first position after the start of s where it may be cut, or -1. Both characters there must have
// their own tokens: an unknown one could be dropped or fused and so make other characters adjacent.
func (m *bpe) cutPoint(s string) int {
	for i := 1; i < len(s); i++ {
		if s[i] != ' ' && s[i] != "▁"[0] {
			continue
		}
		for k := range m.cuts {
			c := &m.cuts[k]
			if !strings.HasPrefix(s[i:], c.text) {
				continue
			}
			last, width := utf8.DecodeLastRuneInString(s[:i])
			if id, _ := m.charID(s[i-width:]); id >= 0 && !c.joins[last] {
				return i
			}
		}
	}
	return -1
}

// word appends the ids of one word to st.dst; raw means that w's bytes stand for letters of the byte-level alphabet.
func (m *bpe) word(st *scratch, w string, raw bool) {
	if m.ignoreMerges && st.ordinary && len(m.special) > 0 && m.special[m.spelling(st, w, raw)] {
		// Text only: the word spells a special token, so it is merged from its characters.
		st.dst = m.merge(st, w, raw, st.dst)
		return
	}
	if len(w) > cacheBytes {
		st.dst = m.compute(st, w, raw, st.dst)
		return
	}
	slot := m.cache.slot(w)
	if e := slot.Load(); e.is(w) {
		st.dst = append(st.dst, e.ids[:e.n]...)
		return
	}
	n := len(st.dst)
	st.dst = m.compute(st, w, raw, st.dst)
	if e := newCacheEntry(w, st.dst[n:]); e != nil {
		slot.Store(e)
	}
}

func (m *bpe) spelling(st *scratch, w string, raw bool) string {
	if !raw {
		return w
	}
	st.bufs[0] = appendByteText(st.bufs[0][:0], w)
	return view(st.bufs[0])
}

func (m *bpe) compute(st *scratch, w string, raw bool, dst []int32) []int32 {
	if m.ignoreMerges {
		if id, ok := m.vocab[m.spelling(st, w, raw)]; ok {
			return append(dst, id)
		}
	}
	return m.merge(st, w, raw, dst)
}

func (m *bpe) merge(st *scratch, w string, raw bool, dst []int32) []int32 {
	m.symbols(st, w, raw)
	if m.merges.n == 0 {
		return append(dst, st.sym...)
	}
	if len(st.sym) <= shortWord {
		return m.mergeShort(st, dst)
	}
	return m.mergeLong(st, dst)
}

// symbols fills st.sym with the ids of w's characters.
func (m *bpe) symbols(st *scratch, w string, raw bool) {
	sym := st.sym[:0]
	pending := false // an unk may still fuse with the next
	for i := 0; i < len(w); {
		var id int32
		n := 1
		if raw {
			id = m.byteID[w[i]]
		} else {
			id, n = m.charID(w[i:])
		}
		char := w[i : i+n]
		i += n
		if id >= 0 {
			if pending {
				sym, pending = append(sym, m.unk), false
			}
			sym = append(sym, id)
			continue
		}
		if raw {
			char = byteText[char[0]]
		}
		if m.byteFallback && m.hasBytes(char) {
			// A pending unk stays pending, and so comes after these bytes, as in Hugging Face.
			for k := range len(char) {
				sym = append(sym, m.fallback[char[k]])
			}
			continue
		}
		if m.unk >= 0 {
			if pending && !m.fuseUnk {
				sym = append(sym, m.unk)
			}
			pending = true
		}
	}
	if pending {
		sym = append(sym, m.unk)
	}
	st.sym = sym
}

func (m *bpe) hasBytes(char string) bool {
	for i := range len(char) {
		if m.fallback[char[i]] < 0 {
			return false
		}
	}
	return true
}
