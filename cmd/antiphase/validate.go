package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"antiphase/hf"
	"antiphase/model"
	"antiphase/tokenizer/chat"
)

func validateVerb(a *app) *cobra.Command {
	var asJSON, shallow bool
	c := &cobra.Command{
		Use:   "validate MODEL",
		Short: "Check a model folder without running it",
		Long: `Validate checks a model folder without running the model: configuration; presence, shape and dtype of every
tensor; that all weights are finite; hashes of a checkpoint; that the tokenizer fits the model; and that the
chat template parses. The exit code is 0 if everything is in order and 3 if not.`,
		Example: `  antiphase validate ./DiffLlama-375M
  antiphase validate runs/tiny-diff --json
  antiphase validate pair:diff`,
		Args: exactly("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return validateModel(cmd.Context(), a, args[0], asJSON, shallow)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&shallow, "shallow", false, "skip the values of the weights")
	return c
}

// finding is the outcome of one check.
type finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

func validateModel(ctx context.Context, a *app, name string, asJSON, shallow bool) error {
	list, err := findings(ctx, a, name, shallow)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	var bad []string
	for _, f := range list {
		if !f.OK {
			bad = append(bad, f.Check+": "+f.Detail)
		}
	}
	if asJSON {
		err = a.json(map[string]any{"ok": len(bad) == 0, "checks": list})
	} else {
		for _, f := range list {
			mark := painted(a.colored(a.out), green, "ok  ")
			if !f.OK {
				mark = painted(a.colored(a.out), red, "bad ")
			}
			fmt.Fprintf(a.out, "%s %-10s %s\n", mark, f.Check, f.Detail)
		}
	}
	if len(bad) > 0 {
		return errors.Join(err, badInput{fmt.Errorf("%s: %s", name, strings.Join(bad, "; "))})
	}
	return err
}

// findings runs every check that the previous ones allow.
func findings(ctx context.Context, a *app, name string, shallow bool) ([]finding, error) {
	if !strings.HasPrefix(name, embeddedPrefix) {
		if _, err := locate(name); err != nil {
			return nil, err
		}
	}
	s, err := openStored(ctx, a, name)
	if err != nil {
		return []finding{{"folder", false, err.Error()}}, nil
	}
	defer s.close()
	list := []finding{
		{"folder", true, fmt.Sprintf("%s (%s)", s.Dir, s.Kind)},
		{"tensors", true, fmt.Sprintf("%d parameters in %s", model.Table(s.Config).Count(),
			strings.Join(dtypeList(s.DTypes), ", "))},
	}
	if s.Saved != nil {
		list = append(list, checkRun(name)...)
	}
	if !shallow {
		list = append(list, s.checkFinite())
		if s.Kind == kindHF {
			list = append(list, checkHashes(s.Dir))
		}
	}
	return append(list, s.checkTokenizer(), checkChat(s.Kind, s.Dir)), nil
}

// checkFinite reads every weight.
func (s *stored) checkFinite() finding {
	f := finding{Check: "weights", OK: true, Detail: "all values are finite"}
	for _, p := range model.Table(s.Config).List {
		x, err := s.Values(p.Name)
		if err != nil {
			return finding{"weights", false, err.Error()}
		}
		for i, v := range x {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return finding{"weights", false, fmt.Sprintf("%s: value %d is %g", p.Name, i, v)}
			}
		}
	}
	return f
}

// checkHashes checks an exported folder against its manifest. Modified weights are damage; other files are often edited
// on purpose.
func checkHashes(dir string) finding {
	m, err := hf.ReadManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return finding{"hashes", true, "there is no " + hf.ManifestFile + " to check against"}
	}
	var changed []string
	if err == nil {
		changed, err = m.Changed(dir)
	}
	if err != nil {
		return finding{"hashes", false, err.Error()}
	}
	if len(changed) == 0 {
		return finding{"hashes", true, fmt.Sprintf("%d files are as exported", len(m.Files))}
	}
	weights := slices.ContainsFunc(changed, func(name string) bool { return strings.HasSuffix(name, ".safetensors") })
	return finding{"hashes", !weights, "changed since the export: " + strings.Join(changed, ", ")}
}

// checkTokenizer checks the tokenizer against the model's vocabulary, and the special ids against the tokenizer.
func (s *stored) checkTokenizer() finding {
	if s.Tokenizer == nil {
		return finding{"tokenizer", true, "there is none: the model works on ids only"}
	}
	if n := s.Tokenizer.Vocab(); n > s.Config.Vocab {
		return finding{"tokenizer", false, fmt.Sprintf("has %d ids, the model a vocabulary of %d", n, s.Config.Vocab)}
	}
	for _, id := range append([]int{s.Manners.BOS, s.Manners.Pad}, s.Manners.EOS...) {
		if id >= 0 && s.Tokenizer.Token(int32(id)) == "" {
			return finding{"tokenizer", false,
				fmt.Sprintf("has no token %d, which the configuration names as special", id)}
		}
	}
	detail := fmt.Sprintf("%d ids", s.Tokenizer.Vocab())
	if notes := s.Tokenizer.Notes(); len(notes) > 0 {
		detail += "; " + strings.Join(notes, "; ")
	}
	return finding{"tokenizer", true, detail}
}

// checkChat renders a minimal conversation.
func checkChat(kind, dir string) finding {
	t, err := chatTemplate(&loaded{Kind: kind, Dir: dir})
	switch {
	case err != nil:
		return finding{"chat", false, err.Error()}
	case t == nil:
		return finding{"chat", true, "there is no template: text is continued"}
	}
	text, err := t.Render(chat.Conversation{Messages: []chat.Message{{Role: "user", Content: "hello"}}, Generate: true})
	if err != nil {
		return finding{"chat", false, err.Error()}
	}
	return finding{"chat", true, fmt.Sprintf("renders %q", shorten(text, 60))}
}

func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
