package data

import (
	"context"
	"io"
	"os"
	"path/filepath"
)

// Estimate is the amount of text in a source, judged from its beginning.
type Estimate struct {
	Bytes  int64  // of text
	Whole  bool   // all of it was read
	Sample string // some of the text, to measure a tokenizer on

	sample []byte // Sample while it grows
}

const sampleBytes = 1 << 18

func (e *Estimate) add(text string) {
	e.Bytes += int64(len(text))
	if len(e.sample) < sampleBytes {
		e.sample = append(e.sample, text[:min(len(text), sampleBytes)]...)
	}
}

// EstimateText reads up to most bytes of a source's text and scales them to the whole: by bytes on disk for files, by
// the number of documents for a generator.
func EstimateText(ctx context.Context, s Source, most int64) (e Estimate, err error) {
	if f, ok := s.(*files); ok {
		e, err = f.estimate(most)
	} else {
		e, err = estimateDocuments(ctx, s, most)
	}
	e.Sample, e.sample = string(e.sample), nil
	return e, err
}

func estimateDocuments(ctx context.Context, s Source, most int64) (Estimate, error) {
	e, docs := Estimate{Whole: true}, 0
	for d, err := range s.Documents(ctx) {
		if err != nil {
			return e, err
		}
		e.add(d.Text)
		if docs++; e.Bytes >= most {
			e.Whole = false
			break
		}
	}
	if g, ok := s.(*Synthetic); ok && !e.Whole {
		e.Bytes = e.Bytes / int64(docs) * int64(g.Docs)
	}
	return e, nil
}

// estimate handles each kind of file separately: a compressed file has more text than its size suggests.
func (s *files) estimate(most int64) (e Estimate, err error) {
	kinds := map[string][]string{}
	var order []string
	for _, p := range s.paths {
		kind := readerOf(p, s.readers).ending
		if kinds[kind] == nil {
			order = append(order, kind)
		}
		kinds[kind] = append(kinds[kind], p)
	}
	e.Whole = true
	for _, kind := range order {
		k, err := s.estimateKind(kinds[kind], max(most/int64(len(order)), 1))
		if err != nil {
			return e, err
		}
		e.Bytes, e.Whole = e.Bytes+k.Bytes, e.Whole && k.Whole
		e.sample = append(e.sample, k.sample...)
	}
	return e, nil
}

func (s *files) estimateKind(paths []string, most int64) (e Estimate, err error) {
	var read, all int64 // bytes on disk
	for _, p := range paths {
		path := filepath.Join(s.root, p)
		st, err := os.Stat(path)
		if err != nil {
			return e, err
		}
		all += st.Size()
		if e.Bytes >= most {
			continue
		}
		n, err := s.sample(path, &e, most)
		if err != nil {
			return e, unreadable(path, err)
		}
		read += min(n, st.Size())
	}
	e.Whole = read == all
	if !e.Whole && read > 0 {
		e.Bytes = int64(float64(e.Bytes) / float64(read) * float64(all))
	}
	return e, nil
}

// sample reads a file's text until there is enough, and returns how many of its bytes were consumed. Readers read
// ahead, so the text goes on for as long as it comes from bytes that were read by then.
func (s *files) sample(path string, e *Estimate, most int64) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	end := int64(-1) // where the file stood when there was enough
	err = readerOf(path, s.readers).read(f, func(text string) bool {
		if unusable(text) == "" {
			e.add(text)
		}
		if e.Bytes < most {
			return true
		}
		at, err := f.Seek(0, io.SeekCurrent)
		if end < 0 {
			end = at
		}
		return err == nil && at == end && at > 0 // a reader of pages moves the file when it ends
	})
	if err == nil && end <= 0 {
		end, err = f.Seek(0, io.SeekCurrent)
	}
	return end, err
}
