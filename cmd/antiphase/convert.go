package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"antiphase/hf"
	"antiphase/internal/safetensors"
	"antiphase/model"
	"antiphase/tokenizer"
	"antiphase/train"
)

func convertVerb(a *app) *cobra.Command {
	var f exportFlags
	var to string
	c := &cobra.Command{
		Use:   "convert MODEL DIR",
		Short: "Turn a model folder of any layout into one of another",
		Long: `Convert reads a run, a checkpoint, a Hugging Face folder, a model in the local Hugging Face cache or a
model of the released modules' layout, and writes the layout that --to names: transformers, with the
options of export, or run, as import does.`,
		Example: `  antiphase convert org/model out --dtype bfloat16
  antiphase convert out runs/again --to run`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			switch to {
			case "transformers":
				return a.export(args[0], args[1], &f)
			case "run":
				return a.importModel(args[0], args[1], f.json)
			}
			return usage(fmt.Errorf("--to: %q is unknown; there are transformers and run", to))
		},
	}
	c.Flags().StringVar(&to, "to", "transformers", "layout to write: transformers or run")
	f.flags(c.Flags())
	return c
}

// stored is a model on disk, opened without a device: its values are read when they are asked for.
type stored struct {
	Config     model.Config
	Values     hf.Values
	Tokenizer  *tokenizer.Tokenizer // nil when the folder has none
	Tokens     hf.Tokens
	Generation *hf.Generation
	Saved      *train.Saved // of a run, else nil
	Folder     *hf.Folder   // of a Hugging Face folder, else nil
	Dir, Kind  string
	Bytes      int64 // of weights on disk
	DTypes     map[string]int64

	close func() error
}

// locate turns --model into a folder: a path, or org/name in the local Hugging Face cache.
func locate(name string) (string, error) {
	if name == "" {
		return "", usage(fmt.Errorf("--model: missing; name a run folder, a checkpoint, a Hugging Face folder or org/name in its cache"))
	}
	_, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) && hf.IsHubName(name) {
		dir, err := hf.Cached(name)
		if err != nil {
			return "", badInput{fmt.Errorf("--model: there is no folder %s, and %w", name, err)}
		}
		return dir, nil
	}
	if err != nil {
		return "", badInput{fmt.Errorf("--model: %w", err)}
	}
	return name, nil
}

// stored opens a model folder of any layout.
func (a *app) stored(name string) (*stored, error) {
	dir, err := locate(name)
	if err != nil {
		return nil, err
	}
	switch {
	case train.IsRun(dir):
		return a.storedRun(dir)
	case hf.IsFolder(dir):
		return storedHF(dir)
	}
	return nil, unknownFolder(dir)
}

func unknownFolder(dir string) error {
	return badInput{fmt.Errorf("--model: %s is neither a run folder (checkpoints/), a checkpoint (state.json) nor a Hugging Face folder (config.json)", dir)}
}

func (a *app) storedRun(dir string) (*stored, error) {
	s, err := train.Open(dir, func(w string) { a.note("warning: %s", w) })
	if err != nil {
		return nil, badInput{err}
	}
	f, err := safetensors.Open(s.Checkpoint.Path("model.safetensors"))
	if err != nil {
		return nil, badInput{err}
	}
	for _, p := range model.Table(s.Recipe.Model).List {
		if info, ok := f.Info(p.Name); !ok || fmt.Sprint(info.Shape) != fmt.Sprint(p.Shape()) {
			return nil, badInput{errors.Join(fmt.Errorf("%s: tensor %q is %v, must be %v", s.Checkpoint.Dir, p.Name, info.Shape, p.Shape()), f.Close())}
		}
	}
	t := &stored{Config: s.Recipe.Model, Values: f.Float32s, Tokenizer: s.Tokenizer, Saved: s, Dir: s.Checkpoint.Dir, Kind: kindRun,
		Tokens: hf.Tokens{BOS: -1, Pad: -1}, DTypes: map[string]int64{}, close: f.Close}
	for _, info := range f.Infos() {
		t.DTypes[string(info.DType)] += info.End - info.Begin
		t.Bytes += info.End - info.Begin
	}
	if id, ok := s.Tokenizer.EOS(); ok {
		t.Tokens.EOS = []int{int(id)}
	}
	return t, nil
}

func storedHF(dir string) (*stored, error) {
	f, err := hf.Load(dir)
	if err != nil {
		return nil, badInput{err}
	}
	t := &stored{Config: f.Config, Values: f.Values(), Tokens: f.Tokens(), Generation: f.Generation, Folder: f, Dir: dir, Kind: kindHF, close: f.Close}
	t.DTypes = f.DTypes()
	for _, n := range t.DTypes {
		t.Bytes += n
	}
	if t.Tokenizer, err = tokenizerOf(dir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return t, nil
}

// tokenizerOf reads a folder's tokenizer.json, nil when there is none.
func tokenizerOf(dir string) (*tokenizer.Tokenizer, error) {
	path := filepath.Join(dir, "tokenizer.json")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	t, err := tokenizer.Load(path)
	if err != nil {
		return nil, badInput{err}
	}
	return t, nil
}

// size reads a number of bytes with a unit, as transformers writes them: 500MB, 5GB, 1GiB.
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
