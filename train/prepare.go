package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"antiphase/data"
	"antiphase/recipe"
	"antiphase/tokenizer"
)

// Prepare makes the run's tokenizer and token set, or takes the ones that are there.
func Prepare(ctx context.Context, r recipe.Recipe, opt *Options) (*tokenizer.Tokenizer, *data.Set, error) {
	if opt.Data == "" {
		opt.Data = filepath.Join(opt.Dir, "data")
	}
	var src []data.Source
	for _, spec := range r.Data.Sources {
		s, err := data.Open(spec)
		if err != nil {
			return nil, nil, err
		}
		src = append(src, s)
	}
	tok, err := prepareTokenizer(ctx, r, opt, src)
	if err != nil {
		return nil, nil, err
	}
	if tok.Vocab() > r.Model.Vocab {
		return nil, nil, fmt.Errorf("train: the tokenizer has %d ids, model.vocab is %d: set model.vocab=%d", tok.Vocab(), r.Model.Vocab, (tok.Vocab()+63)/64*64)
	}
	_, err = data.Build(ctx, opt.Data, src, tok, data.BuildOptions{HeldOut: r.Data.HeldOut, MaxTokens: r.Data.MaxTokens,
		Progress: func(_, tokens int64) { opt.progress("tokens", tokens, r.Data.MaxTokens) }})
	if err != nil {
		return nil, nil, err
	}
	set, err := data.OpenSet(opt.Data, true)
	return tok, set, err
}

func (o *Options) progress(stage string, done, total int64) {
	if o.Progress != nil {
		o.Progress(stage, done, total)
	}
}

// patterns are the splits that a recipe may name.
var patterns = map[string]string{
	"": tokenizer.PatternLlama3, "llama3": tokenizer.PatternLlama3, "gpt2": tokenizer.PatternGPT2, "qwen2": tokenizer.PatternQwen2,
}

// prepareTokenizer loads run/tokenizer.json, or the recipe's file, or trains one and keeps it.
func prepareTokenizer(ctx context.Context, r recipe.Recipe, opt *Options, src []data.Source) (*tokenizer.Tokenizer, error) {
	path := opt.Tokenizer
	if path == "" {
		path = filepath.Join(opt.Dir, "tokenizer.json")
	}
	tok, err := tokenizer.Load(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return tok, err
	}
	if _, ok := patterns[r.Tokenizer.Pattern]; !ok {
		return nil, fmt.Errorf("tokenizer.pattern: is %q, must be llama3, gpt2 or qwen2", r.Tokenizer.Pattern)
	}
	switch r.Tokenizer.Path {
	case "":
		tok, err = tokenizer.Train(ctx, texts(ctx, src, r.Tokenizer.Docs, &err), tokenizer.TrainOptions{
			Pattern: patterns[r.Tokenizer.Pattern], Vocab: r.Tokenizer.Vocab, Specials: []string{"<|endoftext|>"},
			Progress: func(done, total int) { opt.progress("tokenizer", int64(done), int64(total)) }})
	case "bytes":
		tok = tokenizer.Bytes()
		err = nil
	default:
		tok, err = tokenizer.Load(r.Tokenizer.Path)
	}
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(opt.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return tok, tok.Save(path)
}

// texts yields at most n documents of all sources (all when n is 0); a source's error lands in *errp.
func texts(ctx context.Context, src []data.Source, n int, errp *error) iter.Seq[string] {
	return func(yield func(string) bool) {
		*errp = nil
		left := n
		for _, s := range src {
			for d, err := range s.Documents(ctx) {
				if err != nil {
					*errp = err
					return
				}
				if !yield(d.Text) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
		}
	}
}
