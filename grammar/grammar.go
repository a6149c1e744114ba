// Package grammar constrains generated text to a JSON schema.
//
// Compile turns a schema into a program of byte classes, splits and calls (schema.go, value.go, code.go). A pushdown
// automaton runs it over bytes and builds its states lazily (automaton.go). A Vocabulary is a model's tokens sorted by
// their bytes (vocabulary.go); walking it through the automaton gives the tokens that may come next, and a [Matcher]
// does that for one text (matcher.go).
//
// The texts that can be sampled are a subset of what the schema allows: properties come in the schema's order, and
// white space is at most one space after a comma or a colon. Every text that is begun can be finished: states from
// which the end cannot be reached are never entered.
package grammar

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Limits bound the cost of a schema. Zero fields use the defaults.
type Limits struct {
	Depth  int           // of the schema's nesting; default 32
	Nodes  int           // schemas within it; default 4096
	Code   int           // instructions; default 65536
	Length int           // of minLength, maxLength, minItems and maxItems; default 4096
	Time   time.Duration // default 1 s
}

func (l *Limits) complete() {
	for _, f := range []struct {
		v   *int
		def int
	}{{&l.Depth, 32}, {&l.Nodes, 4096}, {&l.Code, 1 << 16}, {&l.Length, 4096}} {
		if *f.v == 0 {
			*f.v = f.def
		}
	}
	if l.Time == 0 {
		l.Time = time.Second
	}
}

// Grammar is a compiled schema. It is safe for concurrent use.
type Grammar struct {
	code  []inst
	sets  []set
	need  []int32 // nested calls required to reach the end of a rule, by instruction
	entry int32

	mu    sync.Mutex
	cache *cache
	words int // of a mask, for Size
}

// SchemaError reports the part of a schema that is not supported or not valid, and its place.
type SchemaError struct {
	Path    string // JSON pointer
	Problem string
}

// Error names the place and the problem.
func (e *SchemaError) Error() string {
	if e.Path == "" {
		return "schema: " + e.Problem
	}
	return fmt.Sprintf("schema at %s: %s", e.Path, e.Problem)
}

var errTime = errors.New("takes too long to compile")

// Object is the grammar of any JSON object.
func Object(l Limits) (*Grammar, error) { return Compile([]byte(`{"type":"object"}`), l) }
