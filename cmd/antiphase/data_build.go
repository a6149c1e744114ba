package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"antiphase/data"
	"antiphase/recipe"
	"antiphase/tokenizer"
	"antiphase/train"
)

type dataBuildFlags struct {
	out, tokenizer string
	heldOutBy      string
	heldOut        float64
	maxTokens      int64
	json           bool
}

func dataBuildVerb(a *app) *cobra.Command {
	var f dataBuildFlags
	c := &cobra.Command{
		Use:   "build SOURCE ...",
		Short: "Encode text as a token set for train",
		Long: `Build encodes the sources with a tokenizer and writes a token set: shards, a manifest and the
tokenizer. "train --data FOLDER" reads it any number of times. A source is a file, a folder, a glob,
synthetic or goroot; SOURCE@WEIGHT makes a mixture. Running the command again reuses the existing set.`,
		Example: `  antiphase tokenizer train 'books/*.jsonl.zst' --vocab 8192 --out tokenizer.json
  antiphase data build 'books/*.jsonl.zst@0.7' notes/@0.3 --tokenizer tokenizer.json --out books.set
  antiphase train --size small --data books.set`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), a, args) },
	}
	fl := c.Flags()
	fl.StringVarP(&f.out, "out", "o", "", "folder to write: new, or a token set to replace")
	fl.StringVar(&f.tokenizer, "tokenizer", "", "a tokenizer.json, or bytes")
	fl.Float64Var(&f.heldOut, "held-out", 0.02, "share of the text kept for validation")
	fl.StringVar(&f.heldOutBy, "held-out-by", data.ByPieces, "what is held out: pieces (of every source) or "+
		"documents (whole ones; a text file is cut into documents of 64 KiB)")
	fl.Int64Var(&f.maxTokens, "max-tokens", 0, "stop after this many tokens; 0 takes all")
	fl.BoolVar(&f.json, "json", false, "print the manifest as JSON")
	return c
}

func (f *dataBuildFlags) run(ctx context.Context, a *app, args []string) error {
	if len(args) == 0 || f.out == "" || f.tokenizer == "" {
		return usage(errors.New("want at least one source, --tokenizer and --out"))
	}
	r, err := f.recipe(args)
	if err != nil {
		return usage(err)
	}
	tok := tokenizer.Bytes()
	if f.tokenizer != "bytes" {
		if tok, err = tokenizer.Load(f.tokenizer); err != nil {
			return badInput{err}
		}
	}
	l := a.newLine()
	opt := train.Options{Say: func(format string, args ...any) { l.end(); a.note(format, args...) },
		Progress: func(stage string, done, total int64) { l.show(prepareLine(stage, done, total), false) }}
	err = train.MakeSet(ctx, r, f.out, tok, &opt)
	l.end()
	if err != nil {
		return err
	}
	m, err := data.ReadManifest(f.out)
	if err != nil {
		return err
	}
	if f.json {
		return a.json(m)
	}
	return printSources(a.out, manifestRows(m))
}

// recipe holds the flags, checked like a run's.
func (f *dataBuildFlags) recipe(args []string) (r recipe.Recipe, err error) {
	if r, err = recipe.Tiny("diff"); err != nil {
		return r, err
	}
	if r.Data.Sources, err = parseSources(args); err != nil {
		return r, err
	}
	r.Data.HeldOut, r.Data.HeldOutBy, r.Data.MaxTokens = f.heldOut, f.heldOutBy, f.maxTokens
	if r, err = r.Complete(); err != nil {
		return r, err
	}
	return r, nil
}
