package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"antiphase/device"
	"antiphase/lab"
	"antiphase/server"
	"antiphase/web"
)

type attendFlags struct {
	models       []string
	prompt, file string
	out          string
	cells        int
	json         bool
}

func attendVerb(a *app) *cobra.Command {
	var f attendFlags
	c := &cobra.Command{
		Use:   "attend",
		Short: "Write the attention lab for one prompt as a single HTML file",
		Long: `Attend runs a prompt through one model or two and writes the attention lab of "antiphase serve" as one HTML file
that needs no server and no network. It shows every map, λ, the next tokens, and how the loss and the next token
change when λ is scaled, the second map is replaced or a head is disabled. Without --model it uses the embedded
models.`,
		Example: `  antiphase attend -p "The magic code is Paris 42. Which is it? The magic code is Paris"
  antiphase attend --model runs/small-diff -p "Once upon a time"
  antiphase attend --model runs/a --model base=runs/b --prompt-file question.txt --out page.html`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.json {
				if err := idle(cmd.Flags(), "with --json, which writes no page", "out"); err != nil {
					return err
				}
			}
			return f.run(cmd.Context(), a, cmd.Flags().Changed("prompt"))
		},
	}
	fl := c.Flags()
	fl.StringArrayVarP(
		&f.models,
		"model",
		"m",
		nil,
		"[NAME=]FOLDER: "+modelWords+" (at most two)",
	)
	fl.StringVarP(&f.prompt, "prompt", "p", "", "prompt text")
	fl.StringVar(&f.file, "prompt-file", "", "file with the prompt")
	fl.StringVarP(&f.out, "out", "o", "attention.html", "file to write")
	fl.IntVar(
		&f.cells,
		"max-cells",
		1<<20,
		"maximum map entries in the file per model; a longer prompt is shown in tiles",
	)
	fl.BoolVar(&f.json, "json", false, "print the data as JSON instead of writing a page")
	return c
}

// text is the prompt of the flags.
func (f *attendFlags) text(given bool) (string, error) {
	if len(f.models) == 0 {
		f.models = embeddedModels()
	}
	switch {
	case len(f.models) == 0 || len(f.models) > 2:
		return "", usage(errors.New("--model: name one model, or two"))
	case given == (f.file != ""):
		return "", usage(errors.New("give --prompt or --prompt-file, one of them"))
	case f.cells < 1:
		return "", usage(fmt.Errorf("--max-cells: is %d, must be positive", f.cells))
	case given:
		return f.prompt, nil
	}
	return readFile(f.file, "prompt-file")
}

func (f *attendFlags) run(ctx context.Context, a *app, given bool) error {
	text, err := f.text(given)
	if err != nil {
		return err
	}
	if !f.json {
		if err := replaceablePage(f.out); err != nil {
			return err
		}
	}
	d, err := a.open()
	if err != nil {
		return err
	}
	defer d.Close()
	page := &lab.File{Text: text}
	for i, spec := range f.models {
		if err := attendModel(ctx, a, d, page, spec, text, f.cells, i == 0); err != nil {
			return err
		}
	}
	b, err := json.Marshal(page)
	if err != nil {
		return err
	}
	if f.json {
		_, err := fmt.Fprintf(a.out, "%s\n", b)
		return err
	}
	if err := writeBytes(f.out, web.File(b)); err != nil {
		return err
	}
	a.note("wrote %s; open it in a browser", f.out)
	return nil
}

// attendModel adds a model to the page. Interventions are computed for the first one only.
func attendModel(ctx context.Context, a *app, d device.Device, page *lab.File, spec, text string, cells int,
	first bool) error {
	name, dir := servedName(spec)
	if err := server.CheckID(name); err != nil {
		return usage(fmt.Errorf("--model: %w; NAME=FOLDER gives another", err))
	}
	if len(page.Models) > 0 && page.Models[0].ID == name {
		return usage(fmt.Errorf("--model: both are called %s; NAME=FOLDER gives another name", name))
	}
	l, err := a.load(d, dir)
	if err == nil && l.Tokenizer == nil {
		err = badInput{fmt.Errorf("%s has no tokenizer.json, so text cannot be read", dir)}
	}
	if err != nil {
		return err
	}
	defer l.Model.Free()
	s := lab.Subject{Name: name, Model: l.Model, IDs: l.encode(text), Spell: l.Tokenizer.Spell}
	if n := l.Model.Config.Context; len(s.IDs) > n {
		return usage(fmt.Errorf("the prompt has %d tokens in %s, its context is %d", len(s.IDs), name, n))
	}
	if err := page.Add(ctx, s, cells); err != nil {
		return err
	}
	a.note("%s: %d tokens, loss %.4f", name, len(s.IDs), page.Looks[len(page.Looks)-1].Loss)
	if !first {
		return nil
	}
	list := lab.Interventions(l.Model.Config, true)
	if work := l.Model.Config.PromptFLOPs(len(s.IDs)) * float64(len(list)); work > 2e12 {
		list = lab.Interventions(l.Model.Config, false)
		a.note(
			"the model is large: the page covers changes to all layers at once, not to single layers and heads",
		)
	}
	return page.Try(ctx, s, list)
}
