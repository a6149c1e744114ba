package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"antiphase/hf"
	"antiphase/model"
)

// exportFlags are those that export and convert share.
type exportFlags struct {
	class, dtype, shard, chat string
	force, json               bool
}

func (f *exportFlags) flags(fl *pflag.FlagSet) {
	fl.StringVar(&f.class, "class", "auto",
		"transformers class: auto, llama, diffllama or antiphase (includes its own Python code)")
	fl.StringVar(&f.dtype, "dtype", "float32", "weights as float32, bfloat16 or float16")
	fl.StringVar(&f.shard, "max-shard-size", "5GB", "split weights larger than this into several files")
	fl.StringVar(&f.chat, "chat-template", "", "Jinja file to include as chat_template.jinja")
	fl.BoolVar(&f.force, "force", false, "replace the folder if it is an unmodified export")
	fl.BoolVar(&f.json, "json", false, "print what was written as JSON")
}

func exportVerb(a *app) *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export MODEL DIR",
		Short: "Write a model as a Hugging Face folder",
		Long: `Export writes a folder, with tokenizer and model card, that transformers' AutoModelForCausalLM.from_pretrained
loads and that gives the same logits. A Transformer becomes a LlamaForCausalLM and a DIFF Transformer a
DiffLlamaForCausalLM, without remote code: heads and rotary rows are permuted, and the gain of the head norm
is folded into o_proj. Other models (DIFF V2, ablations) become an AntiphaseForCausalLM, whose code is in the
folder and needs trust_remote_code=True.

The folder is written completely or not at all. Its antiphase.json lists every file with its SHA-256. --force
replaces a folder only if it matches that list exactly; otherwise the folder is kept and the command fails.`,
		Example: `  antiphase export runs/tiny-diff tiny-diff-hf
  antiphase export runs/small-diff2 out --dtype bfloat16 --max-shard-size 500MB`,
		Args: exactly("MODEL", "DIR"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), a, args[0], args[1]) },
	}
	f.flags(c.Flags())
	return c
}

// exported is the output of export.
type exported struct {
	Dir    string   `json:"dir"`
	Class  hf.Class `json:"class"`
	Remote bool     `json:"trust_remote_code"`
	DType  string   `json:"dtype"`
	Files  []string `json:"files"`
}

func (f *exportFlags) run(ctx context.Context, a *app, from, dir string) error {
	shard, err := size(f.shard)
	if err != nil {
		return usage(fmt.Errorf("--max-shard-size: %w", err))
	}
	s, err := openStored(ctx, a, from)
	if err != nil {
		return err
	}
	defer s.close()
	if err := apart(s.Dir, from, dir); err != nil {
		return err
	}
	s.Config.Context = s.trainedContext()
	e := &hf.Export{Config: s.Config, Values: s.Values, Class: hf.Class(f.class), DType: f.dtype, ShardBytes: shard,
		Tokens: s.Manners.Tokens, Generation: s.Manners.Generation}
	class, err := e.Resolve()
	if err != nil {
		return usage(fmt.Errorf("--class: %w", err))
	}
	if !slices.Contains(hf.DTypes(), f.dtype) {
		return usage(fmt.Errorf("--dtype: %q is unknown; there are %v", f.dtype, hf.DTypes()))
	}
	if err := s.companions(e, f.chat); err != nil {
		return err
	}
	if e.Files["README.md"] == nil {
		e.Files["README.md"] = s.card(class).Markdown()
	}
	if err := e.Write(dir, f.force); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return usage(fmt.Errorf("%w; --force replaces an unmodified export", err))
		}
		if errors.Is(err, fs.ErrInvalid) {
			return usage(err)
		}
		return err
	}
	a.note("wrote %s for transformers' %s", dir, class)
	if !f.json {
		return nil
	}
	out := exported{Dir: dir, Class: class, Remote: class == hf.Antiphase, DType: f.dtype}
	names, err := os.ReadDir(dir)
	for _, n := range names {
		out.Files = append(out.Files, n.Name())
	}
	return errors.Join(err, a.json(out))
}

// trainedContext is the context that a model was trained on, which an export states: longer positions were never seen.
// Imported weights keep their context.
func (s *stored) trainedContext() int {
	if s.Saved == nil || s.Saved.State.Step == 0 || s.Saved.Recipe.Train.From != "" || s.Config.RopeScaling != nil {
		return s.Config.Context
	}
	return min(s.Config.Context, s.Saved.Recipe.Train.SeqLen)
}

// apart rejects writing a model over the folder it is read from, or over a parent of it.
func apart(source, from, dir string) error {
	target, err := os.Stat(dir)
	if err != nil {
		return nil // it does not exist
	}
	for _, at := range []string{source, from} {
		for at, _ = filepath.Abs(at); ; at = filepath.Dir(at) {
			if st, err := os.Stat(at); err == nil && os.SameFile(st, target) {
				return usage(fmt.Errorf("%s holds the model that is to be exported; name another folder", dir))
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return nil
}

// carried are the files copied unchanged between Hugging Face folders.
var carried = []string{"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
	"tokenizer.model", "chat_template.jinja", "README.md", "LICENSE"}

const (
	maxCarried     = 1 << 28
	generationFile = "generation_config.json"
)

// companions adds the tokenizer and other files of the model to an export. A run's prompts begin with a token that its
// tokenizer does not add by itself; the exported one does, so that prompts match the training data.
func (s *stored) companions(e *hf.Export, chatFile string) error {
	var template []byte
	if chatFile != "" {
		text, err := templateFile(chatFile)
		if err != nil {
			return err
		}
		template = []byte(text)
	}
	var err error
	if s.Manners.Generation == nil {
		e.Generation = &hf.Generation{}
		e.Files, e.Tokens, err = hf.TokenizerFiles(s.Tokenizer, s.Config.Context, s.Manners.First, template)
		return err
	}
	if e.Files, err = s.carry(); err == nil && template != nil {
		e.Files["chat_template.jinja"] = template
	}
	return err
}

// carry reads the files that are copied unchanged.
func (s *stored) carry() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range carried {
		b, err := hf.ReadFile(s.Dir, name, maxCarried)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, badInput{err}
		}
		files[name] = b
	}
	return files, nil
}

// card states the run's facts.
func (s *stored) card(class hf.Class) *hf.Card {
	c := s.Config
	card := &hf.Card{Name: filepath.Base(s.Dir), Class: class, About: "Attention: " + archDoc(c.Arch) + "."}
	fact := func(name, format string, args ...any) {
		card.Facts = append(card.Facts, [2]string{name, fmt.Sprintf(format, args...)})
	}
	fact("architecture", "%s", c.Arch)
	fact("parameters", "%d", model.Table(c).Count())
	fact("shape", "%d layers of width %d, %d heads in %d groups of %d, inner width %d", c.Layers, c.Dim, c.Heads,
		c.KVHeads, c.HeadDim, c.FFN)
	fact("context", "%d tokens", c.Context)
	fact("vocabulary", "%d", c.Vocab)
	if s.Saved == nil || s.Saved.State.Step == 0 { // imported weights
		card.About += " Converted with Antiphase."
		return card
	}
	r, st := s.Saved.Recipe, s.Saved.State
	card.Name, card.Recipe = r.Name, r.JSON()
	card.About += " Trained with Antiphase."
	fact("run", "%s, seed %d", r.Name, r.Train.Seed)
	if r.Train.From != "" {
		fact("began with", "%s", r.Train.From)
	}
	fact("trained", "%d of %d steps, %d tokens", st.Step, r.Train.Steps, st.Tokens)
	fact("training loss", "%.4f at the last step, %.4f smoothed", st.Loss, st.EMA)
	if st.Valid > 0 {
		fact("held-out loss", "%.4f", st.Valid)
	}
	fact("data", "%v", r.Data.Sources)
	fact("tokenizer", "sha256 %s", s.Saved.Tokenizer.Hash())
	fact("program", "antiphase %s", version())
	return card
}

// dtypeList names the stored types, the one with the most bytes first, equals by name.
func dtypeList(m map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(m),
		func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
}
