package tokenizer

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
)

// Tokenizer maps text to token ids and back. It does not change after construction and is safe for concurrent use.
type Tokenizer struct {
	spec  spec     // content of the file, for Save
	notes []string // see Notes

	tokens []string         // id → content; "" for unused ids
	ids    map[string]int32 // content → id, added tokens included
	added  map[int32]addedToken
	// special holds contents, not ids: Hugging Face skips a token if its text equals that of a special one.
	special map[string]bool
	// text is the input of decoding: the token, or the normalized form of an added token that is matched normalized.
	text   []string
	isSkip []bool // id → its text is in special

	rawTrie  *trie // added tokens matched in the text as given
	normTrie *trie // added tokens matched after normalization

	normalize normalizer // nil: text is unchanged
	pre       stage      // pre-tokenizer chain, ending in the model
	slots     int        // scratch buffers the chain needs
	model     *bpe
	budget    *budget // of the patterns
	template  template
	decoder   []decodeStep // nil: tokens joined by single spaces
	noDecoder bool

	pool sync.Pool // *scratch
	hash func() string
}

// Vocab returns the number of ids: one more than the largest id, which is the row count an embedding table needs.
func (t *Tokenizer) Vocab() int { return len(t.tokens) }

// Token returns the token with this id as the file spells it, or "" when there is none.
func (t *Tokenizer) Token(id int32) string {
	if id < 0 || int(id) >= len(t.tokens) {
		return ""
	}
	return t.tokens[id]
}

// ID returns the id of a token spelled as in the file.
func (t *Tokenizer) ID(tok string) (int32, bool) {
	id, ok := t.ids[tok]
	return id, ok
}

// Special reports whether decoding with skipSpecial omits this id.
func (t *Tokenizer) Special(id int32) bool {
	return id >= 0 && int(id) < len(t.isSkip) && t.isSkip[id]
}

// TokenBytes returns the bytes a token stands for in decoded text: for byte-level tokens and for <0xNN> the raw bytes,
// which need not be whole UTF-8 characters. It is nil for an unknown id.
func (t *Tokenizer) TokenBytes(id int32) []byte {
	if t.Token(id) == "" {
		return nil
	}
	tok := t.text[id]
	for _, d := range t.decoder {
		switch d := d.(type) {
		case byteLevelDecoder:
			return appendByteLevel(nil, tok)
		case byteFallbackDecoder:
			if b, ok := fallbackByte(tok); ok {
				return []byte{b}
			}
		case replaceDecoder:
			tok = d.re.replace(tok, d.content, room(len(tok)))
		case metaspaceDecoder:
			tok = d.text(tok, false)
		}
	}
	return []byte(tok)
}

// Names of the end-of-text and beginning-of-text tokens in common files, in order of preference.
var (
	eosNames = []string{"<|endoftext|>", "</s>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "<eos>"}
	bosNames = []string{"<s>", "<|begin_of_text|>", "<bos>", "<|startoftext|>"}
	padNames = []string{"<pad>", "<|pad|>", "[PAD]", "<|finetune_right_pad_id|>"}
)

func firstOf(t *Tokenizer, names []string) (int32, bool) {
	for _, n := range names {
		if id, ok := t.ids[n]; ok {
			return id, true
		}
	}
	return -1, false
}

// EOS returns the end-of-text token, found by its well-known names.
func (t *Tokenizer) EOS() (int32, bool) { return firstOf(t, eosNames) }

// BOS returns the beginning-of-text token, found by its well-known names.
func (t *Tokenizer) BOS() (int32, bool) { return firstOf(t, bosNames) }

// Pad returns the padding token, found by its well-known names.
func (t *Tokenizer) Pad() (int32, bool) { return firstOf(t, padNames) }

// Notes lists settings of the file that this package ignores because they change no ids, such as truncation.
func (t *Tokenizer) Notes() []string { return append([]string(nil), t.notes...) }

// Hash returns the SHA-256, in hex, of the canonical JSON that [Tokenizer.MarshalJSON] writes. Files that differ only
// in layout, key order, spelling of merges, truncation or padding have the same hash.
func (t *Tokenizer) Hash() string { return t.hash() }

func hashOf(t *Tokenizer) string {
	b, err := t.MarshalJSON()
	if err != nil {
		// Everything in a parsed tokenizer came from JSON.
		panic("tokenizer: cannot marshal a parsed tokenizer: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
