package data

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"antiphase/internal/fault"
	"antiphase/internal/vfs"
)

// BuildOptions configure Build. The zero value is usable.
type BuildOptions struct {
	ShardTokens int                      // tokens after which a new shard begins; 0: 1<<26
	HeldOut     float64                  // share of the text in split "valid", 0 ≤ HeldOut < 1
	HeldOutBy   string                   // how it is chosen: ByPieces or ByDocuments; "" means ByPieces
	Shares      []Share                  // of the sources, to draw from each separately; nil: one. In the manifest
	MaxTokens   int64                    // stop after the document with which the set reaches it; 0: no bound
	Tokenizer   []byte                   // stored in the folder as TokenizerName; nil: none
	Workers     int                      // concurrent encoders; 0: GOMAXPROCS. The result does not depend on it
	Progress    func(docs, tokens int64) // called from one goroutine as documents are written; may be nil
	FS          vfs.FS                   // file system to write to; nil: the machine's
}

// Build encodes the documents of src, in order, into a token set in dir and returns its manifest.
//
// Each document's ids end with the end-of-text id, if the encoder has one; documents without tokens are dropped. Pieces
// that are held out are cut out of their documents, and the remaining parts stay in training as separate documents. If
// whole documents are held out, equal ones are in the same split. In both cases nothing held out is in training. If dir
// already has a complete set with the same inputs, it is returned; a set with other inputs is replaced. The set is
// built in a temporary folder next to dir and renamed at the end, so dir never holds a partial set.
func Build(ctx context.Context, dir string, src []Source, enc Encoder, opt BuildOptions) (*Manifest, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	m, err := newManifest(src, enc, opt)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("data: build: %w", err)
	}
	if old, err := reusable(opt.FS, dir, m.Inputs); old != nil || err != nil {
		return old, err
	}
	if err := vfs.MkdirAll(opt.FS, filepath.Dir(dir)); err != nil {
		return nil, fmt.Errorf("data: build: %w", err)
	}
	tmp := vfs.Temporary(dir)
	if err := opt.FS.Mkdir(tmp); err != nil {
		return nil, fmt.Errorf("data: build: %w", err)
	}
	defer func() { _ = vfs.RemoveAll(opt.FS, tmp) }() // already gone if the rename succeeded
	b := &builder{dir: tmp, enc: enc, opt: opt, m: m}
	if err := b.run(ctx, src); err != nil {
		return nil, err
	}
	if err := b.finish(); err != nil {
		return nil, err
	}
	if err := replace(opt.FS, dir, tmp); err != nil {
		return nil, err
	}
	vfs.Sweep(opt.FS, dir)
	return m, nil
}

// errFull ends a build that has reached MaxTokens.
var errFull = errors.New("token bound reached")

// batch is some documents of one source, passed from reader to encoder to writer.
type batch struct {
	source int
	docs   []Document
	ids    []int32  // of all documents, end-of-text ids included
	ends   []int    // ends[i] is where document i ends in ids
	hashes []uint64 // of the texts
	err    error
	done   chan struct{} // closed when encoded

	skipped Skipped // documents dropped since the previous batch
}

type builder struct {
	dir    string
	enc    Encoder
	opt    BuildOptions
	m      *Manifest
	open   map[string]*shardWriter // by split
	count  map[string]int          // shards begun, by split
	divide divider
	source int // index of the source being written
	docs   int64
	tokens int64
}

// run passes documents through one reader, Workers encoders and one writer. The writer takes batches in the reader's
// order, so shards do not depend on the number of workers.
func (b *builder) run(ctx context.Context, src []Source) error {
	b.open, b.count = map[string]*shardWriter{}, map[string]int{}
	if b.divide = divider(&byDocument{write: b.write, share: b.opt.HeldOut}); b.opt.HeldOut > 0 &&
		b.opt.HeldOutBy == ByPieces {
		b.divide = newByPiece(b.write, b.opt.HeldOut, b.m.EOS, b.repeated)
	}
	defer func() {
		for _, w := range b.open {
			w.f.Close()
		}
	}()
	g, ctx := errgroup.WithContext(ctx)
	work := make(chan *batch)
	queue := make(chan *batch, 2*b.opt.Workers)
	g.Go(func() error {
		defer fault.Guard()()
		defer close(queue)
		defer close(work)
		return produce(ctx, src, queue, work)
	})
	for range b.opt.Workers {
		g.Go(func() error {
			defer fault.Guard()()
			for t := range work {
				b.encode(t)
				close(t.done)
			}
			return nil
		})
	}
	g.Go(func() error {
		defer fault.Guard()()
		return b.consume(ctx, queue)
	})
	if err := g.Wait(); err != nil && !errors.Is(err, errFull) {
		return err
	}
	return b.settle()
}

// produce reads the sources in order and divides them into batches.
func produce(ctx context.Context, src []Source, queue, work chan<- *batch) error {
	const maxDocs, maxBytes = 256, 1 << 18
	send := func(t *batch) error {
		for _, c := range []chan<- *batch{queue, work} {
			select {
			case c <- t:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	for i, s := range src {
		t, size := &batch{source: i, done: make(chan struct{})}, 0
		for d, err := range documents(ctx, s, func(why string) { t.skipped.count(why) }) {
			if err != nil {
				return fmt.Errorf("data: build: source %s: %w", s.Name(), err)
			}
			t.docs, size = append(t.docs, d), size+len(d.Text)
			if len(t.docs) < maxDocs && size < maxBytes {
				continue
			}
			if err := send(t); err != nil {
				return err
			}
			t, size = &batch{source: i, done: make(chan struct{})}, 0
		}
		if err := send(t); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (b *builder) encode(t *batch) {
	for _, d := range t.docs {
		begin := len(t.ids)
		t.ids = b.enc.EncodeOrdinary(t.ids, d.Text)
		if e, ok := b.enc.(interface{ Err() error }); ok && e.Err() != nil {
			t.err = fmt.Errorf("data: build: tokenizer, on a document of %s: %w", d.Source, e.Err())
			return
		}
		for _, id := range t.ids[begin:] {
			if id < 0 || int(id) >= b.m.Vocab {
				t.err = fmt.Errorf("data: build: encoder gave id %d for a document of %s, its vocabulary is %d", id,
					d.Source, b.m.Vocab)
				return
			}
		}
		if len(t.ids) > begin && b.m.EOS != nil {
			t.ids = append(t.ids, *b.m.EOS)
		}
		t.ends = append(t.ends, len(t.ids))
		sum := sha256.Sum256([]byte(d.Text))
		t.hashes = append(t.hashes, binary.LittleEndian.Uint64(sum[:]))
	}
	t.docs = nil
}

func (b *builder) consume(ctx context.Context, queue <-chan *batch) error {
	for t := range queue {
		select {
		case <-t.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if t.err != nil {
			return t.err
		}
		if err := b.enter(t.source); err != nil {
			return err
		}
		skipped := &b.m.Sources[t.source].Skipped
		skipped.Empty, skipped.NotUTF8 = skipped.Empty+t.skipped.Empty, skipped.NotUTF8+t.skipped.NotUTF8
		begin := 0
		for i, end := range t.ends {
			if err := b.add(t.ids[begin:end], t.hashes[i]); err != nil {
				return err
			}
			begin = end
			if b.opt.MaxTokens > 0 && b.tokens >= b.opt.MaxTokens {
				return errFull
			}
		}
		if b.opt.Progress != nil {
			b.opt.Progress(b.docs, b.tokens)
		}
	}
	return nil
}

// enter finishes the sources before this one.
func (b *builder) enter(source int) error {
	for ; b.source < source; b.source++ {
		if err := b.leave(); err != nil {
			return err
		}
	}
	return nil
}

// leave finishes the current source, which must have had a document.
func (b *builder) leave() error {
	if s := b.m.Sources[b.source]; s.Docs == 0 {
		return &SourceError{Source: s.Name,
			Fault: fmt.Sprintf("gave no document with text (%d not UTF-8, %d empty)", s.Skipped.NotUTF8,
				s.Skipped.Empty)}
	}
	return b.divide.end()
}

// add counts a document and passes it to the divider.
func (b *builder) add(ids []int32, hash uint64) error {
	if len(ids) == 0 {
		b.m.Sources[b.source].Skipped.count(empty)
		return nil
	}
	b.docs, b.tokens = b.docs+1, b.tokens+int64(len(ids))
	b.m.Sources[b.source].Docs++
	return b.divide.add(ids, hash)
}

// repeated counts tokens dropped because they repeat held-out text.
func (b *builder) repeated(source, tokens int) { b.m.Sources[source].Repeated += int64(tokens) }

func (b *builder) write(source int, split string, ids []int32) error {
	info := &b.m.Sources[source]
	info.Tokens += int64(len(ids))
	if split == Valid {
		info.HeldOut += int64(len(ids))
	}
	part := 0
	if b.opt.Shares != nil && split == Train {
		part = source + 1
	}
	w := b.open[split]
	if w != nil && (w.part != part || w.header.tokens+uint64(len(ids)) > uint64(b.opt.ShardTokens)) {
		if err := b.closeShard(split); err != nil {
			return err
		}
		w = nil
	}
	if w == nil {
		var err error
		w, err = createShard(b.opt.FS, filepath.Join(b.dir, fmt.Sprintf("%s-%05d.bin", split, b.count[split])),
			b.m.Vocab)
		if err != nil {
			return err
		}
		w.part = part
		b.open[split] = w
		b.count[split]++
	}
	if err := w.add(ids); err != nil {
		return fmt.Errorf("data: build: %w", err)
	}
	return nil
}

func (b *builder) closeShard(split string) error {
	info, err := b.open[split].finish(split)
	delete(b.open, split)
	b.m.Shards = append(b.m.Shards, info)
	return err
}

// settle finishes the last source and closes the last shard of each split.
func (b *builder) settle() error {
	if err := b.leave(); err != nil {
		return err
	}
	if err := b.divide.finish(); err != nil {
		return err
	}
	for _, split := range []string{Train, Valid} {
		if b.open[split] == nil {
			continue
		}
		if err := b.closeShard(split); err != nil {
			return err
		}
	}
	if b.opt.Progress != nil {
		b.opt.Progress(b.docs, b.tokens)
	}
	return nil
}
