package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"antiphase/hf"
	"antiphase/infer"
	"antiphase/internal/escape"
	"antiphase/internal/fault"
	"antiphase/tokenizer"
	"antiphase/tokenizer/chat"
)

type chatFlags struct {
	sampling
	model, template, system string
	raw, verbose            bool
}

func chatVerb(a *app) *cobra.Command {
	var f chatFlags
	c := &cobra.Command{
		Use:   "chat",
		Short: "Chat with a model; Ctrl-C stops the answer, Ctrl-D exits",
		Long: `Chat is a read-eval-print loop over one growing context. If the model has a chat template, as Hugging Face
folders of instruction-tuned models do, your input is a user message and the model answers it. A base model
continues text instead: your input is appended to the context, and the model writes until it ends the
document, reaches --stop, or has written --max-tokens.

Commands: /clear starts over, /show prints the context, /set KEY VALUE changes a sampling value, /help lists
all commands.`,
		Example: "  antiphase chat --model runs/tiny-diff --temperature 0.7",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(a) },
	}
	c.Flags().StringVarP(&f.model, "model", "m", "", modelWords)
	c.Flags().StringVar(&f.template, "chat-template", "", "a Jinja file instead of the model's own template")
	c.Flags().StringVar(&f.system, "system", "", "system message")
	c.Flags().BoolVar(&f.raw, "raw", false, "ignore the chat template and continue text")
	c.Flags().BoolVar(&f.verbose, "verbose", false, "print the speed after each answer")
	f.flags(c.Flags(), 0.8, 256)
	return c
}

// repl is one conversation.
type repl struct {
	a *app
	f *chatFlags
	e *infer.Engine
	l *loaded
	s *infer.Session

	template *chat.Template // nil: continue text
	said     []chat.Message

	mu     sync.Mutex
	cancel context.CancelFunc // cancels the current answer; nil if there is none
}

// watch makes Ctrl-C end the current answer instead of the program. SIGTERM still ends the program.
func (r *repl) watch() func() {
	signal.Stop(r.a.signals)
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, os.Interrupt)
	go func() {
		defer fault.Guard()()
		for range ch {
			r.mu.Lock()
			if r.cancel != nil {
				r.cancel()
			} else {
				fmt.Fprint(r.a.err, "\nCtrl-D leaves\n> ")
			}
			r.mu.Unlock()
		}
	}()
	return func() { signal.Stop(ch); close(ch) }
}

func (r *repl) answering(cancel context.CancelFunc) {
	r.mu.Lock()
	r.cancel = cancel
	r.mu.Unlock()
}

func (f *chatFlags) run(a *app) error {
	if err := f.check(); err != nil {
		return err
	}
	e, l, done, err := a.engine(f.model, 1)
	if err != nil {
		return err
	}
	defer done()
	f.adopt(a, l.Manners.Generation)
	f.draw(a)
	r := &repl{a: a, f: f, e: e, l: l, s: e.NewSession()}
	if err := r.pickTemplate(); err != nil {
		return err
	}
	defer func() { r.s.Close() }()
	defer r.watch()()
	a.note("%s, context of %d tokens; /help lists commands, Ctrl-D leaves", l.Dir, l.Model.Config.Context)
	in := bufio.NewReader(a.in)
	var failed error
	for {
		if !a.quiet {
			fmt.Fprint(a.err, "> ")
		}
		text, err := in.ReadString('\n')
		if text = strings.TrimRight(text, "\r\n"); text != "" {
			if terr := r.turn(text); terr != nil {
				fmt.Fprintln(a.err, a.paint(red, "error: ")+escape.Text(terr.Error()))
				failed = errUnanswered
			}
		}
		if errors.Is(err, io.EOF) {
			a.note("")
			if r, ok := a.in.(*os.File); ok && terminal(r) {
				return nil // the user has seen the errors
			}
			return failed
		}
		if err != nil {
			return err
		}
	}
}

// errUnanswered ends a chat whose input, a pipe or a file, had lines that failed.
var errUnanswered = errors.New("some of the input was not answered")

func (r *repl) turn(text string) error {
	if strings.HasPrefix(text, "/") {
		return r.command(strings.Fields(text))
	}
	if err := r.ask(text); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.answering(cancel)
	defer r.answering(nil)
	begin, n := time.Now(), 0
	var answer strings.Builder
	err := r.s.Generate(ctx, r.f.Sampling, func(ev infer.Event) bool {
		fmt.Fprint(r.a.out, ev.Text)
		answer.WriteString(ev.Text)
		if ev.ID >= 0 {
			n++
		}
		return true
	})
	fmt.Fprintln(r.a.out)
	if r.template != nil {
		r.said = append(r.said, chat.Message{Role: "assistant", Content: answer.String()})
	}
	r.f.Seed++
	if r.f.verbose {
		r.a.note("%d tokens, %.0f tok/s", n, float64(n)/time.Since(begin).Seconds())
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// pickTemplate chooses between conversation and continuation.
func (r *repl) pickTemplate() error {
	var err error
	switch {
	case r.f.raw && r.f.template != "":
		return usage(errors.New("--chat-template: has no effect with --raw"))
	case r.f.raw:
	case r.f.template != "":
		var text string
		if text, err = templateFile(r.f.template); err != nil {
			return err
		}
		r.template, err = chat.Parse(text, r.l.specialTexts())
	default:
		r.template, err = chatTemplate(r.l)
	}
	if err != nil {
		return badInput{err}
	}
	if r.template == nil && r.f.system != "" {
		return usage(errors.New("--system: needs a chat template; this model has none, --chat-template gives one"))
	}
	return nil
}

// templateFile reads and checks the Jinja file that --chat-template names.
func templateFile(path string) (string, error) {
	text, err := readFile(path, "chat-template")
	if err != nil {
		return "", err
	}
	if _, err := chat.Parse(text, nil); err != nil {
		return "", badInput{fmt.Errorf("--chat-template: %s: %w", path, err)}
	}
	return text, nil
}

// chatTemplate reads a folder's template, nil if there is none.
func chatTemplate(l *loaded) (*chat.Template, error) {
	if l.Kind == kindPacked { // has none
		return nil, nil
	}
	return chat.Load(func(name string, limit int64) ([]byte, error) { return hf.ReadFile(l.Dir, name, limit) })
}

// specialTexts are the special tokens by their names in templates.
func (l *loaded) specialTexts() map[string]string {
	m := map[string]string{}
	for name, find := range map[string]func() (int32, bool){"bos_token": l.Tokenizer.BOS, "eos_token": l.Tokenizer.EOS,
		"pad_token": l.Tokenizer.Pad} {
		if id, ok := find(); ok {
			m[name] = l.Tokenizer.Token(id)
		}
	}
	return m
}

// ask adds the input to the session: appended to its text, or as a message of the conversation, which the template
// renders as a whole.
func (r *repl) ask(text string) error {
	used, limit := len(r.s.Tokens()), r.l.Model.Config.Context
	if r.template == nil {
		ids := r.l.Tokenizer.Append(nil, text)
		if used == 0 {
			ids = r.l.encode(text)
		}
		return r.goOn(ids)
	}
	said := append(r.said, chat.Message{Role: "user", Content: text})
	messages := said
	if r.f.system != "" { // of every prompt, whatever is forgotten
		messages = append([]chat.Message{{Role: "system", Content: r.f.system}}, said...)
	}
	whole, err := r.template.Render(chat.Conversation{Messages: messages, Generate: true})
	if err != nil {
		return err
	}
	ids := r.l.Tokenizer.Encode(whole, tokenizer.NoTemplate)
	if len(ids) > limit-r.reserve() && len(r.said) > 0 {
		r.a.note("the context of %d tokens is full: the oldest message is forgotten", limit)
		r.said = r.said[1:]
		if len(r.said) > 0 && r.said[0].Role == "assistant" {
			r.said = r.said[1:]
		}
		return r.ask(text)
	}
	if len(ids) >= limit {
		return fmt.Errorf("the message has %d tokens, the context only %d", len(ids), limit)
	}
	r.s.Prompt(ids)
	r.said = said
	return nil
}

// reserve is the room kept for an answer: what may be generated, but at most half of the context.
func (r *repl) reserve() int {
	half := r.l.Model.Config.Context / 2
	if n := r.f.MaxTokens; n > 0 {
		return min(n, half)
	}
	return half
}

// goOn appends input to the context. If an answer would have no room, the oldest text is dropped; the token that begins
// every text is kept.
func (r *repl) goOn(ids []int32) error {
	all := slices.Concat(r.s.Tokens(), ids)
	limit := r.l.Model.Config.Context
	room := limit - r.reserve()
	if len(all) <= room {
		r.s.Append(ids...)
		return nil
	}
	head := all[:0:0]
	if first := r.l.Manners.First; first >= 0 {
		head = append(head, first)
	}
	if len(head)+len(ids) > max(room, 1) {
		return fmt.Errorf("the text has %d tokens, the context has room for %d", len(ids), room-len(head))
	}
	kept := all[len(all)-(room-len(head)):]
	r.a.note("the context of %d tokens is full: the oldest %d are forgotten", limit, len(all)-len(head)-len(kept))
	r.s.Prompt(append(head, kept...))
	return nil
}

func (r *repl) command(w []string) error {
	switch w[0] {
	case "/help":
		r.a.note("/clear  start over\n/show   print the context\n/set temperature|top-k|top-p|min-p|max-tokens|seed " +
			"VALUE\n/help   this")
	case "/clear":
		r.s.Close()
		r.s, r.said = r.e.NewSession(), nil
	case "/show":
		fmt.Fprintln(r.a.out, r.l.Tokenizer.Decode(r.s.Tokens(), false))
	case "/set":
		return r.set(w[1:])
	default:
		return fmt.Errorf("%s: unknown command; /help lists them", w[0])
	}
	return nil
}

func (r *repl) set(w []string) error {
	if len(w) != 2 {
		return errors.New("/set: want a name and a value, as in /set temperature 0.7")
	}
	p := r.f.Sampling
	targets := map[string]any{"temperature": &p.Temperature, "top-k": &p.TopK, "top-p": &p.TopP, "min-p": &p.MinP,
		"max-tokens": &p.MaxTokens, "seed": &p.Seed}
	t, ok := targets[w[0]]
	if !ok {
		return fmt.Errorf("/set: %q is not one of temperature, top-k, top-p, min-p, max-tokens, seed", w[0])
	}
	if n, _ := fmt.Sscan(w[1], t, new(string)); n != 1 { // the second finds what follows the number
		return fmt.Errorf("/set %s: %q is not a number", w[0], w[1])
	}
	if err := p.Check(); err != nil {
		return err
	}
	r.f.Sampling = p
	return nil
}
