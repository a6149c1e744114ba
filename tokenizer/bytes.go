package tokenizer

import (
	"encoding/json"
	"fmt"
	"sync"
)

// Components of the built-in tokenizers, in the file's notation.
const (
	byteLevelJSON      = `{"add_prefix_space":false,"trim_offsets":true,"type":"ByteLevel","use_regex":true}`
	byteLevelPlainJSON = `{"add_prefix_space":false,"trim_offsets":true,"type":"ByteLevel","use_regex":false}`
)

// byteSpecials have the ids 256 and up.
var byteSpecials = []string{"<|endoftext|>", "<|pad|>", "<|im_start|>", "<|im_end|>"}

var bytesOnce = sync.OnceValue(func() *Tokenizer {
	sp := spec{
		vocab:   make(map[string]int32, 256),
		pre:     json.RawMessage(byteLevelPlainJSON),
		decoder: json.RawMessage(byteLevelJSON),
	}
	for b := range 256 {
		sp.vocab[byteText[b]] = int32(b)
	}
	for i, s := range byteSpecials {
		sp.added = append(sp.added, addedToken{ID: int32(256 + i), Content: s, Special: true})
	}
	t, err := build(sp)
	if err != nil {
		// The description is a constant of this file.
		panic("tokenizer: the byte tokenizer does not parse: " + err.Error())
	}
	return t
})

// Bytes returns the tokenizer whose token b is the byte b, with <|endoftext|> at 256 followed by <|pad|>, <|im_start|>
// and <|im_end|>. It has no merges and needs no file. Small models and tests use it.
func Bytes() *Tokenizer { return bytesOnce() }

// build makes a tokenizer from a spec by writing and parsing its file, so that there is only one path from content to
// tables.
func build(sp spec) (*Tokenizer, error) {
	b, err := (&Tokenizer{spec: sp}).MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("build tokenizer: %w", err)
	}
	return Parse(b)
}
