// Package chat renders conversations with the chat template of a model folder.
//
// Load finds a folder's template, Parse reads one, and Render writes a conversation's text, ready to be tokenized
// without further special tokens. Templates are Jinja and give what jinja2 gives: lexer.go and parser.go read them,
// eval.go and exec.go run them, and every step is charged to a budget (budget.go). values.go says what values there
// are; filters.go, tests.go, methods.go and globals.go are what a template can use. A template is never trusted: it
// reads no file, includes nothing, and ends in bounded time, memory and output.
package chat

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a chat template, which is untrusted input.
const (
	maxTemplate   = 1 << 18 // bytes of source
	maxTagTokens  = 2000    // tokens in one tag, which bounds the nesting of an expression
	maxBlocks     = 100     // nested blocks
	maxMacroDepth = 32
	maxItems      = 1 << 16      // items of a list to iterate over
	maxValue      = 4 << 20      // printed bytes of one value
	maxListed     = maxValue / 8 // items of a list that is made
	maxNesting    = 100          // of lists and dicts in a value
	maxSteps      = 1 << 17      // operations of one rendering
	maxWork       = 1 << 28      // bytes produced by one rendering, discarded ones included
	maxTime       = 2 * time.Second
)

// ErrTemplate marks an error in a chat template, or its rejection of a conversation.
var ErrTemplate = errors.New("chat template")

// Template renders a conversation as the text that a model was trained on.
type Template struct {
	body   []stmt
	source string
	tokens map[string]string // variables such as bos_token
}

// Conversation is the input of a rendering.
type Conversation struct {
	Messages any            // marshals to a JSON list of objects with role and content
	Tools    any            // marshals to a JSON list of tools; nil for none
	Generate bool           // end with the beginning of the assistant's answer
	Vars     map[string]any // further variables of the template
	Now      time.Time      // result of strftime_now; now if zero
}

// Message is the simplest element of Conversation.Messages.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Parse reads a template. tokens are variables that templates expect, such as bos_token and eos_token.
func Parse(source string, tokens map[string]string) (t *Template, err error) {
	defer func() { err = finish(ErrTemplate, err, recover()) }()
	if i := notUTF8(source); i >= 0 {
		return nil, fmt.Errorf("line %d: not UTF-8 at byte offset %d", 1+strings.Count(source[:i], "\n"), i)
	}
	return parse(source, tokens, true) // white space as transformers sets it
}

// notUTF8 is the offset of the first byte that is not part of a character, −1 if there is none.
func notUTF8(s string) int {
	for i, r := range s {
		if r != utf8.RuneError {
			continue
		}
		if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
			return i
		}
	}
	return -1
}

// parse reads a template. chat is false for text templates, which keep all white space.
func parse(source string, tokens map[string]string, chat bool) (*Template, error) {
	if len(source) > maxTemplate {
		return nil, fmt.Errorf("is %d bytes, at most %d are read", len(source), maxTemplate)
	}
	return &Template{body: compile(source, chat, !chat), source: source, tokens: tokens}, nil
}

// Source returns the template's text.
func (t *Template) Source() string { return t.source }

// Render writes a conversation.
func (t *Template) Render(c Conversation) (text string, err error) {
	defer func() { err = finish(ErrTemplate, err, recover()) }()
	if c.Now.IsZero() {
		c.Now = time.Now()
	}
	// None unless given, as in transformers.
	vars := map[string]any{"add_generation_prompt": c.Generate, "tools": nil, "documents": nil}
	for k, v := range t.tokens {
		vars[k] = v
	}
	if vars["messages"], err = ordered(c.Messages); err != nil {
		return "", fmt.Errorf("messages: %w", err)
	}
	if c.Tools != nil {
		if vars["tools"], err = ordered(c.Tools); err != nil {
			return "", fmt.Errorf("tools: %w", err)
		}
	}
	for k, v := range c.Vars {
		if vars[k], err = ordered(v); err != nil {
			return "", fmt.Errorf("%s: %w", k, err)
		}
	}
	return t.execute(vars, &run{budget: &budget{now: c.Now}}), nil
}

// execute renders within the limits.
func (t *Template) execute(vars map[string]any, r *run) string {
	r.steps, r.work, r.end = maxSteps, maxWork, time.Now().Add(maxTime)
	return text(r, &scope{vars: vars, up: globals}, t.body)
}

// finish converts any failure to one kind of error with bounded length. A panic of another kind is a bug here, which
// must not end a server.
func finish(kind, err error, panicked any) error {
	switch p := panicked.(type) {
	case nil:
	case failure:
		err = p.error
	default:
		err = fmt.Errorf("%v", p)
	}
	if err == nil {
		return nil
	}
	text := err.Error()
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "") + "…"
	}
	return fmt.Errorf("%w: %s", kind, text)
}

// boundedText collects output up to a limit.
type boundedText struct {
	strings.Builder
	left int
}

// WriteString implements io.StringWriter.
func (b *boundedText) WriteString(s string) (int, error) {
	if b.left -= len(s); b.left < 0 {
		return 0, fmt.Errorf("prints more than %d bytes", maxValue)
	}
	return b.Builder.WriteString(s)
}

// print is WriteString that fails beyond the limit.
func (b *boundedText) print(s string) {
	if _, err := b.WriteString(s); err != nil {
		fail("%w", err)
	}
}
