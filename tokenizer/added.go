package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is a token matched as a whole in the text, before the model sees it.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // only where no word character touches it
	LStrip     bool   `json:"lstrip"`      // consumes white space on its left
	RStrip     bool   `json:"rstrip"`      // consumes white space on its right
	Normalized bool   `json:"normalized"`  // matched in the normalized text
	Special    bool   `json:"special"`
}

// trie finds the leftmost, then longest, of a set of strings.
type trie struct {
	next  map[uint64]int32 // node<<8 | byte → node
	end   []int32          // node → token id, or -1
	first [256]bool        // bytes a token can begin with
	short [256]bool        // bytes that are a token
	pairs [1024]uint64     // bit set of the two bytes a longer token can begin with
	one   int              // the only first byte, or -1
}

func newTrie() *trie { return &trie{next: map[uint64]int32{}, end: []int32{-1}, one: -1} }

// add inserts s; of two equal strings the earlier keeps its id.
func (t *trie) add(s string, id int32) {
	if s == "" {
		return
	}
	if !t.first[s[0]] {
		t.first[s[0]] = true
		if t.one = int(s[0]); len(t.end) > 1 {
			t.one = -1
		}
	}
	if len(s) == 1 {
		t.short[s[0]] = true
	} else {
		t.pairs[int(s[0])<<2|int(s[1])>>6] |= 1 << (s[1] & 63)
	}
	node := int32(0)
	for i := range len(s) {
		key := uint64(node)<<8 | uint64(s[i])
		child, ok := t.next[key]
		if !ok {
			child = int32(len(t.end))
			t.next[key] = child
			t.end = append(t.end, -1)
		}
		node = child
	}
	if t.end[node] < 0 {
		t.end[node] = id
	}
}

// find returns the first match in s at or after byte i. ok is false when there is none.
func (t *trie) find(s string, i int) (start, stop int, id int32, ok bool) {
	if len(t.end) == 1 {
		return 0, 0, 0, false
	}
	for ; i < len(s); i++ {
		if t.one >= 0 {
			n := strings.IndexByte(s[i:], byte(t.one))
			if n < 0 {
				break
			}
			i += n
		} else if !t.first[s[i]] {
			continue
		}
		if !t.short[s[i]] && (i+1 == len(s) || t.pairs[int(s[i])<<2|int(s[i+1])>>6]&(1<<(s[i+1]&63)) == 0) {
			continue
		}
		node, last, id := int32(0), -1, int32(0)
		for j := i; j < len(s); j++ {
			child, ok := t.next[uint64(node)<<8|uint64(s[j])]
			if !ok {
				break
			}
			if node = child; t.end[node] >= 0 {
				last, id = j+1, t.end[node]
			}
		}
		if last > 0 {
			return i, last, id, true
		}
	}
	return 0, 0, 0, false
}

// cut calls text for every stretch of s between added tokens and token for every added token, in order. A match that a
// single_word token rejects is skipped as a whole, so a shorter token inside it is not found; the search continues
// after the match, not after the white space that rstrip consumed. Both are Hugging Face's behaviour.
func (t *Tokenizer) cut(tr *trie, s string, text func(start, stop int), token func(id int32)) {
	done, from := 0, 0
	for {
		start, stop, id, ok := tr.find(s, from)
		if !ok {
			break
		}
		from = stop
		tok := t.added[id]
		if tok.SingleWord && (wordBefore(s, start) || wordAfter(s, stop)) {
			continue
		}
		if tok.LStrip {
			start = len(strings.TrimRightFunc(s[:start], unicode.IsSpace))
		}
		if tok.RStrip {
			stop = len(s) - len(strings.TrimLeftFunc(s[stop:], unicode.IsSpace))
		}
		if done < start {
			text(done, start)
		}
		token(id)
		done = stop
	}
	if done < len(s) {
		text(done, len(s))
	}
}

func wordBefore(s string, i int) bool {
	r, _ := utf8.DecodeLastRuneInString(s[:i])
	return isWord(r) // of no text: no
}

func wordAfter(s string, i int) bool {
	r, _ := utf8.DecodeRuneInString(s[i:])
	return isWord(r)
}
