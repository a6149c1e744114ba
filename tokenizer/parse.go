package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"unicode/utf8"

	"antiphase/internal/vfs"
)

// spec is the content of a tokenizer.json in a form that Save can write; components are canonical JSON.
type spec struct {
	added                               []addedToken
	normalizer, pre, processor, decoder json.RawMessage
	vocab                               map[string]int32 // the model's, without added tokens
	merges                              []mergeRule
	unk                                 *string
	fuseUnk, byteFallback, ignoreMerges bool
}

// file is the outermost object of a tokenizer.json.
type file struct {
	Version       string            `json:"version"`
	Truncation    json.RawMessage   `json:"truncation"`
	Padding       json.RawMessage   `json:"padding"`
	AddedTokens   []json.RawMessage `json:"added_tokens"`
	Normalizer    json.RawMessage   `json:"normalizer"`
	PreTokenizer  json.RawMessage   `json:"pre_tokenizer"`
	PostProcessor json.RawMessage   `json:"post_processor"`
	Decoder       json.RawMessage   `json:"decoder"`
	Model         json.RawMessage   `json:"model"`
}

// MaxFile is the largest tokenizer.json that is read: several times the largest in use.
const MaxFile = 1 << 28

var errTooLarge = fmt.Errorf("tokenizer.json is larger than %d bytes", MaxFile)

// Load reads a tokenizer.json file.
func Load(path string) (*Tokenizer, error) {
	if st, err := os.Stat(path); err == nil && st.Size() > MaxFile {
		return nil, fmt.Errorf("load %s: %w", path, &FormatError{errTooLarge})
	}
	b, err := vfs.ReadFile(vfs.OS{}, path, MaxFile)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer: %w", err)
	}
	t, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	return t, nil
}

// FormatError says why a file is not a tokenizer that can be used.
type FormatError struct{ Err error }

// Error implements error.
func (e *FormatError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *FormatError) Unwrap() error { return e.Err }

// Parse reads the bytes of a tokenizer.json. Unknown components, fields or values that could change ids are rejected by
// name. Its errors are FormatErrors.
func Parse(r []byte) (*Tokenizer, error) {
	t, err := parse(r)
	if err != nil {
		return nil, &FormatError{err}
	}
	return t, nil
}

func parse(r []byte) (*Tokenizer, error) {
	if len(r) > MaxFile {
		return nil, errTooLarge
	}
	if !utf8.Valid(r) {
		return nil, errors.New("tokenizer.json is not valid UTF-8")
	}
	var f file
	if err := strict(r, &f); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	if isNull(f.Model) {
		return nil, errors.New("tokenizer.json: no model")
	}
	t := parser{&Tokenizer{special: map[string]bool{}, added: map[int32]addedToken{}}}
	if f.Version != "" && f.Version != "1.0" {
		return nil, fmt.Errorf("version %q is not supported; want 1.0", f.Version)
	}
	if !isNull(f.Truncation) {
		t.notes = append(t.notes, "truncation is ignored: texts are encoded whole")
	}
	if !isNull(f.Padding) {
		t.notes = append(t.notes, "padding is ignored: ids are not padded")
	}
	if err := t.parseModel(f.Model); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if err := t.parseAdded(f.AddedTokens); err != nil {
		return nil, err
	}
	if err := t.parseComponents(f); err != nil {
		return nil, err
	}
	t.finish()
	return t.Tokenizer, t.budget.err()
}

// parser fills a Tokenizer from the parts of its file.
type parser struct{ *Tokenizer }

// parseComponents reads everything around the model.
func (t parser) parseComponents(f file) error {
	t.budget = &budget{}
	ns, err := parseNormalizer(f.Normalizer, t.budget)
	t.normalize = sequence(ns)
	if err == nil {
		err = t.budget.tryNormalizer(t.normalize)
	}
	if err != nil {
		return fmt.Errorf("normalizer: %w", err)
	}
	pres, err := parsePre(f.PreTokenizer, t.budget)
	if err != nil {
		return fmt.Errorf("pre_tokenizer: %w", err)
	}
	t.pre, t.slots = buildStages(pres, t.model)
	if err := t.parseProcessor(f.PostProcessor); err != nil {
		return fmt.Errorf("post_processor: %w", err)
	}
	if t.decoder, err = parseDecoder(f.Decoder, t.budget); err == nil {
		err = checkDecoder(t.decoder)
	}
	if err != nil {
		return fmt.Errorf("decoder: %w", err)
	}
	t.noDecoder = isNull(f.Decoder)
	for _, c := range []struct{ dst, src *json.RawMessage }{
		{&t.spec.normalizer, &f.Normalizer}, {&t.spec.pre, &f.PreTokenizer},
		{&t.spec.processor, &f.PostProcessor}, {&t.spec.decoder, &f.Decoder},
	} {
		if *c.dst, err = canonical(*c.src); err != nil {
			return err
		}
	}
	return nil
}

// finish builds the tables that depend on everything parsed.
func (t parser) finish() {
	t.model.special = t.special
	t.rawTrie, t.normTrie = newTrie(), newTrie()
	t.text = slices.Clone(t.tokens)
	// Special tokens come first, so that the special one is matched among equal spellings.
	for _, special := range []bool{true, false} {
		for _, tok := range t.spec.added {
			if t.special[tok.Content] != special {
				continue
			}
			if !tok.Normalized {
				t.rawTrie.add(tok.Content, tok.ID)
				continue
			}
			p := t.normal(piece{tok.Content, true})
			t.normTrie.add(p.s, tok.ID)
			t.text[tok.ID] = p.s
		}
	}
	t.isSkip = make([]bool, len(t.tokens))
	for id, text := range t.text {
		t.isSkip[id] = text != "" && t.special[text]
	}
	t.hash = sync.OnceValue(func() string { return hashOf(t.Tokenizer) })
}

// strict decodes one JSON value into v and rejects unknown fields and trailing text.
func strict(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("the JSON ends too early")
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the end of the JSON")
	}
	return nil
}

func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null"
}

// canonical rewrites JSON with sorted keys and no white space, so that equal content has equal bytes.
func canonical(raw json.RawMessage) (json.RawMessage, error) {
	if isNull(raw) {
		return json.RawMessage("null"), nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
