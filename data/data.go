// Package data turns text into token batches.
//
// The flow: [Open] reads a spec ("corpus/", "stories.jsonl.zst", "synthetic:seed=7") into a [Source] of documents;
// [Build] encodes the documents into memory-mapped token shards beside a manifest; [OpenSet] checks and maps them;
// a [Loader] takes rows of T tokens of a [Split] in random order, a [Prefetcher] gathers them ahead of their use;
// a [Position] is a few integers from which exactly the same batches follow.
//
// The shard and manifest formats are documented in docs/format/shard.md. The package never imports a tokenizer:
// an [Encoder] is all it needs. Legend: B rows per batch, T tokens per row.
package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"syscall"
)

// Document is one text and where it came from.
type Document struct {
	Text   string // valid UTF-8
	Source string // file name, or a generator's kind such as "synthetic/needle"
}

// Source is a finite, ordered stream of documents. Documents may be called more than once and yields the same
// stream each time; after an error nothing more is yielded.
type Source interface {
	Name() string
	Documents(ctx context.Context) iter.Seq2[Document, error]
}

// Fingerprinter is implemented by sources that can tell cheaply whether they still hold the same documents
// (file sizes and times, a generator's options). A set built from sources without it is never reused.
type Fingerprinter interface {
	Fingerprint() (string, error)
}

// Encoder is the part of a tokenizer that building a set needs. EncodeOrdinary appends the ids of text to dst and
// must be safe for concurrent use; EOS reports the end-of-text id, if there is one; Hash identifies the tokenizer.
type Encoder interface {
	EncodeOrdinary(dst []int32, text string) []int32
	Vocab() int
	EOS() (int32, bool)
	Hash() string
}

// CorruptError names a file whose content is not what its format or its manifest says.
type CorruptError struct {
	File  string
	Fault string
	err   error // what a reader said, if it did
}

// Error implements error.
func (e *CorruptError) Error() string { return fmt.Sprintf("data: %s: %s", e.File, e.Fault) }

// Unwrap gives the reader's own error.
func (e *CorruptError) Unwrap() error { return e.err }

func corrupt(file, format string, args ...any) error {
	return &CorruptError{File: file, Fault: fmt.Sprintf(format, args...)}
}

// SourceError names a source that cannot be used: unknown, empty, binary, too short.
type SourceError struct {
	Source string
	Fault  string
	err    error // of the system, if it was one
}

// Error implements error.
func (e *SourceError) Error() string { return fmt.Sprintf("data: source %s: %s", e.Source, e.Fault) }

// Unwrap gives the system's error.
func (e *SourceError) Unwrap() error { return e.err }

// unreadable names the file in an error of its reader. What the operating system refused stays as it is; everything else, an early end
// included, says that the content is not what it should be.
func unreadable(file string, err error) error {
	if _, refused := errors.AsType[syscall.Errno](err); refused {
		return fmt.Errorf("data: %s: %w", file, err)
	}
	fault := err.Error()
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		fault += " (the file ends early: copy or download it again)"
	}
	return &CorruptError{File: file, Fault: fault, err: err}
}
