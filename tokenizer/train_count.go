package tokenizer

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"antiphase/internal/fault"
)

// wordCount is a distinct word of the training text, raw bytes, and how often it occurs.
type wordCount struct {
	word  string
	count int64
}

// counter is one worker's tally.
type counter struct {
	index  map[string]int32
	counts []wordCount
}

func (c *counter) add(w string, n int64) {
	if i, ok := c.index[w]; ok {
		c.counts[i].count += n
		return
	}
	w = strings.Clone(w) // w may be a view of a buffer and must not keep a whole document alive
	c.index[w] = int32(len(c.counts))
	c.counts = append(c.counts, wordCount{w, n})
}

// batchBytes is the amount of text given to a worker at a time.
const batchBytes = 256 << 10

// countWords splits the documents into words with the given pre-tokenizers and counts them in parallel. The result is
// sorted by word, so it does not depend on the division of work.
func countWords(ctx context.Context, docs iter.Seq[string], pres []preTokenizer, workers int) ([]wordCount, error) {
	batches := make(chan []string, workers)
	counters := make([]*counter, workers)
	var wg sync.WaitGroup
	for i := range counters {
		c := &counter{index: map[string]int32{}}
		counters[i] = c
		wg.Go(func() {
			defer fault.Guard()()
			st := &scratch{bufs: make([][]byte, len(pres)+1), spans: make([][]span, len(pres)+1)}
			cut := chain(pres, func(_ *scratch, p piece) { c.add(p.s, 1) })
			for batch := range batches {
				for _, doc := range batch {
					cut(st, piece{doc, true})
				}
			}
		})
	}
	err := feed(ctx, docs, batches)
	close(batches)
	wg.Wait()
	if err != nil {
		return nil, err
	}
	all := counters[0]
	for _, c := range counters[1:] {
		for _, w := range c.counts {
			all.add(w.word, w.count)
		}
	}
	slices.SortFunc(all.counts, func(a, b wordCount) int { return strings.Compare(a.word, b.word) })
	return all.counts, nil
}

func feed(ctx context.Context, docs iter.Seq[string], batches chan<- []string) error {
	var batch []string
	size := 0
	for doc := range docs {
		if doc == "" {
			continue
		}
		batch, size = append(batch, doc), size+len(doc)
		if size < batchBytes {
			continue
		}
		select {
		case batches <- batch:
		case <-ctx.Done():
			return ctx.Err()
		}
		batch, size = nil, 0
	}
	if batch != nil {
		batches <- batch
	}
	return ctx.Err()
}
