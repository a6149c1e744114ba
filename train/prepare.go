package train

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"

	"antiphase/data"
	"antiphase/internal/vfs"
	"antiphase/recipe"
	"antiphase/tokenizer"
)

// prepare makes the run's tokenizer and token set, or uses existing ones. A run that continues from a checkpoint needs
// its own tokenizer and its own shards, and no sources unless the data was changed by force.
func prepare(ctx context.Context, r recipe.Recipe, opt *Options, c *saved) (*tokenizer.Tokenizer, *data.Set, error) {
	built := opt.place(r)
	if c != nil {
		tok, err := loadTokenizer(opt.fs, c.Path("tokenizer.json"))
		if err != nil {
			return nil, nil, err
		}
		if c.newData && built == "" {
			return buildSet(ctx, r, opt, tok)
		}
		if m, err := data.ReadManifestFS(opt.fs, opt.Data); err == nil && m.Hash == c.state.Data.Dataset {
			set, err := data.OpenSetFS(opt.fs, opt.Data, true)
			return tok, set, err
		}
		if built != "" {
			return nil, nil, &data.CorruptError{File: built,
				Fault: "not the token set that this run was trained on; restore it, or use another run folder"}
		}
		opt.Say("the token set of this run is not in %s: building it again", opt.Data)
		return buildSet(ctx, r, opt, tok)
	}
	if built != "" {
		tok, set, err := takeSet(built, r, opt)
		if err != nil {
			return nil, nil, err
		}
		return tok, set, fits(tok, r)
	}
	tok, err := prepareTokenizer(ctx, r, opt)
	if err != nil {
		return nil, nil, err
	}
	if err := fits(tok, r); err != nil {
		return nil, nil, err
	}
	return buildSet(ctx, r, opt, tok)
}

// mayBegin refuses input that a new run could not use, before anything is made. A run that continues needs none of it.
func mayBegin(r recipe.Recipe, opt *Options) error {
	if opt.Built || hasCheckpoint(opt) {
		return nil
	}
	path := r.Tokenizer.Path
	if built := builtSet(r); built != "" {
		if _, err := data.ReadManifestFS(opt.fs, built); err != nil {
			return err
		}
		path = cmp.Or(path, filepath.Join(built, data.TokenizerName))
	} else if _, err := Sources(r); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if path == "" {
		return nil // it will be trained
	}
	tok, err := loadTokenizer(opt.fs, path)
	if err != nil {
		return err
	}
	return fits(tok, r)
}

// place sets the path of the token set, and returns the folder of a built one, "" if the run builds its own.
func (o *Options) place(r recipe.Recipe) string {
	built := builtSet(r)
	switch {
	case o.Built:
		built = o.Data
	case built != "":
		o.Data = built
	case o.Data == "":
		o.Data = filepath.Join(o.Dir, "data")
	}
	return built
}

// fits requires an embedding for every id.
func fits(tok *tokenizer.Tokenizer, r recipe.Recipe) error {
	if tok.Vocab() > r.Model.Vocab {
		return fmt.Errorf("train: the tokenizer has %d ids, model.vocab is %d: set model.vocab=%d", tok.Vocab(),
			r.Model.Vocab, (tok.Vocab()+63)/64*64)
	}
	return nil
}

func buildSet(ctx context.Context, r recipe.Recipe, opt *Options, tok *tokenizer.Tokenizer) (*tokenizer.Tokenizer,
	*data.Set, error) {
	if err := build(ctx, r, opt.Data, tok, opt, nil); err != nil {
		return nil, nil, err
	}
	set, err := data.OpenSetFS(opt.fs, opt.Data, true)
	return tok, set, err
}

// MakeSet builds the recipe's token set in dir, including its tokenizer. Only the functions of opt are used.
func MakeSet(ctx context.Context, r recipe.Recipe, dir string, tok *tokenizer.Tokenizer, opt *Options) error {
	file, err := tok.MarshalJSON()
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return build(ctx, r, dir, tok, opt, file)
}

func build(ctx context.Context, r recipe.Recipe, dir string, tok *tokenizer.Tokenizer, opt *Options,
	file []byte) error {
	src, err := Sources(r)
	if err != nil {
		return err
	}
	for _, s := range Overlaps(r, src) {
		opt.say("warning: %s", s)
	}
	m, err := data.Build(ctx, dir, src, tok,
		data.BuildOptions{HeldOut: r.Data.HeldOut, HeldOutBy: r.Data.HeldOutBy, Shares: shares(r),
			MaxTokens: r.Data.MaxTokens, Tokenizer: file, FS: opt.fs,
			Progress: func(_, tokens int64) { opt.progress("tokens", tokens, r.Data.MaxTokens) }})
	if err != nil {
		return err
	}
	for _, s := range m.Sources {
		if n := s.Skipped; n != (data.Skipped{}) {
			opt.say("%s: left out %d documents that are not UTF-8 and %d that are empty, of %d", s.Name, n.NotUTF8,
				n.Empty, s.Docs+n.NotUTF8+n.Empty)
		}
	}
	return nil
}

// say is Say for stages that run alone, whose callers may leave it out.
func (o *Options) say(format string, args ...any) {
	if o.Say != nil {
		o.Say(format, args...)
	}
}

func (o *Options) progress(stage string, done, total int64) {
	if o.Progress != nil {
		o.Progress(stage, done, total)
	}
}

// patterns are the split patterns that a recipe may name, see recipe.Patterns.
var patterns = map[string]string{"llama3": tokenizer.PatternLlama3, "gpt2": tokenizer.PatternGPT2,
	"qwen2": tokenizer.PatternQwen2}

// originOf describes everything that a tokenizer is trained on: the settings, the sources and the state of their files.
func originOf(r recipe.Recipe) ([]byte, error) {
	src, err := Sources(r)
	if err != nil {
		return nil, err
	}
	prints := make([]string, len(src))
	for i, s := range src {
		if f, ok := s.(data.Fingerprinter); ok {
			if prints[i], err = f.Fingerprint(); err != nil {
				return nil, fmt.Errorf("source %s: %w", s.Name(), err)
			}
		}
	}
	return json.Marshal(map[string]any{"tokenizer": r.Tokenizer, "sources": r.Data.Sources, "fingerprints": prints})
}

// prepareTokenizer uses the recipe's file, or the tokenizer that an earlier call trained with the same settings on the
// same sources, or trains one and stores it with a note of its inputs.
func prepareTokenizer(ctx context.Context, r recipe.Recipe, opt *Options) (*tokenizer.Tokenizer, error) {
	if r.Tokenizer.Path != "" {
		return loadTokenizer(opt.fs, r.Tokenizer.Path)
	}
	path := opt.Tokenizer
	if path == "" {
		path = filepath.Join(opt.Dir, "tokenizer.json")
	}
	origin, err := originOf(r)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	if old, err := vfs.ReadFile(opt.fs, path+".origin", maxState); err == nil && bytes.Equal(old, origin) {
		return loadTokenizer(opt.fs, path)
	}
	tok, err := MakeTokenizer(ctx, r, opt)
	if err != nil {
		return nil, err
	}
	file, err := tok.MarshalJSON()
	if err == nil {
		err = vfs.WriteFile(opt.fs, path, file)
	}
	if err == nil {
		err = vfs.WriteFile(opt.fs, path+".origin", origin)
	}
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return tok, nil
}

// MakeTokenizer trains the recipe's tokenizer on its sources. Only the functions of opt are used.
func MakeTokenizer(ctx context.Context, r recipe.Recipe, opt *Options) (*tokenizer.Tokenizer, error) {
	src, err := Sources(r)
	if err != nil {
		return nil, err
	}
	var bad error // error of a source
	tok, err := tokenizer.Train(ctx, texts(ctx, src, r.Tokenizer.Docs, &bad), tokenizer.TrainOptions{
		Pattern: patterns[r.Tokenizer.Pattern], Vocab: r.Tokenizer.Vocab, Specials: []string{"<|endoftext|>"},
		Progress: func(done, total int) { opt.progress("tokenizer", int64(done), int64(total)) }})
	return tok, errors.Join(bad, err)
}

// texts yields n documents, an equal share of each source (all if n is 0); a source's error is stored in *bad.
func texts(ctx context.Context, src []data.Source, n int, bad *error) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, s := range src {
			left := (n + len(src) - 1) / len(src)
			for d, err := range s.Documents(ctx) {
				if err != nil {
					*bad = err
					return
				}
				if !yield(d.Text) {
					return
				}
				if left--; left == 0 {
					break
				}
			}
		}
	}
}
