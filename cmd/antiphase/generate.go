package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"antiphase/device"
	"antiphase/hf"
	"antiphase/infer"
	"antiphase/tokenizer"
)

// sampling are the flags that generate and chat share.
type sampling struct {
	infer.Sampling
	seed  int64
	given *pflag.FlagSet // knows which flags were given
}

func (s *sampling) flags(f *pflag.FlagSet, temperature float64, tokens int) {
	s.given = f
	f.IntVarP(&s.MaxTokens, "max-tokens", "n", tokens, "maximum number of tokens to generate; 0 fills the context")
	f.Float64Var(&s.Temperature, "temperature", temperature, "sampling temperature; 0 is greedy")
	f.IntVar(&s.TopK, "top-k", 0, "keep the k most likely tokens; 0 keeps all")
	f.Float64Var(&s.TopP, "top-p", 0, "keep the fewest most likely tokens with this total probability; 0 keeps all")
	f.Float64Var(&s.MinP, "min-p", 0,
		"keep tokens with at least this fraction of the most likely token's probability; 0 keeps all")
	f.Float64Var(&s.RepetitionPenalty, "repetition-penalty", 1, "divides the logits of tokens seen before; 1 disables")
	f.Int64Var(&s.seed, "seed", -1, "random seed; a negative value draws one and prints it")
	f.StringArrayVar(&s.Stop, "stop", nil, "text that ends the output (repeatable)")
	f.BoolVar(&s.IgnoreEOS, "ignore-eos", false, "continue after the end-of-text token")
}

// check validates the given values before anything is opened.
func (s *sampling) check() error {
	if err := s.Check(); err != nil {
		return usage(fmt.Errorf("--%s", strings.ReplaceAll(err.Error(), "_", "-")))
	}
	return nil
}

// draw uses the given seed, or draws one and prints it if it matters.
func (s *sampling) draw(a *app) {
	s.Seed = uint64(s.seed)
	if s.seed < 0 {
		s.Seed = uint64(rand.Uint32())
		if s.Temperature > 0 {
			a.note("seed %d", s.Seed)
		}
	}
}

// adopt takes defaults from the model's generation_config.json for flags that were not given.
func (s *sampling) adopt(a *app, g *hf.Generation) {
	if g == nil {
		return
	}
	var took []string
	take := func(flag string, v any, set func()) {
		if !s.given.Changed(flag) {
			set()
			took = append(took, fmt.Sprintf("%s %v", flag, v))
		}
	}
	switch t := g.Temperature; {
	case g.Sample != nil && !*g.Sample:
		take("temperature", 0, func() { s.Temperature = 0 })
	case t != nil:
		take("temperature", *t, func() { s.Temperature = *t })
	case g.Sample != nil: // what transformers takes for sampling where nothing is said
		take("temperature", 1, func() { s.Temperature = 1 })
	}
	if v := g.TopK; v != nil {
		take("top-k", *v, func() { s.TopK = *v })
	}
	if v := g.TopP; v != nil {
		take("top-p", *v, func() { s.TopP = *v })
	}
	if v := g.MinP; v != nil {
		take("min-p", *v, func() { s.MinP = *v })
	}
	if v := g.RepetitionPenalty; v != nil {
		take("repetition-penalty", *v, func() { s.RepetitionPenalty = *v })
	}
	if v := g.MaxNewTokens; v != nil {
		take("max-tokens", *v, func() { s.MaxTokens = *v })
	}
	if len(took) > 0 {
		a.note("from generation_config.json: %s", strings.Join(took, ", "))
	}
}

// maxSamples bounds one call, because all samples are kept until the last is done.
const maxSamples = 10000

type generateFlags struct {
	sampling
	model, prompt, file string
	samples             int
	json, echo          bool
}

func generateVerb(a *app) *cobra.Command {
	var f generateFlags
	c := &cobra.Command{
		Use:   "generate [PROMPT]",
		Short: "Continue a prompt",
		Long: `Generate continues a prompt given as an argument, with -p, from a file or on standard input, and streams the
text to stdout. Without --model it uses an embedded model. Under mpirun or srun each rank holds a part of
every matrix.`,
		Example: `  antiphase generate --model runs/tiny-diff -p "The magic code is"
  antiphase generate --model runs/tiny-diff --temperature 0.8 --top-p 0.95 --num-samples 3 "Once"
  cat prompt.txt | antiphase generate --model runs/tiny-diff --json`,
		Args: oneText("PROMPT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if cmd.Flags().Changed("prompt") {
					return usage(errors.New("--prompt: a prompt was given as an argument as well; give one"))
				}
				f.prompt = args[0]
			}
			if f.Logprobs > 0 && !f.json {
				return usage(errors.New("--logprobs: needs --json"))
			}
			if f.json {
				if err := idle(cmd.Flags(), "with --json, which has the prompt as a field", "echo"); err != nil {
					return err
				}
			}
			return a.inParts(cmd.Context(), func() []string { return []string{f.model} }, func() error {
				return f.run(cmd.Context(), a, len(args) == 1 || cmd.Flags().Changed("prompt"))
			})
		},
	}
	fl := c.Flags()
	fl.StringVarP(&f.model, "model", "m", "", modelWords)
	fl.StringVarP(&f.prompt, "prompt", "p", "", "text to continue")
	fl.StringVar(&f.file, "prompt-file", "", "file with the text to continue")
	fl.IntVar(&f.samples, "num-samples", 1, "number of continuations")
	fl.IntVar(&f.Logprobs, "logprobs", 0, "with --json: log-probability of each token and of the n most likely ones")
	fl.BoolVar(&f.echo, "echo", false, "print the prompt before the text")
	fl.BoolVar(&f.json, "json", false, "print one JSON object per sample")
	f.flags(fl, 0.8, 128)
	return c
}

// readPrompt reads the prompt from wherever it was given.
func (f *generateFlags) readPrompt(a *app, given bool) (string, error) {
	switch {
	case f.file != "" && given:
		return "", usage(errors.New("--prompt-file: a prompt was given as well; give one"))
	case f.file != "":
		return readFile(f.file, "prompt-file")
	case given:
		return f.prompt, nil
	}
	if r, ok := a.in.(*os.File); ok && terminal(r) {
		return "", usage(errors.New("no prompt: give one as an argument, with -p, --prompt-file or on standard input"))
	}
	return readText(a.in, "the prompt")
}

// maxPrompt is more text than any context holds.
const maxPrompt = 64 << 20

// readFile reads the text file that a flag names.
func readFile(path, flag string) (string, error) {
	r, err := os.Open(path)
	if err != nil {
		return "", badInput{fmt.Errorf("--%s: %w", flag, err)}
	}
	defer r.Close()
	return readText(r, "--"+flag+": "+path)
}

// readText reads a prompt. A device or a pipe may have no end.
func readText(r io.Reader, what string) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxPrompt+1))
	if err == nil && len(b) > maxPrompt {
		err = usage(fmt.Errorf("%s is longer than %d bytes", what, maxPrompt))
	}
	return string(b), err
}

func (f *generateFlags) run(ctx context.Context, a *app, given bool) error {
	if f.samples < 1 || f.samples > maxSamples {
		return usage(fmt.Errorf("--num-samples: is %d, must be from 1 to %d", f.samples, maxSamples))
	}
	if err := f.check(); err != nil {
		return err
	}
	prompt, err := f.readPrompt(a, given)
	if err != nil {
		return err
	}
	e, l, done, err := a.engine(f.model, min(f.samples, 16))
	if err != nil {
		return err
	}
	defer done()
	f.adopt(a, l.Manners.Generation)
	f.draw(a)
	ids := l.encode(prompt)
	if err := l.Tokenizer.Err(); err != nil {
		return badInput{fmt.Errorf("%s: tokenizer: %w", l.Dir, err)}
	}
	if len(ids) == 0 {
		return usage(errors.New("the prompt is empty and the tokenizer has no beginning or end token to start from"))
	}
	reqs := make([]infer.Request, f.samples)
	for i := range reqs {
		reqs[i] = infer.Request{IDs: ids, Sampling: f.Sampling}
		reqs[i].Sampling.Seed += uint64(i)
	}
	begin := time.Now()
	if !f.json && f.samples == 1 {
		return f.write(ctx, a, e, l, reqs, prompt, begin)
	}
	return f.collect(ctx, a, e, l, reqs, prompt, begin)
}

// write prints one continuation as it comes.
func (f *generateFlags) write(ctx context.Context, a *app, e *infer.Engine, l *loaded, reqs []infer.Request,
	prompt string, begin time.Time) error {
	if f.echo {
		fmt.Fprint(a.out, prompt)
	}
	n, reason := 0, ""
	err := e.Generate(ctx, reqs, func(_ int, ev infer.Event) bool {
		_, werr := fmt.Fprint(a.out, ev.Text)
		if ev.ID >= 0 {
			n++
		}
		reason = ev.Reason
		return werr == nil
	})
	fmt.Fprintln(a.out)
	if f.full(reason, n) {
		noteFull(a, l, len(reqs[0].IDs), n)
	}
	a.note("%d tokens, %.0f tok/s", n, float64(n)/time.Since(begin).Seconds())
	return err
}

// sample is one continuation as JSON.
type sample struct {
	Index   int          `json:"index"`
	Seed    uint64       `json:"seed"`
	Prompt  string       `json:"prompt"`
	Text    string       `json:"text"`
	IDs     []int32      `json:"ids"`
	Reason  string       `json:"finish_reason"`
	Full    bool         `json:"context_full,omitempty"` // the context ended the text before --max-tokens did
	Tokens  []string     `json:"tokens,omitempty"`       // the text of each id
	Logprob []float64    `json:"logprobs,omitempty"`
	Top     [][]topToken `json:"top_logprobs,omitempty"` // the most likely tokens at each position, best first
}

// topToken is one of the most likely tokens.
type topToken struct {
	ID      int32   `json:"id"`
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
}

// add appends an event's token with its log-probabilities.
func (s *sample) add(t *tokenizer.Tokenizer, ev *infer.Event, logprobs bool) {
	s.IDs = append(s.IDs, ev.ID)
	if !logprobs {
		return
	}
	text := func(id int32) string { return strings.ToValidUTF8(string(t.TokenBytes(id)), "\uFFFD") }
	s.Tokens, s.Logprob = append(s.Tokens, text(ev.ID)), append(s.Logprob, ev.Logprob)
	top := make([]topToken, len(ev.Top))
	for i, x := range ev.Top {
		top[i] = topToken{x.ID, text(x.ID), x.Logprob}
	}
	s.Top = append(s.Top, top)
}

// full reports whether a text ended because the context was full, not because of the requested length.
func (f *generateFlags) full(reason string, tokens int) bool {
	return reason == infer.ReasonLength && (f.MaxTokens == 0 || tokens < f.MaxTokens)
}

// noteFull tells the user that the text is shorter than requested.
func noteFull(a *app, l *loaded, prompt, tokens int) {
	a.note("stopped after %d tokens: the context of %d tokens is full (the prompt has %d)", tokens,
		l.Model.Config.Context, prompt)
}

// collect runs all samples in one batch and prints them in order.
func (f *generateFlags) collect(ctx context.Context, a *app, e *infer.Engine, l *loaded, reqs []infer.Request,
	prompt string, begin time.Time) error {
	out := make([]sample, len(reqs))
	n := 0
	err := e.Generate(ctx, reqs, func(i int, ev infer.Event) bool {
		s := &out[i]
		s.Text += ev.Text
		if ev.ID >= 0 {
			n++
			s.add(l.Tokenizer, &ev, f.Logprobs > 0)
		}
		s.Reason = ev.Reason
		return true
	})
	if err != nil {
		return err
	}
	for i := range out {
		s := &out[i]
		if s.Full = f.full(s.Reason, len(s.IDs)); s.Full {
			noteFull(a, l, len(reqs[i].IDs), len(s.IDs))
		}
		s.Index, s.Seed, s.Prompt = i, reqs[i].Sampling.Seed, prompt
		if f.json {
			if err := a.json(s); err != nil {
				return err
			}
			continue
		}
		if f.echo {
			s.Text = prompt + s.Text
		}
		fmt.Fprintf(a.out, "--- sample %d\n%s\n", i+1, s.Text)
	}
	a.note("%d tokens, %.0f tok/s", n, float64(n)/time.Since(begin).Seconds())
	return nil
}

// engine opens a model with its tokenizer for text generation.
func (a *app) engine(dir string, slots int) (*infer.Engine, *loaded, func(), error) {
	d, shut, err := a.openModels()
	if err != nil {
		return nil, nil, nil, err
	}
	l, err := a.load(d, dir)
	if err == nil && l.Tokenizer == nil {
		err = badInput{fmt.Errorf("%s has no tokenizer.json, so text cannot be made; \"antiphase logits\" works on ids",
			dir)}
	}
	var e *infer.Engine
	if err == nil {
		e, err = infer.New(l.Model, l.Tokenizer, infer.Options{Slots: slots, EOS: l.EOS})
	}
	if err != nil {
		shut()
		return nil, nil, nil, err
	}
	return e, l, func() { e.Close(); shut() }, nil
}

// openModels opens the device for models, or uses the one through which ranks already communicate. shut closes what was
// opened.
func (a *app) openModels() (d device.Device, shut func(), err error) {
	if a.parts != nil {
		return a.parts.dev, func() {}, nil
	}
	if d, err = a.open(); err != nil {
		return nil, nil, err
	}
	return d, func() { d.Close() }, nil
}

// encode returns a prompt's ids. Text of our own runs begins with its first token, whatever its tokenizer would add;
// for other models the tokenizer decides, and an empty prompt begins with whatever token it has.
func (l *loaded) encode(text string) []int32 {
	if first := l.Manners.First; first >= 0 {
		return l.Tokenizer.Append([]int32{first}, text)
	}
	ids := l.Tokenizer.Encode(text)
	for _, first := range []func() (int32, bool){l.Tokenizer.BOS, l.Tokenizer.EOS} {
		if id, ok := first(); ok && len(ids) == 0 {
			ids = []int32{id}
		}
	}
	return ids
}
