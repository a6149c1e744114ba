package data

import (
	"context"
	"iter"
	"strings"
	"unicode/utf8"
)

// What happens to text that cannot be used is one rule for every format: a binary file is refused; a document that is not UTF-8, or
// is empty, is left out and counted in the manifest; a source of which nothing is left is refused.
const (
	notUTF8 = "not UTF-8"
	empty   = "empty"
)

// Skipped counts the documents of a source that were left out.
type Skipped struct {
	Empty   int64 `json:"empty,omitempty"`    // white space, or no token
	NotUTF8 int64 `json:"not_utf8,omitempty"` // in another encoding, or damaged
}

func (s *Skipped) count(why string) {
	if why == notUTF8 {
		s.NotUTF8++
	} else {
		s.Empty++
	}
}

// unusable says why a document is left out; "" where it is not.
func unusable(text string) string {
	switch {
	case !utf8.ValidString(text):
		return notUTF8
	case strings.TrimSpace(text) == "":
		return empty
	}
	return ""
}

// screener is a source that leaves documents out.
type screener interface {
	screened(ctx context.Context, skipped func(why string)) iter.Seq2[Document, error]
}

// documents are those of a source, with a word for each that is left out.
func documents(ctx context.Context, s Source, skipped func(why string)) iter.Seq2[Document, error] {
	if x, ok := s.(screener); ok {
		return x.screened(ctx, skipped)
	}
	return s.Documents(ctx)
}
