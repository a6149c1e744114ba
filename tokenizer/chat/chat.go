// Package chat renders conversations with the chat template of a model folder.
//
// Load finds a folder's template, Parse reads one, and Render writes a conversation's text, ready to be tokenized
// without further special tokens. Templates are Jinja, run by gonja. guard.go rewrites the parsed template so that
// every step is charged to a budget (budget.go); blocks.go, ops.go, methods.go and json.go are what a template can use.
// A template is never trusted: it reads no file, includes nothing, and ends in bounded time, memory and output.
package chat

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
)

// Limits of a chat template, which is untrusted input.
const (
	maxTemplate   = 1 << 18 // bytes of source
	maxTagTokens  = 2000    // tokens in one tag, which bounds the nesting of an expression
	maxBlocks     = 100     // nested blocks
	maxMacroDepth = 32
	maxItems      = 1 << 16 // items of a list to iterate over
	maxValue      = 4 << 20 // printed bytes of one value
	maxNesting    = 100     // of lists and dicts in a value
	maxSteps      = 1 << 17 // operations of one rendering
	maxWork       = 1 << 28 // bytes produced by one rendering, discarded ones included
	maxTime       = 2 * time.Second
)

// ErrTemplate marks an error in a chat template, or its rejection of a conversation.
var ErrTemplate = errors.New("chat template")

// Template renders a conversation as the text that a model was trained on.
type Template struct {
	template *exec.Template
	source   string
	tokens   map[string]string // variables such as bos_token
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
	cfg := config.New()
	cfg.TrimBlocks, cfg.LeftStripBlocks = true, true // as transformers sets them
	return parse(source, tokens, cfg)
}

// newlines are all written alike before a template is read, as jinja2 does. gonja's lexer would drop each \r before \n, and
// the positions of its tokens would be those of another text.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func parse(source string, tokens map[string]string, cfg *config.Config) (*Template, error) {
	if len(source) > maxTemplate {
		return nil, fmt.Errorf("is %d bytes, at most %d are read", len(source), maxTemplate)
	}
	escaped := escapeLiterals(newlines.Replace(source))
	list, err := lex(escaped, cfg)
	if err != nil {
		return nil, err
	}
	spaced := escaped
	if cfg.LeftStripBlocks {
		if spaced = keepSpaces(escaped, list); spaced != escaped {
			if list, err = lex(spaced, cfg); err != nil {
				return nil, err
			}
		}
	}
	const name = "/chat_template"
	whole := inlineIfs(spaced, list)
	loader, err := loaders.NewMemoryLoader(map[string]string{name: whole})
	if err != nil {
		return nil, err
	}
	tpl, err := exec.NewTemplate(name, cfg, loader, chatEnvironment())
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), whole, "…")) // gonja quotes the whole of it
	}
	if err := guardNodes(tpl.Root().Nodes, 0); err != nil {
		return nil, err
	}
	return &Template{template: tpl, source: source, tokens: tokens}, nil
}

// Source returns the template's text.
func (t *Template) Source() string { return t.source }

// Render writes a conversation.
func (t *Template) Render(c Conversation) (text string, err error) {
	defer func() { err = finish(ErrTemplate, err, recover()) }()
	if c.Now.IsZero() {
		c.Now = time.Now()
	}
	vars := map[string]any{"add_generation_prompt": c.Generate, "tools": nil, "documents": nil} // None unless given, as in transformers
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
	return t.execute(vars, &budget{now: c.Now})
}

// execute renders within the limits.
func (t *Template) execute(vars map[string]any, b *budget) (string, error) {
	b.steps, b.work, b.end = maxSteps, maxWork, time.Now().Add(maxTime)
	vars[budgetName] = b
	out := &boundedText{left: maxValue}
	if err := t.template.Execute(out, exec.NewContext(vars)); err != nil {
		if b.err != nil {
			return "", b.err // the template's own exception, or the limit it reached, without the call path
		}
		return "", innermost(err)
	}
	return out.String(), nil
}

// innermost is the cause of an error without its path: gonja adds every node.
func innermost(err error) error {
	for range 1000 {
		var next error
		switch e := err.(type) {
		case *exec.Value:
			next, _ = e.Interface().(error)
		case interface{ Unwrap() error }:
			next = e.Unwrap()
		case interface{ Cause() error }:
			next = e.Cause()
		}
		if next == nil {
			break
		}
		err = next
	}
	return err
}

// finish converts any failure to one kind of error with bounded length. gonja panics on some operations, such as a
// remainder of zero.
func finish(kind, err error, panicked any) error {
	if panicked != nil {
		err = fmt.Errorf("%v", panicked)
	}
	if err == nil {
		return nil
	}
	text := err.Error()
	// gonja lists the filters on the path to an error. Those that begin with NUL belong to the guard and mean nothing
	// to the template's author.
	if i := strings.LastIndexByte(text, 0); i >= 0 {
		if _, cause, ok := strings.Cut(text[i:], "': "); ok {
			text = cause
		}
	}
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

// Write implements io.Writer.
func (b *boundedText) Write(p []byte) (int, error) { return b.WriteString(string(p)) }

// WriteString implements io.StringWriter.
func (b *boundedText) WriteString(s string) (int, error) {
	if b.left -= len(s); b.left < 0 {
		return 0, fmt.Errorf("prints more than %d bytes", maxValue)
	}
	return b.Builder.WriteString(s)
}
