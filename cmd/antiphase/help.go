package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"antiphase/internal/near"
)

// finish walks the finished command tree: a command that only holds others rejects unknown ones, and known values can
// be completed.
func finish(c *cobra.Command) {
	for _, sub := range c.Commands() {
		finish(sub)
	}
	if c.HasParent() && !opensDevice(c) {
		refuseComputeFlags(c)
	}
	completions(c)
	if c.HasSubCommands() && !c.Runnable() {
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			return usage(unknownCommand(c, args[0]))
		}
	}
}

// unknownCommand suggests the nearest command, or lists them. Below a verb there are few, so only one that is a single
// slip away is preferred to the list: tcsh is no misspelt bash.
func unknownCommand(c *cobra.Command, word string) error {
	names := names(c)
	err := fmt.Errorf("unknown command %q for %q", word, c.CommandPath())
	w := near.Close(word, names)
	if w != "" && (!c.HasParent() || near.Distance(word, w) == 1) {
		return fmt.Errorf("%w; did you mean %s?", err, w)
	}
	if len(names) == 0 {
		return fmt.Errorf("%w, which has none", err)
	}
	return fmt.Errorf("%w; there are %s", err, strings.Join(names, ", "))
}

// names lists a command's subcommands.
func names(c *cobra.Command) (list []string) {
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			list = append(list, sub.Name())
		}
	}
	return list
}

// flagError suggests the nearest flag, or says why a flag does not apply.
func flagError(c *cobra.Command, err error) error {
	if idle := new(notComputing); errors.As(err, idle) {
		return *idle
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	word := unknown.GetSpecifiedName()
	w := near.Close(word, names)
	if i := slices.IndexFunc(names,
		func(n string) bool { return len(word) > 1 && strings.HasPrefix(n, word) }); i >= 0 {
		w = names[i]
	}
	if w == "" {
		return fmt.Errorf("%w; \"%s --help\" lists them", err, c.CommandPath())
	}
	return fmt.Errorf("%w; did you mean --%s?", err, w)
}

// helpVerb is cobra's help, except that an unknown word is an error.
func helpVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command; help glossary explains the terms",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if at, _, err := c.Root().Find(args); err == nil {
				return names(at), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			at := c.Root()
			for _, word := range args {
				i := slices.IndexFunc(at.Commands(),
					func(s *cobra.Command) bool { return s.Name() == word || s.HasAlias(word) })
				if i < 0 {
					return usage(unknownCommand(at, word))
				}
				at = at.Commands()[i]
			}
			return at.Help()
		},
	}
}

// called is how this program was called, for commands printed in hints, which must work as printed.
func called() string { return calledAs(os.Args[0]) }

func calledAs(arg string) string {
	if strings.Contains(filepath.ToSlash(arg), "/go-build") { // go run
		return "go run ./cmd/antiphase"
	}
	return arg
}

// glossary is a help page without a command.
func glossary() *cobra.Command {
	return &cobra.Command{Use: "glossary", Short: "Terms used in tables and pages", Long: glossaryText}
}

const glossaryText = `Terms used in tables and pages.

  A1, A2         the two softmax maps of a differential head; attention is A1 − λ·A2
  λ              weight of the subtracted second map; learned, one per layer (diff) or per token and head (diff2)
  AR-Hit         loss on recallable tokens: those that complete a pair of tokens seen earlier in the same text
  attention noise
                 the share of attention on the rest of the text: not the answer, the question or the first token
  attention to the answer
                 the share of the last position's attention that goes to the tokens of the answer
  with sign      sums of a differential head that keep the sign of A1 − λ·A2, so subtracted attention counts as
                 negative; otherwise magnitudes are summed
  bits per byte  the loss of a whole text in bits, divided by its bytes: comparable between tokenizers
  chance, copy   floors of a score: what guessing earns, and what naming any hidden number earns
  checkpoint     the state of a run at a step: weights, optimiser, data position; a run folder keeps the newest
  context        the maximum number of tokens a model attends to
  depth          where in the prompt a needle is hidden: 0 % is its beginning
  held-out loss  loss on documents that were not trained on
  loss, nats     mean of −ln p(next token); 1 nat is 1.44 bits
  perplexity     e to the power of the loss: the uncertainty of a uniform choice among that many tokens
  MFU            model FLOPs utilisation: floating-point operations of the model per second divided by the
                 machine's peak
  micro-batch    sequences computed at a time; the gradients of a batch's micro-batches are summed for one step
  N, R           needles: N numbers are hidden in a text, and R of them are asked for
  needle         a fact hidden in a long text, to be retrieved from it
  outliers       the largest attention logits and hidden states; a few large ones cost low-bit formats precision
  paired test    both models answer the same questions; differences are tested question by question
  recipe         a complete run as a file: model, tokenizer, data, training, optimiser
  run folder     the folder of a training run: recipe.json, metrics.jsonl, checkpoints/
  stand-in       data that a task generates if the paper's set is not given; its numbers compare models
                 with each other, not with the paper
  ±              one standard error; ** marks p < 0.01, * p < 0.05
`
