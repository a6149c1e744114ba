package tokenizer

import "math"

// mergeRule is one line of the merges: left and right become out.
type mergeRule struct{ left, right, out int32 }

// merge is the id that a pair becomes, and its rank: lower ranks merge first.
type merge struct{ rank, id int32 }

const noRank = math.MaxInt32

// pairTable maps a pair of ids to its merge: open addressing with linear probing, at most half full.
type pairTable struct {
	keys  []uint64 // left<<32 | right, or noPair
	vals  []merge
	shift uint
	n     int // pairs held
}

const noPair = math.MaxUint64

func newPairTable(n int) pairTable {
	bits := uint(4)
	for 1<<bits < 2*n {
		bits++
	}
	t := pairTable{keys: make([]uint64, 1<<bits), vals: make([]merge, 1<<bits), shift: 64 - bits}
	for i := range t.keys {
		t.keys[i] = noPair
	}
	return t
}

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

func (t *pairTable) put(left, right int32, m merge) {
	key := pairKey(left, right)
	i := int(key * 0x9E3779B97F4A7C15 >> t.shift)
	for t.keys[i] != noPair && t.keys[i] != key {
		i = (i + 1) & (len(t.keys) - 1)
	}
	if t.keys[i] == noPair {
		t.n++
	}
	t.keys[i], t.vals[i] = key, m
}

// get returns the merge of a pair; its rank is noRank when there is none.
func (t *pairTable) get(left, right int32) merge {
	key := pairKey(left, right)
	i := int(key * 0x9E3779B97F4A7C15 >> t.shift)
	for {
		switch t.keys[i] {
		case key:
			return t.vals[i]
		case noPair:
			return merge{noRank, -1}
		}
		i = (i + 1) & (len(t.keys) - 1)
	}
}

// shortWord is the number of symbols up to which scanning all ranks for each merge is faster than a heap.
const shortWord = 40

// mergeShort merges st.sym in place, O(n²) with tiny constants, and appends the result to dst.
func (m *bpe) mergeShort(st *scratch, dst []int32) []int32 {
	sym := st.sym
	rank := st.rank[:0]
	for i := 0; i+1 < len(sym); i++ {
		rank = append(rank, m.merges.get(sym[i], sym[i+1]).rank)
	}
	for {
		best, at := int32(noRank), -1
		for i, r := range rank {
			if r < best {
				best, at = r, i
			}
		}
		if at < 0 {
			break
		}
		sym[at] = m.merges.get(sym[at], sym[at+1]).id
		sym = append(sym[:at+1], sym[at+2:]...)
		rank = append(rank[:at], rank[at+1:]...)
		if at < len(rank) {
			rank[at] = m.merges.get(sym[at], sym[at+1]).rank
		}
		if at > 0 {
			rank[at-1] = m.merges.get(sym[at-1], sym[at]).rank
		}
	}
	st.rank = rank
	return append(dst, sym...)
}

// node is a symbol of a long word in a doubly linked list; id is -1 once it has been merged into its left neighbour.
type node struct{ id, prev, next int32 }

// mergeLong merges st.sym in O(n log n): a heap holds rank<<32|position of every pair that can merge. Entries are not
// removed when a merge changes their pair; a popped entry counts only if the pair now at its position has the same
// rank.
func (m *bpe) mergeLong(st *scratch, dst []int32) []int32 {
	nodes, h := st.nodes[:0], st.heap[:0]
	last := int32(len(st.sym) - 1)
	for i, id := range st.sym {
		nodes = append(nodes, node{id, int32(i) - 1, int32(i) + 1})
		if int32(i) < last {
			if r := m.merges.get(id, st.sym[i+1]).rank; r != noRank {
				h = append(h, uint64(r)<<32|uint64(i))
			}
		}
	}
	nodes[last].next = -1
	for i := len(h)/2 - 1; i >= 0; i-- {
		siftDown(h, i)
	}
	push := func(left, right int32) {
		if left >= 0 && right >= 0 {
			if r := m.merges.get(nodes[left].id, nodes[right].id).rank; r != noRank {
				h = heapPush(h, uint64(r)<<32|uint64(left))
			}
		}
	}
	for len(h) > 0 {
		top := h[0]
		h[0] = h[len(h)-1]
		h = h[:len(h)-1]
		siftDown(h, 0)
		at := int32(uint32(top))
		right := nodes[at].next
		if nodes[at].id < 0 || right < 0 {
			continue
		}
		mr := m.merges.get(nodes[at].id, nodes[right].id)
		if uint64(mr.rank) != top>>32 {
			continue
		}
		nodes[at].id, nodes[at].next = mr.id, nodes[right].next
		nodes[right].id = -1
		if n := nodes[at].next; n >= 0 {
			nodes[n].prev = at
		}
		push(nodes[at].prev, at)
		push(at, nodes[at].next)
	}
	for i := int32(0); i >= 0; i = nodes[i].next {
		dst = append(dst, nodes[i].id)
	}
	st.nodes, st.heap = nodes, h
	return dst
}

func heapPush(h []uint64, x uint64) []uint64 {
	h = append(h, x)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if h[up] <= x {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = x
	return h
}

func siftDown(h []uint64, i int) {
	if i >= len(h) {
		return
	}
	x := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if x <= h[child] {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = x
}
