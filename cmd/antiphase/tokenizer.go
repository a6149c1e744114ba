package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"antiphase/recipe"
	"antiphase/tokenizer"
	"antiphase/train"
)

func tokenizerVerb(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "tokenizer",
		Short: "Train a tokenizer",
	}
	c.AddCommand(tokenizerTrainVerb(a))
	return c
}

type tokenizerFlags struct {
	out  string
	with recipe.Tokenizer
}

func tokenizerTrainVerb(a *app) *cobra.Command {
	var f tokenizerFlags
	c := &cobra.Command{
		Use:   "train SOURCE ...",
		Short: "Train a byte-level BPE tokenizer on text",
		Long: `Train learns byte-pair merges from the documents of the sources and writes a Hugging Face tokenizer.json for
"train --tokenizer" and "data build --tokenizer".`,
		Example: `  antiphase tokenizer train 'books/*.jsonl.zst' --vocab 8192 --out tokenizer.json
  antiphase train --size small --data 'books/*.jsonl.zst' --tokenizer tokenizer.json`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), a, args) },
	}
	fl := c.Flags()
	fl.StringVarP(&f.out, "out", "o", "", "file to write")
	fl.IntVar(&f.with.Vocab, "vocab", 8192, "vocabulary size, including 256 bytes and the end-of-text token")
	fl.IntVar(&f.with.Docs, "docs", 20000, "documents to read, an equal number from each source; 0 reads all")
	fl.StringVar(&f.with.Pattern, "pattern", recipe.Patterns[0], "split pattern: llama3, gpt2 or qwen2")
	return c
}

func (f *tokenizerFlags) run(ctx context.Context, a *app, args []string) error {
	if len(args) == 0 || f.out == "" {
		return usage(errors.New("want at least one source and --out"))
	}
	if err := f.check(); err != nil {
		return usage(err)
	}
	r, err := recipe.Tiny("diff")
	if err != nil {
		return err
	}
	if r.Data.Sources, err = parseSources(args); err != nil {
		return usage(err)
	}
	r.Tokenizer, r.Model.Vocab = f.with, f.with.Vocab
	if r, err = r.Complete(); err != nil {
		return usage(err)
	}
	if err := replaceable(f.out, "is not a tokenizer", isTokenizer); err != nil {
		return err
	}
	l := a.newLine()
	tok, err := train.MakeTokenizer(ctx, r,
		&train.Options{Progress: func(stage string, done,
			total int64) {
			l.show(prepareLine(stage, done, total), false)
		}})
	l.end()
	if err != nil {
		return err
	}
	b, err := tok.MarshalJSON()
	if err != nil {
		return err
	}
	if err := writeBytes(f.out, b); err != nil {
		return err
	}
	a.note("%s: %d ids", f.out, tok.Vocab())
	for _, n := range tok.Notes() {
		a.note("note: %s", n)
	}
	return nil
}

// check rejects values out of range. The recipe would too, by its keys.
func (f *tokenizerFlags) check() error {
	const least = 257
	switch w := f.with; {
	case w.Vocab < least || w.Vocab > tokenizer.MaxTrained:
		return fmt.Errorf("--vocab: is %d, must be from %d (256 bytes and the end-of-text token) to %d", w.Vocab, least,
			tokenizer.MaxTrained)
	case w.Docs < 0:
		return fmt.Errorf("--docs: is %d, must not be negative; 0 reads all", w.Docs)
	case !slices.Contains(recipe.Patterns, w.Pattern):
		return fmt.Errorf("--pattern: is %q, must be one of %q", w.Pattern, recipe.Patterns)
	}
	return nil
}

// isTokenizer reports whether a file is a tokenizer.json.
func isTokenizer(path string) bool {
	_, err := tokenizer.Load(path)
	return err == nil
}
