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

// finish walks the finished tree of commands: one that only holds others refuses what is not among them, and values that are known
// can be completed.
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

// unknownCommand names what was probably meant, and what there is.
func unknownCommand(c *cobra.Command, word string) error {
	names := names(c)
	err := fmt.Errorf("unknown command %q for %q", word, c.CommandPath())
	if w := near.Close(word, names); w != "" {
		return fmt.Errorf("%w; did you mean %s?", err, w)
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

// flagError names the flag that was probably meant, or says why one has no place here.
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
	if i := slices.IndexFunc(names, func(n string) bool { return len(word) > 1 && strings.HasPrefix(n, word) }); i >= 0 {
		w = names[i]
	}
	if w == "" {
		return fmt.Errorf("%w; \"%s --help\" lists them", err, c.CommandPath())
	}
	return fmt.Errorf("%w; did you mean --%s?", err, w)
}

// helpVerb is cobra's help, but for an unknown word, which is an error.
func helpVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command, or about a word: help glossary",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if at, _, err := c.Root().Find(args); err == nil {
				return names(at), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			at := c.Root()
			for _, word := range args {
				i := slices.IndexFunc(at.Commands(), func(s *cobra.Command) bool { return s.Name() == word || s.HasAlias(word) })
				if i < 0 {
					return usage(unknownCommand(at, word))
				}
				at = at.Commands()[i]
			}
			return at.Help()
		},
	}
}

// called is how this program was called, for commands that a hint prints: they must work as they stand.
func called() string { return calledAs(os.Args[0]) }

func calledAs(arg string) string {
	if strings.Contains(filepath.ToSlash(arg), "/go-build") { // go run
		return "go run ./cmd/antiphase"
	}
	return arg
}

// glossary is a page of help and no command.
func glossary() *cobra.Command {
	return &cobra.Command{Use: "glossary", Short: "The words that tables and pages use", Long: glossaryText}
}

const glossaryText = `The words that tables and pages use.

  A1, A2         the two softmax maps of a differential head; attention is A1 − λ·A2
  λ              how much of the second map is subtracted; learned, one per layer (diff) or per token and head (diff2)
  attention noise   the share of attention that goes neither to the answer nor to the question
  attention to the answer   the share of the last position's attention that lies on the tokens of the answer
  with sign      of a differential head: sums with the sign that A1 − λ·A2 has, so that what is subtracted counts as
                 negative; without it magnitudes are summed
  checkpoint     the state of a run at a step: weights, optimiser, data position; a run folder keeps the newest
  context        the most tokens that a model attends to at once
  depth          where in the prompt a needle is hidden: 0 % is its beginning
  held-out loss  loss on documents that were not trained on
  loss, nats     mean of −ln p(next token); 1 nat is 1.44 bits
  perplexity     e to the loss: as uncertain as a choice between that many tokens
  MFU            model FLOPs utilisation: floating-point operations of the model per second over what the machine
                 can do
  micro-batch    sequences computed at a time; gradients of a batch's micro-batches add up to one step
  N, R           needles: N numbers are hidden in a text, R of them are asked for
  needle         a fact hidden in a long text, to be retrieved from it
  outliers       the largest attention logits and hidden states; few large ones make low-bit numbers lose precision
  paired test    the same questions for both models; the difference is judged question by question
  recipe         a complete run as a file: model, tokenizer, data, training, optimiser
  run folder     what train works in: recipe.json, metrics.jsonl, checkpoints/
  stand-in       data that a task makes itself where the paper's set is not given; its numbers compare models, not papers
  ±              one standard error; ** marks p < 0.01, * p < 0.05
`
