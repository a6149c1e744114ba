package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"antiphase/grammar"
	"antiphase/infer"
)

// format reads response_format. The result makes a new constraint for every choice, nil for plain text.
func (o *form) format(p *infer.Sampling) func() infer.Constraint {
	none := func() infer.Constraint { return nil }
	raw, ok := o.raw("response_format")
	if !ok {
		return none
	}
	sub, err := parseObject(raw)
	if err != nil {
		o.refuse("response_format", "is %s, must be an object", excerpt(raw))
		return none
	}
	schema := []byte(`{"type":"object"}`)
	switch kind := sub.text("type"); kind {
	case "text":
		schema = nil
	case "json_object":
	case "json_schema":
		schema = sub.jsonSchema()
	default:
		sub.refuse("type", "is %q, must be text, json_object or json_schema", excerpt([]byte(kind)))
	}
	if err := sub.finish(); err != nil {
		o.refuse("response_format", "%s", err)
	}
	if schema == nil || o.err != nil {
		return none
	}
	if len(p.Stop) > 0 || len(p.StopIDs) > 0 {
		o.refuse("stop", "cannot be used with response_format: it would cut the JSON")
		return none
	}
	g, v, err := o.model.grammars.get(o.model, schema,
		grammar.Limits{Depth: o.limits.SchemaDepth, Time: o.limits.Compile})
	var bad *grammar.SchemaError
	switch {
	case errors.As(err, &bad):
		o.refuse("response_format", "%s", bad)
		return none
	case err != nil:
		o.refuse("response_format", "%s", err)
		return none
	}
	return func() infer.Constraint { return g.NewMatcher(v) }
}

// jsonSchema reads the field of that name.
func (o *object) jsonSchema() []byte {
	raw, ok := o.raw("json_schema")
	sub, err := parseObject(raw)
	if !ok || err != nil {
		o.refuse("json_schema", "must be an object with a schema")
		return nil
	}
	sub.text("name")
	sub.text("description")
	sub.flag("strict", true)
	schema, ok := sub.raw("schema")
	if !ok {
		sub.refuse("schema", "is missing")
	}
	if err := sub.finish(); err != nil {
		o.refuse("json_schema", "%s", err)
	}
	return schema
}

const (
	maxGrammars     = 64
	maxGrammarBytes = 64 << 20
)

// grammars caches compiled schemas of one model, least recently used last, within a number of bytes.
type grammars struct {
	mu    sync.Mutex
	vocab *grammar.Vocabulary
	list  []compiled
}

type compiled struct {
	schema string
	g      *grammar.Grammar
}

// get compiles a schema, or finds it in the cache.
func (c *grammars) get(m *Model, schema []byte, l grammar.Limits) (*grammar.Grammar, *grammar.Vocabulary, error) {
	var text bytes.Buffer
	if json.Compact(&text, schema) != nil {
		return nil, nil, errors.New("the schema is not JSON")
	}
	key := text.String()
	if b := c.vocabulary(m).Missing(); b >= 0 {
		return nil, nil, fmt.Errorf(
			"the model's tokenizer has no token for the byte %#02x, so that JSON cannot always be finished", b)
	}
	if g := c.find(key); g != nil {
		return g, c.vocab, nil
	}
	g, err := grammar.Compile([]byte(key), l) // without the lock: others need not wait for a slow one
	if err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = slices.Insert(c.list, 0, compiled{key, g})
	c.trim()
	return g, c.vocab, nil
}

// vocabulary is created for the first schema.
func (c *grammars) vocabulary(m *Model) *grammar.Vocabulary {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.vocab == nil {
		c.vocab = m.vocabulary()
	}
	return c.vocab
}

// find returns a compiled schema and marks it as used.
func (c *grammars) find(key string) *grammar.Grammar {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.list, func(k compiled) bool { return k.schema == key })
	if i < 0 {
		return nil
	}
	k := c.list[i]
	c.list = slices.Insert(slices.Delete(c.list, i, i+1), 0, k)
	c.trim()
	return k.g
}

// trim drops the least recently used. Requests that use it keep it.
func (c *grammars) trim() {
	bytes := 0
	for i := range c.list {
		if bytes += c.list[i].g.Size() + len(c.list[i].schema); i > 0 && bytes > maxGrammarBytes || i >= maxGrammars {
			c.list = slices.Delete(c.list, i, len(c.list))
			return
		}
	}
}

// vocabulary is the model's tokens as bytes of text; special ones have none.
func (m *Model) vocabulary() *grammar.Vocabulary {
	tokens := make([][]byte, m.Tokenizer.Vocab())
	for id := range tokens {
		if !m.Tokenizer.Special(int32(id)) {
			tokens[id] = m.Tokenizer.TokenBytes(int32(id))
		}
	}
	return grammar.NewVocabulary(tokens, m.eos)
}
