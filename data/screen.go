package data

import (
	"context"
	"iter"
	"strings"
	"unicode/utf8"
)

// Unusable text is handled the same way in every format: a binary file is rejected; a document that is not UTF-8, or is
// empty, is dropped and counted in the manifest; a source with no documents left is rejected.
const (
	notUTF8 = "not UTF-8"
	empty   = "empty"
)

// Skipped counts the dropped documents of a source.
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

// unusable returns why a document is dropped; "" if it is not.
func unusable(text string) string {
	switch {
	case !utf8.ValidString(text):
		return notUTF8
	case strings.TrimSpace(text) == "":
		return empty
	}
	return ""
}

// screener is a source that drops documents.
type screener interface {
	screened(ctx context.Context, skipped func(why string)) iter.Seq2[Document, error]
}

// documents yields those of a source and calls skipped for each dropped one.
func documents(ctx context.Context, s Source, skipped func(why string)) iter.Seq2[Document, error] {
	if x, ok := s.(screener); ok {
		return x.screened(ctx, skipped)
	}
	return s.Documents(ctx)
}
