package tokenizer

import (
	"container/heap"
	"context"
)

// pairs is the state of training: every distinct word as a list of ids, the count of every adjacent pair, and for each
// pair the words it may occur in. A merge touches only those words.
type pairs struct {
	sp     *spec
	spell  []string  // id → token
	words  [][]int32 // ids of each word
	counts []int64   // how often each word occurs
	index  map[uint64]int32
	list   []pair
	queue  pairQueue
	grown  []int32 // pairs whose count rose in the current merge
}

type pair struct {
	left, right int32
	count       int64
	words       []int32 // ascending while it is built; may include words that have lost the pair
	grown       bool
	merged      bool // it has its rule; it can return if two pairs make the same token
}

// candidate is a queued pair with its count at that time.
type candidate struct {
	count       int64
	left, right int32
	index       int32
}

// pairQueue is a heap: highest count first, then smallest left id, then smallest right id.
type pairQueue []candidate

func (q pairQueue) Len() int { return len(q) }
func (q pairQueue) Less(i, j int) bool {
	a, b := q[i], q[j]
	if a.count != b.count {
		return a.count > b.count
	}
	if a.left != b.left {
		return a.left < b.left
	}
	return a.right < b.right
}
func (q pairQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push and Pop serve container/heap.
func (q *pairQueue) Push(x any) { *q = append(*q, x.(candidate)) }
func (q *pairQueue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

func newPairs(words []wordCount, sp *spec) *pairs {
	p := &pairs{sp: sp, spell: byID(sp.vocab), index: map[uint64]int32{}}
	p.words, p.counts = make([][]int32, len(words)), make([]int64, len(words))
	total := 0
	for _, w := range words {
		total += len(w.word)
	}
	ids := make([]int32, 0, total) // one block: a word's list only shrinks
	for i, w := range words {
		start := len(ids)
		for k := range len(w.word) {
			ids = append(ids, sp.vocab[byteText[w.word[k]]])
		}
		p.words[i], p.counts[i] = ids[start:len(ids):len(ids)], w.count
		for k := start; k+1 < len(ids); k++ {
			p.add(ids[k], ids[k+1], int32(i), w.count)
		}
	}
	p.enqueueGrown()
	return p
}

// add counts n more of a pair in a word.
func (p *pairs) add(left, right, word int32, n int64) {
	key := pairKey(left, right)
	i, ok := p.index[key]
	if !ok {
		i = int32(len(p.list))
		p.index[key] = i
		p.list = append(p.list, pair{left: left, right: right})
	}
	e := &p.list[i]
	e.count += n
	if k := len(e.words); k == 0 || e.words[k-1] != word {
		e.words = append(e.words, word)
	}
	if !e.grown {
		e.grown = true
		p.grown = append(p.grown, i)
	}
}

func (p *pairs) remove(left, right int32, n int64) {
	p.list[p.index[pairKey(left, right)]].count -= n
}

func (p *pairs) enqueueGrown() {
	for _, i := range p.grown {
		e := &p.list[i]
		e.grown = false
		if e.count > 0 {
			heap.Push(&p.queue, candidate{e.count, e.left, e.right, i})
		}
	}
	p.grown = p.grown[:0]
}

// learn makes merges until the vocabulary is full or the best pair is rarer than MinCount.
func (p *pairs) learn(ctx context.Context, opt TrainOptions) error {
	first := len(p.sp.vocab)
	report := func() {
		if opt.Progress != nil {
			opt.Progress(len(p.sp.vocab)-first, opt.Vocab-first)
		}
	}
	report()
	for steps := 0; len(p.sp.vocab) < opt.Vocab && len(p.queue) > 0; steps++ {
		if steps%64 == 63 {
			report()
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		top := heap.Pop(&p.queue).(candidate)
		if now := p.list[top.index].count; now != top.count {
			// The count changed since it was queued. If it rose there is a newer entry; if it fell the pair is queued
			// again.
			if now > 0 && now < top.count {
				top.count = now
				heap.Push(&p.queue, top)
			}
			continue
		}
		if top.count < int64(opt.MinCount) {
			break
		}
		p.merge(top.index)
	}
	report()
	return ctx.Err()
}

// merge replaces a pair by one token in every word that has it.
func (p *pairs) merge(index int32) {
	left, right := p.list[index].left, p.list[index].right
	words := p.list[index].words
	p.list[index].words = nil
	text := p.spell[left] + p.spell[right]
	out, known := p.sp.vocab[text]
	if known && int(out) < len(p.sp.added) {
		p.list[index].count = 0 // the merge would spell a special token, which text must never become
		return
	}
	if !known {
		out = int32(len(p.spell))
		p.spell = append(p.spell, text)
		p.sp.vocab[text] = out
	}
	if !p.list[index].merged {
		p.list[index].merged = true
		p.sp.merges = append(p.sp.merges, mergeRule{left, right, out})
	}
	for _, w := range words {
		p.words[w] = p.mergeWord(p.words[w], w, left, right, out)
	}
	p.list[index].count = 0
	p.enqueueGrown()
}

// mergeWord replaces left right by out in one word, left to right, and updates the counts of the pairs around it.
func (p *pairs) mergeWord(ids []int32, word, left, right, out int32) []int32 {
	n := p.counts[word]
	kept := ids[:0]
	for i := 0; i < len(ids); i++ {
		if ids[i] != left || i+1 == len(ids) || ids[i+1] != right {
			kept = append(kept, ids[i])
			continue
		}
		if k := len(kept); k > 0 {
			p.remove(kept[k-1], left, n)
			p.add(kept[k-1], out, word, n)
		}
		if i+2 < len(ids) {
			p.remove(right, ids[i+2], n)
			p.add(out, ids[i+2], word, n)
		}
		kept = append(kept, out)
		i++
	}
	return kept
}
