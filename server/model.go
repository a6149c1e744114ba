package server

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"

	"antiphase/infer"
	"antiphase/model"
	"antiphase/tokenizer"
	"antiphase/tokenizer/chat"
)

// Model is a network that requests select by name.
type Model struct {
	ID        string
	Arch      string
	Context   int // tokens
	Slots     int // sequences in one batch
	Params    int
	Created   time.Time
	Defaults  infer.Sampling // for fields that a request omits
	Print     string         // changes whenever answers may
	Engine    *infer.Engine
	Tokenizer *tokenizer.Tokenizer
	Template  *chat.Template

	config model.Config
	width  int   // of a hidden state
	first  int32 // begins every prompt; −1: the tokenizer decides
	eos    []int32
	gate   *gate

	grammars grammars
	longest  int        // bytes of a token, at most
	large    sync.Mutex // held while a large text is encoded: one at a time, which leaves the other cores to the engine
}

// Source is the input of NewModel.
type Source struct {
	ID        string
	Model     *model.Model
	Tokenizer *tokenizer.Tokenizer
	Template  *chat.Template // nil: no chat
	First     int32          // the token that begins every prompt; −1: the tokenizer decides
	EOS       []int32
	Defaults  *infer.Sampling // nil: OpenAI's, temperature 1
	Print     string          // see Model
	Created   time.Time
	Options   infer.Options
}

// idPattern is the form of model names: nothing special in a path or a URL except the slash of org/name.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._:-]{0,95})?$`)

// CheckID reports whether a model may have this name.
func CheckID(id string) error {
	if !idPattern.MatchString(id) {
		return fmt.Errorf("%q cannot be a model's name: want letters, digits and . _ : - and at most one / between", id)
	}
	return nil
}

// NewModel makes a model and its engine. Close releases the cache.
func NewModel(src Source) (*Model, error) {
	if err := CheckID(src.ID); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if src.Tokenizer == nil {
		return nil, errors.New("server: a model without a tokenizer cannot be served")
	}
	src.Options.EOS, src.Options.Commit = src.EOS, true
	e, err := infer.New(src.Model, src.Tokenizer, src.Options)
	if err != nil {
		return nil, err
	}
	m := &Model{ID: src.ID, Arch: src.Model.Config.Arch, Context: src.Model.Config.Context, Slots: e.Slots(),
		Params: src.Model.Params.Count(), Created: src.Created,
		Engine: e, Tokenizer: src.Tokenizer, Template: src.Template, config: src.Model.Config,
		width: src.Model.Config.Dim, first: src.First, eos: e.EOS(), Print: src.Print}
	for id := range int32(m.Tokenizer.Vocab()) {
		_, raw := m.spell(id)
		m.longest = max(m.longest, len(raw))
	}
	if m.Defaults = (infer.Sampling{Temperature: 1}); src.Defaults != nil {
		m.Defaults = *src.Defaults
	}
	return m, nil
}

// Close releases the engine's memory. No request may be in flight.
func (m *Model) Close() { m.Engine.Close() }

// fits reports whether a text may fit the context, judged by its length: no token is longer than longest, and no known
// normalizer drops more than three quarters of a text. Only such texts are encoded.
func (m *Model) fits(param, text string) *apiError {
	if most := 4 * m.longest * m.Context; len(text) > max(most, smallBody) {
		return &apiError{Status: http.StatusBadRequest, Type: typeInvalid, Param: param,
			Code: "context_length_exceeded",
			Message: fmt.Sprintf("%s has %d bytes, more than the model's context of %d tokens can hold", param,
				len(text), m.Context), Extra: map[string]any{"n_ctx": m.Context}}
	}
	return nil
}

// encode returns a prompt's ids, with the tokens that begin every text if special.
func (m *Model) encode(text string, special bool) []int32 {
	if len(text) > smallBody {
		m.large.Lock()
		defer m.large.Unlock()
	}
	switch {
	case !special:
		return m.Tokenizer.Append(nil, text)
	case m.first >= 0:
		return m.Tokenizer.Append([]int32{m.first}, text)
	}
	ids := m.Tokenizer.Encode(text)
	for _, first := range []func() (int32, bool){m.Tokenizer.BOS, m.Tokenizer.EOS} {
		if id, ok := first(); ok && len(ids) == 0 {
			ids = []int32{id}
		}
	}
	return ids
}

// checkIDs reports ids of a client that the model does not have.
func (m *Model) checkIDs(param string, ids []int32) *apiError {
	for i, id := range ids {
		if m.Tokenizer.Token(id) == "" {
			return invalid(param, "id %d at position %d is not in the vocabulary of %d", id, i, m.Tokenizer.Vocab())
		}
	}
	return nil
}

// spell is a token in OpenAI's notation, and its bytes.
func (m *Model) spell(id int32) (text string, raw []byte) {
	text = m.Tokenizer.Spell(id)
	if m.Tokenizer.Special(id) {
		return text, []byte(text)
	}
	return text, m.Tokenizer.TokenBytes(id)
}
