package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"antiphase/internal/safetensors"
	"antiphase/internal/vfs"
	"antiphase/model"
	"antiphase/pair"
)

func packVerb(a *app) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "pack MODEL -o FILE",
		Short: "Write a model as one int8 file with its tokenizer and configuration",
		Long: `Pack writes a model as a single safetensors file that "--model FILE" reads: matrices in int8 with a scale
per row, everything else in float32, the tokenizer and the configuration in its metadata. It takes a quarter
of the space of float32. The embedded models are such files (pair/files).`,
		Example: `  antiphase pack runs/small-diff -o small.safetensors
  antiphase generate --model small.safetensors -p "The old"`,
		Args: exactly("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error { return packModel(cmd.Context(), a, args[0], out) },
	}
	c.Flags().StringVarP(&out, "out", "o", "", "file to write")
	return c
}

func packModel(ctx context.Context, a *app, name, out string) error {
	if out == "" {
		return usage(errors.New("--out: missing; name the file to write"))
	}
	if err := replaceable(out, "is not a packed model", isPackedFile); err != nil {
		return err
	}
	s, err := openStored(ctx, a, name)
	if err != nil {
		return err
	}
	defer s.close()
	if s.Tokenizer == nil {
		return badInput{fmt.Errorf("%s has no tokenizer.json, and a packed model needs one", s.Dir)}
	}
	m := &pair.Model{Config: s.Config, Tokenizer: s.Tokenizer, Values: s.Values, About: aboutModel(s)}
	var b bytes.Buffer
	if err := pair.Write(&b, m); err != nil {
		return err
	}
	if err := writeBytes(out, b.Bytes()); err != nil {
		return err
	}
	a.note("%s: %s parameters, %.2f MB", out, count(float64(model.Table(s.Config).Count())), float64(b.Len())/1e6)
	return nil
}

// aboutModel describes how a model was made.
func aboutModel(s *stored) string {
	if s.Saved == nil {
		return "packed from " + s.Kind + " weights"
	}
	r, st := s.Saved.Recipe, s.Saved.State
	return fmt.Sprintf("%s, %d steps, %d tokens, training loss %.4f, held-out loss %.4f, data %s", r.Name, st.Step,
		st.Tokens, st.EMA, st.Valid, sourceNames(r.Data.Sources))
}

// isPackedFile reports whether a file is a packed model.
func isPackedFile(path string) bool {
	f, err := safetensors.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return pair.IsPacked(f)
}

// openPackedFile maps a packed model. Its values are read from the mapping until it is closed.
func openPackedFile(path string) (*stored, error) {
	b, unmap, err := vfs.OS{}.Map(path)
	if err != nil {
		return nil, badInput{err}
	}
	m, err := pair.Parse(b)
	s, err := storedPacked(path, m, err)
	if err != nil {
		return nil, errors.Join(err, unmap())
	}
	s.close = unmap
	return s, nil
}

// embeddedPrefix begins the name of an embedded model.
const embeddedPrefix = "pair:"

// embeddedDefault is the model used if none is named; "" if none is embedded.
func embeddedDefault() string {
	if names := embeddedModels(); len(names) > 0 {
		_, name, _ := strings.Cut(names[0], "=")
		return name
	}
	return ""
}

// embeddedModels are the embedded models, as NAME=FOLDER for verbs that take several.
func embeddedModels() (out []string) {
	for _, name := range pair.Names() {
		out = append(out, name+"="+embeddedPrefix+name)
	}
	return out
}

// storedPacked makes a stored model of a packed one.
func storedPacked(name string, m *pair.Model, err error) (*stored, error) {
	if err != nil {
		return nil, badInput{fmt.Errorf("%s: %w", name, err)}
	}
	ask := ownManners(m.Tokenizer)
	return &stored{Config: m.Config, Values: m.Values, Tokenizer: m.Tokenizer, Manners: ask, Dir: name,
		Kind: kindPacked, Hash: m.Hash,
		Bytes: m.Bytes, DTypes: map[string]int64{"I8": m.Bytes}, close: func() error { return nil }}, nil
}
