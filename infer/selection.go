package infer

import "slices"

// candidate is a token with its logit and, once weighed, its unnormalised probability.
type candidate struct {
	id     int32
	logit  float32
	weight float64
}

// before is the order of preference: higher logit first, then lower id. It is total, so that every selection below
// gives the same list.
func before(a, b candidate) bool {
	return a.logit > b.logit || a.logit == b.logit && a.id < b.id
}

func compare(a, b candidate) int {
	if before(a, b) {
		return -1
	}
	return 1
}

// best fills dst with the k first tokens in order of preference; dst must have room for all of logits. It uses a heap
// of k with its worst on top: most tokens fail one comparison, so a small k costs one scan. For k of at least an eighth
// of the vocabulary sorting everything is cheaper.
func best(dst []candidate, logits []float32, k int) []candidate {
	k = min(k, len(logits))
	if k > len(logits)/8 {
		dst = dst[:len(logits)]
		for i, l := range logits {
			dst[i] = candidate{id: int32(i), logit: l}
		}
		slices.SortFunc(dst, compare)
		return dst[:k]
	}
	heap := dst[:k]
	for i := range heap {
		heap[i] = candidate{id: int32(i), logit: logits[i]}
	}
	for i := k/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
	for i := k; i < len(logits) && k > 0; i++ {
		if logits[i] > heap[0].logit { // for an equal logit, the id is higher than all in the heap
			heap[0] = candidate{id: int32(i), logit: logits[i]}
			sink(heap, 0)
		}
	}
	slices.SortFunc(heap, compare)
	return heap
}

// sink restores the heap below i: a parent is never before its children.
func sink(heap []candidate, i int) {
	for {
		c := 2*i + 1
		if c >= len(heap) {
			return
		}
		if c+1 < len(heap) && before(heap[c], heap[c+1]) {
			c++
		}
		if !before(heap[i], heap[c]) {
			return
		}
		heap[i], heap[c] = heap[c], heap[i]
		i = c
	}
}
