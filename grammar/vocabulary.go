package grammar

import (
	"bytes"
	"slices"
)

// Vocabulary is a model's tokens sorted by their bytes, each with the length of the prefix it shares with the previous
// one. Walking it in order reads every shared prefix once.
type Vocabulary struct {
	size   int // ids
	ids    []int32
	place  []int32 // by id; −1 if the id is not in the list
	bytes  [][]byte
	common []int32
	ends   []int32 // ids that end a text
}

// NewVocabulary takes the bytes of every id; those without bytes are never allowed. ends are the ids that end a text.
func NewVocabulary(tokens [][]byte, ends []int32) *Vocabulary {
	v := &Vocabulary{size: len(tokens), ends: ends}
	for id, b := range tokens {
		if len(b) > 0 && !slices.Contains(ends, int32(id)) {
			v.ids = append(v.ids, int32(id))
		}
	}
	slices.SortFunc(v.ids, func(a, b int32) int { return bytes.Compare(tokens[a], tokens[b]) })
	v.bytes, v.common, v.place = make([][]byte, len(v.ids)), make([]int32, len(v.ids)),
		slices.Repeat([]int32{-1}, len(tokens))
	for i, id := range v.ids {
		v.place[id] = int32(i)
		v.bytes[i] = tokens[id]
		if i > 0 {
			n := 0
			for a, b := v.bytes[i-1], v.bytes[i]; n < len(a) && n < len(b) && a[n] == b[n]; n++ {
			}
			v.common[i] = int32(n)
		}
	}
	return v
}

// find returns the position of an id in the order.
func (v *Vocabulary) find(id int32) (int32, bool) {
	if id < 0 || int(id) >= v.size || v.place[id] < 0 {
		return 0, false
	}
	return v.place[id], true
}

// Missing is the first byte that is not a token by itself, −1 if there is none. If one is missing, a text might be
// begun that no token can finish.
func (v *Vocabulary) Missing() int {
	var have set
	for _, b := range v.bytes {
		if len(b) == 1 {
			have.add(b[0], b[0])
		}
	}
	for b := range 256 {
		// These never occur in UTF-8.
		if !have.has(byte(b)) && b != 0xc0 && b != 0xc1 && b < 0xf5 && b >= 0x20 {
			return b
		}
	}
	return -1
}

// allowed returns the ids that may follow a state, as bits. The caller holds the grammar's lock.
func (v *Vocabulary) allowed(g *Grammar, s *State) []uint64 {
	if s.mask != nil {
		return s.mask
	}
	g.words = (v.size + 63) / 64
	mask := make([]uint64, g.words)
	longest := 0
	for _, b := range v.bytes {
		longest = max(longest, len(b))
	}
	path := make([]*State, longest+1) // the state after each byte of the current token
	path[0] = s
	have, dead := 0, false
	for i, b := range v.bytes {
		n := int(v.common[i])
		if n > have {
			continue // its prefix led to a dead end
		}
		for have, dead = n, false; have < len(b); have++ {
			if path[have+1] = g.step(path[have], b[have]); path[have+1] == nil {
				dead = true
				break
			}
		}
		if !dead {
			mask[v.ids[i]/64] |= 1 << (v.ids[i] % 64)
		}
	}
	if s.accept {
		for _, id := range v.ends {
			if int(id) < v.size {
				mask[id/64] |= 1 << (id % 64)
			}
		}
	}
	s.mask = mask
	return mask
}
