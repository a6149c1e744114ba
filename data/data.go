// Package data turns text into token batches.
//
// [Open] reads a spec ("corpus/", "stories.jsonl.zst", "synthetic:seed=7") into a [Source] of documents. [Build]
// encodes the documents into memory-mapped token shards with a manifest. [OpenSet] checks and maps them. A [Loader]
// takes rows of T tokens of a [Split] in random order; a [Prefetcher] gathers them in advance. A [Position] is a few
// integers from which a loader continues with exactly the same batches.
//
// The shard and manifest formats are documented in docs/format/shard.md. The package does not import a tokenizer: an
// [Encoder] is all it needs. Legend: B rows per batch, T tokens per row.
package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"syscall"
)

// Document is one text and its origin.
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

// CorruptError names a file whose content does not match its format or its manifest.
type CorruptError struct {
	File  string
	Fault string
	err   error // the reader's error, if any
}

// Error implements error.
func (e *CorruptError) Error() string { return fmt.Sprintf("data: %s: %s", e.File, e.Fault) }

// Unwrap returns the reader's error.
func (e *CorruptError) Unwrap() error { return e.err }

func corrupt(file, format string, args ...any) error {
	return &CorruptError{File: file, Fault: fmt.Sprintf(format, args...)}
}

// SourceError names a source that cannot be used: unknown, empty, binary, too short.
type SourceError struct {
	Source string
	Fault  string
	err    error // system error, if any
}

// Error implements error.
func (e *SourceError) Error() string { return fmt.Sprintf("data: source %s: %s", e.Source, e.Fault) }

// Unwrap returns the system's error.
func (e *SourceError) Unwrap() error { return e.err }

// unreadable adds the file to an error of its reader. Errors of the operating system are kept; all others, including an
// early end, mean that the content is wrong.
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
