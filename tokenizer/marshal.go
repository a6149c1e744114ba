package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"antiphase/internal/vfs"
)

// MarshalJSON returns the canonical tokenizer.json: fixed order of fields, vocabulary in order of ids, merges as pairs,
// truncation and padding null.
func (t *Tokenizer) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	var err error
	put := func(key string, v any) {
		b.WriteString(key)
		if e := enc.Encode(v); err == nil {
			err = e
		}
		b.Truncate(b.Len() - 1) // Encode ends its value with a newline
	}
	sp := &t.spec
	put(`{"version":`, "1.0")
	b.WriteString(`,"truncation":null,"padding":null`)
	added := slices.Clone(sp.added)
	if added == nil {
		added = []addedToken{}
	}
	put(`,"added_tokens":`, added)
	put(`,"normalizer":`, sp.normalizer) // a nil component is written as null
	put(`,"pre_tokenizer":`, sp.pre)
	put(`,"post_processor":`, sp.processor)
	put(`,"decoder":`, sp.decoder)
	put(`,"model":{"type":"BPE","dropout":null,"unk_token":`, sp.unk)
	b.WriteString(`,"continuing_subword_prefix":null,"end_of_word_suffix":null`)
	put(`,"fuse_unk":`, sp.fuseUnk)
	put(`,"byte_fallback":`, sp.byteFallback)
	put(`,"ignore_merges":`, sp.ignoreMerges)
	b.WriteString(`,"vocab":{`)
	spell := make(map[int32]string, len(sp.vocab))
	sep := ""
	for _, tok := range byID(sp.vocab) {
		id := sp.vocab[tok]
		spell[id] = tok
		put(sep, tok)
		fmt.Fprintf(&b, ":%d", id)
		sep = ","
	}
	b.WriteString(`},"merges":[`)
	sep = "["
	for _, m := range sp.merges {
		put(sep, spell[m.left])
		put(",", spell[m.right])
		b.WriteByte(']')
		sep = ",["
	}
	b.WriteString("]}}")
	return b.Bytes(), err
}

// byID returns the tokens in order of their ids.
func byID(vocab map[string]int32) []string {
	toks := make([]string, 0, len(vocab))
	for tok := range vocab {
		toks = append(toks, tok)
	}
	slices.SortFunc(toks, func(a, b string) int { return int(vocab[a]) - int(vocab[b]) })
	return toks
}

// Save writes a tokenizer.json that Hugging Face reads. The file is written atomically and durably.
func (t *Tokenizer) Save(path string) error {
	b, err := t.MarshalJSON()
	if err != nil {
		return fmt.Errorf("save tokenizer: %w", err)
	}
	if err := vfs.WriteFile(vfs.OS{}, path, b); err != nil {
		return fmt.Errorf("save tokenizer to %s: %w", path, err)
	}
	return nil
}
