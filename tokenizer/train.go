package tokenizer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// MaxTrained bounds a vocabulary: several times the largest in use.
const MaxTrained = 1 << 22

// TrainOptions configures [Train].
type TrainOptions struct {
	Vocab    int                   // total number of tokens: specials, 256 bytes, merges
	Specials []string              // special tokens, with ids starting at 0
	Pattern  string                // split pattern; "" is PatternLlama3
	Workers  int                   // goroutines that count words; 0 is one
	Progress func(done, total int) // called occasionally with the number of merges done and wanted; may be nil
	MinCount int                   // rarer pairs are not merged; 0 is 2
}

// Train learns a byte-level BPE tokenizer from documents: it starts from the 256 bytes, so any text can be encoded, and
// merges the most frequent pair of adjacent tokens inside words until the vocabulary is full or no pair is frequent
// enough.
//
// The result depends only on the multiset of words, not on the number of workers or the order of documents. Among pairs
// of equal count the one with the smaller left id wins, then the one with the smaller right id. Ids are ordered as by
// Hugging Face's trainer: specials, bytes in the order of their letters, merges. A note reports if the text was too
// small to fill the vocabulary.
func Train(ctx context.Context, docs iter.Seq[string], opt TrainOptions) (*Tokenizer, error) {
	if opt.Pattern == "" {
		opt.Pattern = PatternLlama3
	}
	if opt.MinCount <= 0 {
		opt.MinCount = 2
	}
	opt.Workers = max(opt.Workers, 1)
	sp := spec{decoder: json.RawMessage(byteLevelJSON)}
	var err error
	if sp.pre, err = patternPre(opt.Pattern); err != nil {
		return nil, fmt.Errorf("train tokenizer: %w", err)
	}
	if err := sp.alphabet(opt); err != nil {
		return nil, fmt.Errorf("train tokenizer: %w", err)
	}
	pres, err := parsePre(sp.pre, &budget{})
	if err != nil {
		return nil, fmt.Errorf("train tokenizer: %w", err)
	}
	words, err := countWords(ctx, docs, pres, opt.Workers)
	if err != nil {
		return nil, fmt.Errorf("train tokenizer: count words: %w", err)
	}
	if err := newPairs(words, &sp).learn(ctx, opt); err != nil {
		return nil, fmt.Errorf("train tokenizer: %w", err)
	}
	t, err := build(sp)
	if err != nil {
		return nil, err
	}
	if n := t.Vocab(); n < opt.Vocab {
		t.notes = append(t.notes, fmt.Sprintf("the text gave %d tokens of the %d wanted: no other pair occurs %d times",
			n, opt.Vocab, opt.MinCount))
	}
	return t, nil
}

// patternPre returns the pre-tokenizer for a pattern; GPT-2's own is built into ByteLevel.
func patternPre(pattern string) (json.RawMessage, error) {
	if pattern == PatternGPT2 {
		return json.RawMessage(byteLevelJSON), nil
	}
	p, err := json.Marshal(pattern)
	if err != nil {
		return nil, err
	}
	return canonical(json.RawMessage(`{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":` +
		string(p) +
		`},"behavior":"Isolated","invert":false},` + byteLevelPlainJSON + `]}`))
}

// alphabet assigns ids to the specials and the bytes.
func (sp *spec) alphabet(opt TrainOptions) error {
	if least := len(opt.Specials) + 256; opt.Vocab < least {
		return fmt.Errorf("vocabulary of %d is too small: %d specials and 256 bytes need %d", opt.Vocab,
			len(opt.Specials), least)
	}
	if opt.Vocab > MaxTrained {
		return fmt.Errorf("vocabulary of %d is too large: at most %d", opt.Vocab, MaxTrained)
	}
	sp.vocab = make(map[string]int32, min(opt.Vocab, 1<<16)) // the text may yield fewer
	for _, s := range opt.Specials {
		if s == "" {
			return errors.New("a special token is empty")
		}
		if _, dup := sp.vocab[s]; dup {
			return fmt.Errorf("special token %q is given twice", s)
		}
		id := int32(len(sp.vocab))
		sp.vocab[s] = id
		sp.added = append(sp.added, addedToken{ID: id, Content: s, Special: true})
	}
	letters := slices.Clone(byteText[:])
	slices.Sort(letters) // by code point, which for UTF-8 is the order of bytes
	for _, l := range letters {
		if _, dup := sp.vocab[l]; dup {
			return fmt.Errorf("special token %q is the letter of a byte", l)
		}
		sp.vocab[l] = int32(len(sp.vocab))
	}
	return nil
}
