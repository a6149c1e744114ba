package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

type modelJSON struct {
	Type         string           `json:"type"`
	Dropout      *float64         `json:"dropout"`
	Unk          *string          `json:"unk_token"`
	Prefix       *string          `json:"continuing_subword_prefix"`
	Suffix       *string          `json:"end_of_word_suffix"`
	FuseUnk      bool             `json:"fuse_unk"`
	ByteFallback bool             `json:"byte_fallback"`
	IgnoreMerges bool             `json:"ignore_merges"`
	Vocab        map[string]int64 `json:"vocab"`
	Merges       json.RawMessage  `json:"merges"`
}

// maxID bounds ids by the number of tokens, so that a file cannot require tables much larger than itself; gaps are
// allowed.
func maxID(tokens int) int64 { return min(8*int64(tokens)+1<<16, math.MaxInt32-1) }

func (t parser) parseModel(raw json.RawMessage) error {
	var kind struct {
		Type *string `json:"type"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		return err
	}
	if kind.Type != nil && *kind.Type != "BPE" {
		return fmt.Errorf("type %q is not supported; want BPE", *kind.Type)
	}
	var m modelJSON
	if err := strict(raw, &m); err != nil {
		return err
	}
	switch {
	case m.Dropout != nil && *m.Dropout != 0:
		return fmt.Errorf("dropout %g is not supported: encoding would be random", *m.Dropout)
	case m.Prefix != nil && *m.Prefix != "":
		return fmt.Errorf("continuing_subword_prefix %q is not supported", *m.Prefix)
	case m.Suffix != nil && *m.Suffix != "":
		return fmt.Errorf("end_of_word_suffix %q is not supported", *m.Suffix)
	case len(m.Vocab) == 0:
		return errors.New("vocab is missing or empty")
	}
	if err := t.setVocab(m.Vocab); err != nil {
		return err
	}
	pairs, err := parseMerges(m.Merges)
	if err != nil {
		return err
	}
	if t.spec.merges, err = resolveMerges(t.spec.vocab, pairs); err != nil {
		return err
	}
	t.spec.unk, t.spec.fuseUnk, t.spec.byteFallback, t.spec.ignoreMerges = m.Unk, m.FuseUnk, m.ByteFallback,
		m.IgnoreMerges
	t.setModel(pairs)
	return nil
}

// setVocab checks the model's vocabulary and fills the token tables.
func (t parser) setVocab(vocab map[string]int64) error {
	limit, top := maxID(len(vocab)), int64(-1)
	for tok, id := range vocab {
		if id < 0 || id > limit {
			return fmt.Errorf("vocab: id %d of %q is out of range; %d tokens may have ids up to %d", id, tok,
				len(vocab), limit)
		}
		top = max(top, id)
	}
	t.tokens = make([]string, top+1)
	used := make([]bool, top+1)
	t.spec.vocab = make(map[string]int32, len(vocab))
	t.ids = make(map[string]int32, len(vocab)+16)
	for tok, id := range vocab {
		if used[id] {
			a, b := min(tok, t.tokens[id]), max(tok, t.tokens[id])
			return fmt.Errorf("vocab: %q and %q share id %d", a, b, id)
		}
		used[id] = true
		t.tokens[id] = tok
		t.spec.vocab[tok] = int32(id)
		t.ids[tok] = int32(id)
	}
	return nil
}

// setModel makes the model from t.spec.
func (t parser) setModel(pairs [][2]string) {
	t.model = newBPE(t.spec.vocab, t.spec.merges)
	t.model.fuseUnk, t.model.byteFallback, t.model.ignoreMerges = t.spec.fuseUnk, t.spec.byteFallback,
		t.spec.ignoreMerges
	if t.spec.unk != nil {
		if id, ok := t.spec.vocab[*t.spec.unk]; ok {
			t.model.unk = id
		} else {
			t.notes = append(t.notes,
				fmt.Sprintf("unk_token %q is not in the vocabulary: unknown characters are left out", *t.spec.unk))
		}
	}
	t.model.findCuts(pairs)
}

// parseMerges reads both notations: "a b" and ["a","b"].
func parseMerges(raw json.RawMessage) ([][2]string, error) {
	if isNull(raw) {
		return nil, errors.New("merges are missing")
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, fmt.Errorf("merges: %w", err)
	}
	pairs := make([][2]string, len(items))
	for i, item := range items {
		var list []string
		if item[0] == '"' {
			var s string
			if err := json.Unmarshal(item, &s); err != nil {
				return nil, fmt.Errorf("merges[%d]: %w", i, err)
			}
			list = strings.Split(s, " ")
		} else if err := json.Unmarshal(item, &list); err != nil {
			return nil, fmt.Errorf(`merges[%d]: want "a b" or ["a","b"]: %w`, i, err)
		}
		if len(list) != 2 {
			return nil, fmt.Errorf("merges[%d]: %d parts; want 2", i, len(list))
		}
		pairs[i] = [2]string{list[0], list[1]}
	}
	return pairs, nil
}

func resolveMerges(vocab map[string]int32, pairs [][2]string) ([]mergeRule, error) {
	rules := make([]mergeRule, len(pairs))
	for i, p := range pairs {
		for k, tok := range []string{p[0], p[1], p[0] + p[1]} {
			id, ok := vocab[tok]
			if !ok {
				return nil, fmt.Errorf("merges[%d]: token %q is not in the vocabulary", i, tok)
			}
			switch k {
			case 0:
				rules[i].left = id
			case 1:
				rules[i].right = id
			default:
				rules[i].out = id
			}
		}
	}
	return rules, nil
}

type addedJSON struct {
	ID         *int64  `json:"id"`
	Content    *string `json:"content"`
	SingleWord bool    `json:"single_word"`
	LStrip     bool    `json:"lstrip"`
	RStrip     bool    `json:"rstrip"`
	Normalized *bool   `json:"normalized"`
	Special    bool    `json:"special"`
}

// parseAdded reads the added tokens. As in Hugging Face, a token of the model's vocabulary keeps its id there and any
// other takes the next free id, in order. The id in the file should agree; a note reports if it does not.
func (t parser) parseAdded(list []json.RawMessage) error {
	next := int64(len(t.spec.vocab)) // the count, even when the ids have gaps
	limit := maxID(len(t.spec.vocab) + len(list))
	for i, raw := range list {
		var a addedJSON
		if err := strict(raw, &a); err != nil {
			return fmt.Errorf("added_tokens[%d]: %w", i, err)
		}
		if a.ID == nil || a.Content == nil {
			return fmt.Errorf("added_tokens[%d]: id and content are required", i)
		}
		if *a.ID < 0 || *a.ID > limit {
			return fmt.Errorf("added_tokens[%d]: id %d of %q is out of range; ids up to %d are allowed", i, *a.ID,
				*a.Content, limit)
		}
		if *a.Content == "" {
			continue
		}
		normalized := !a.Special
		if a.Normalized != nil {
			normalized = *a.Normalized
		}
		id, known := t.ids[*a.Content]
		if !known {
			id = int32(next)
		}
		if int64(id) >= next {
			next = int64(id) + 1
		}
		if int64(id) != *a.ID {
			t.notes = append(t.notes, fmt.Sprintf("added token %q has id %d in the file; its place gives it %d",
				*a.Content, *a.ID, id))
		}
		t.addToken(addedToken{id, *a.Content, a.SingleWord, a.LStrip, a.RStrip, normalized, a.Special})
	}
	return nil
}

func (t parser) addToken(tok addedToken) {
	for int(tok.ID) >= len(t.tokens) {
		t.tokens = append(t.tokens, "")
	}
	t.tokens[tok.ID] = tok.Content
	t.ids[tok.Content] = tok.ID
	if tok.Special {
		t.special[tok.Content] = true
	}
	t.added[tok.ID] = tok
	t.spec.added = append(t.spec.added, tok)
}
