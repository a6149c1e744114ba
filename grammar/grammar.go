// Package grammar holds generated text to a JSON schema.
//
// Compile turns a schema into a program of byte classes, splits and calls (schema.go, value.go, code.go). A pushdown automaton runs it over
// bytes, with its states built as they are met (automaton.go). A Vocabulary is a model's tokens in order of their bytes (vocabulary.go); walking
// it through the automaton gives the tokens that may come next, and a [Matcher] does that for one text (matcher.go).
//
// What can be sampled is a part of what the schema allows: properties come in the schema's order, and white space is at most one space after a
// comma or a colon. Whatever is begun can be finished: a state from which no text leads to the end is never entered.
package grammar

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Limits bound what a schema may cost. Zero fields take the defaults.
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
	need  []int32 // calls that must be nested to reach the end of a rule, by instruction
	entry int32

	mu     sync.Mutex
	stack  []frame
	frames map[frame]int32
	states map[string]*State
	words  int // of a mask, for Size
}

// SchemaError says what in a schema cannot be held to, and where.
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
