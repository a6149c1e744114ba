package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"antiphase/hf"
	"antiphase/internal/vfs"
	"antiphase/model"
	"antiphase/pair"
	"antiphase/tokenizer"
	"antiphase/train"
)

func convertVerb(a *app) *cobra.Command {
	var f exportFlags
	var to string
	c := &cobra.Command{
		Use:   "convert MODEL DIR",
		Short: "Convert a model folder to another layout",
		Long: `Convert reads a run, a checkpoint, a Hugging Face folder, a model in the local Hugging Face cache or a
model in the layout of the released modules, and writes the layout named by --to: transformers, with the
options of export, or run, as import does.`,
		Example: `  antiphase convert org/model out --dtype bfloat16
  antiphase convert out runs/again --to run`,
		Args: exactly("MODEL", "DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch to {
			case "transformers":
				return f.run(cmd.Context(), a, args[0], args[1])
			case "run":
				for _, name := range []string{"class", "dtype", "max-shard-size", "chat-template", "force"} {
					if cmd.Flags().Changed(name) {
						return usage(fmt.Errorf("--%s: cannot be combined with --to run", name))
					}
				}
				return importModel(cmd.Context(), a, args[0], args[1], f.json)
			}
			return usage(fmt.Errorf("--to: %q is unknown; there are transformers and run", to))
		},
	}
	c.Flags().StringVar(&to, "to", "transformers", "layout to write: transformers or run")
	f.flags(c.Flags())
	return c
}

// stored is a model on disk, opened without a device: values are read on demand.
type stored struct {
	Config    model.Config
	Values    hf.Values
	Tokenizer *tokenizer.Tokenizer // nil if the folder has none
	Manners   manners
	Saved     *train.Saved // of a run; nil otherwise
	Folder    *hf.Folder   // of a Hugging Face folder; nil otherwise
	Dir, Kind string
	Hash      string // of a packed model's content
	Bytes     int64  // of weights on disk
	DTypes    map[string]int64

	close func() error
}

// manners is how a model expects its prompts. In training, one of our runs saw the end-of-text token before and after
// every document and nothing else. A Hugging Face folder states it, and the checkpoint that import makes keeps that.
type manners struct {
	hf.Tokens
	Generation *hf.Generation // sampling defaults; nil for a run of our own
	First      int32          // begins every prompt; −1: the tokenizer decides
}

// maxGeneration bounds the bytes of a generation_config.json.
const maxGeneration = 1 << 20

func mannersOf(s *train.Saved) (manners, error) {
	m := manners{Tokens: hf.Tokens{BOS: -1, Pad: -1}, First: -1}
	b, err := vfs.ReadFile(s.Checkpoint.FS(), s.Checkpoint.Path(generationFile), maxGeneration)
	if errors.Is(err, fs.ErrNotExist) {
		return ownManners(s.Tokenizer), nil
	}
	if err == nil {
		m.Generation, m.Tokens, err = hf.ParseGeneration(b, s.Recipe.Model.Vocab)
	}
	if err != nil {
		return m, badInput{fmt.Errorf("%s: %w", s.Checkpoint.Dir, err)}
	}
	return m, nil
}

// ownManners are those of a model trained here.
func ownManners(tok *tokenizer.Tokenizer) manners {
	m := manners{Tokens: hf.Tokens{BOS: -1, Pad: -1}, First: -1}
	if id, ok := tok.EOS(); ok {
		m.First, m.EOS = id, []int{int(id)}
	}
	return m
}

// meant suggests the embedded model of a name that is no folder.
func meant(name string) string {
	if slices.Contains(pair.Names(), name) {
		return fmt.Sprintf("; the embedded model is %s%s", embeddedPrefix, name)
	}
	return ""
}

// locate resolves --model to a folder: a path, or org/name in the local Hugging Face cache.
func locate(name string) (string, error) {
	if name == "" {
		return "", usage(errors.New("--model: missing; name a " + modelWords))
	}
	_, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) && hf.IsHubName(name) {
		dir, err := hf.Cached(name)
		if err != nil {
			return "", badInput{fmt.Errorf("there is no folder %s, and %w", name, err)}
		}
		return dir, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", badInput{fmt.Errorf("there is no folder %s%s", name, meant(name))}
	}
	if err != nil {
		return "", badInput{err}
	}
	return name, nil
}

// openStored opens a model folder of any layout. After ctx ends it returns no more values, so that whatever is being
// made from them is abandoned.
func openStored(ctx context.Context, a *app, name string) (s *stored, err error) {
	name = cmp.Or(name, embeddedDefault())
	if own, ok := strings.CutPrefix(name, embeddedPrefix); ok {
		m, err := pair.Open(own)
		return storedPacked(name, m, err)
	}
	dir, err := locate(name)
	if err != nil {
		return nil, err
	}
	switch {
	case isPackedFile(dir):
		return openPackedFile(dir)
	case train.IsRun(dir):
		s, err = openStoredRun(a, dir)
	case hf.IsFolder(dir):
		s, err = storedHF(dir)
	default:
		err = unknownFolder(dir)
	}
	if err != nil {
		return nil, err
	}
	values := s.Values
	s.Values = func(name string) ([]float32, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return values(name)
	}
	return s, nil
}

// unknownFolder is the error for a path that is no model. A folder in which files cannot be looked up may well be one.
func unknownFolder(dir string) error {
	if st, err := os.Stat(dir); err == nil && st.IsDir() {
		for _, name := range []string{"checkpoints", "state.json", "config.json"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return badInput{fmt.Errorf("%s cannot be read: %w", dir, err)}
			}
		}
	}
	return badInput{fmt.Errorf(
		"%s is neither a run folder (checkpoints/), a checkpoint (state.json) nor a Hugging Face folder (config.json)",
		dir)}
}

func openStoredRun(a *app, dir string) (*stored, error) {
	s, err := train.Open(dir, func(w string) { a.note("warning: %s", w) })
	if err != nil {
		return nil, badInput{err}
	}
	ask, err := mannersOf(s)
	if err != nil {
		return nil, err
	}
	f := s.Weights
	err = s.Recipe.Model.Check()
	if err == nil {
		err = model.CheckFile(f, model.Table(s.Recipe.Model))
	}
	if err != nil {
		return nil, badInput{errors.Join(fmt.Errorf("%s: %w", s.Checkpoint.Dir, err), f.Close())}
	}
	t := &stored{Config: s.Recipe.Model, Values: f.Float32s, Tokenizer: s.Tokenizer, Manners: ask, Saved: s,
		Dir: s.Checkpoint.Dir, Kind: kindRun, DTypes: map[string]int64{}, close: f.Close}
	for _, info := range f.Infos() {
		t.DTypes[string(info.DType)] += info.End - info.Begin
		t.Bytes += info.End - info.Begin
	}
	return t, nil
}

func storedHF(dir string) (*stored, error) {
	f, err := hf.Load(dir)
	if err != nil {
		return nil, badInput{err}
	}
	t := &stored{Config: f.Config, Values: f.Values(), Manners: manners{f.Tokens(), f.Generation, -1}, Folder: f,
		Dir: dir, Kind: kindHF, close: f.Close}
	t.DTypes = f.DTypes()
	for _, n := range t.DTypes {
		t.Bytes += n
	}
	if t.Tokenizer, err = tokenizerOf(dir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return t, nil
}

// tokenizerOf reads a folder's tokenizer.json, nil if there is none.
func tokenizerOf(dir string) (*tokenizer.Tokenizer, error) {
	b, err := hf.ReadFile(dir, "tokenizer.json", tokenizer.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var t *tokenizer.Tokenizer
	if err == nil {
		t, err = tokenizer.Parse(b)
	}
	if err != nil {
		return nil, badInput{fmt.Errorf("%s: %w", filepath.Join(dir, "tokenizer.json"), err)}
	}
	return t, nil
}

// size parses a number of bytes with a unit, as in transformers: 500MB, 5GB, 1GiB.
func size(s string) (int64, error) {
	for _, u := range []struct {
		unit string
		n    float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}} {
		if digits, ok := strings.CutSuffix(s, u.unit); ok {
			x, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
			if err != nil || !(x*u.n >= 1) || x*u.n > 1e18 {
				break
			}
			return int64(x * u.n), nil
		}
	}
	return 0, fmt.Errorf("%q is not a size like 500MB, 5GB or 1GiB", s)
}
