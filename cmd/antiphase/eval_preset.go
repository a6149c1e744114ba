package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"antiphase/eval"
	"antiphase/eval/task"
)

// chosen returns the tasks once the models are known.
type chosen func(targets []eval.Target) ([]eval.Task, error)

// choose finds the tasks of --preset, or of --tasks and --task-files.
func (f *evalFlags) choose(a *app) (chosen, error) {
	if f.preset == "" {
		tasks, err := f.selectTasks(a)
		return func([]eval.Target) ([]eval.Task, error) { return tasks, nil }, err
	}
	if len(f.tasks)+len(f.taskFiles) > 0 {
		return nil, usage(errors.New("--preset: names its tasks itself; leave out --tasks and --task-files"))
	}
	p, err := task.FindPreset(f.preset)
	if err != nil {
		return nil, usage(fmt.Errorf("--preset: %w", err))
	}
	if f.scale != "paper" && f.scale != "fit" {
		return nil, usage(fmt.Errorf("--scale: is %q; there are paper and fit", f.scale))
	}
	if p.Checkpoints {
		f.checkpoints = true
	}
	if f.checkpoints && f.opt.Output == "" {
		return nil, usage(errors.New(
			"--output: missing; checkpoints are evaluated in turn, and their results are collected in a store"))
	}
	return func(targets []eval.Target) ([]eval.Task, error) {
		context := targets[0].Context
		for _, t := range targets {
			context = min(context, t.Context)
		}
		tasks, err := p.Tasks(f.scale == "fit", context)
		if err != nil {
			return nil, err
		}
		if f.scale == "paper" {
			a.note("%s at the published settings; --scale fit asks what suits a context of %d tokens",
				f.preset, context)
		} else {
			a.note("%s at the scale of a context of %d tokens: not the published settings", f.preset, context)
		}
		return tasks, nil
	}, nil
}

// presetsVerb lists the presets.
func presetsVerb(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "presets",
		Short: "List the published tables and figures that --preset accepts",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return listPresets(a, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func listPresets(a *app, asJSON bool) error {
	type row struct {
		Name    string   `json:"name"`
		Doc     string   `json:"doc"`
		Tasks   []string `json:"tasks,omitempty"`
		Command string   `json:"command,omitempty"`
	}
	var list []row
	for _, p := range task.Presets() {
		r := row{Name: p.Name, Doc: p.Doc, Command: p.Command}
		for _, part := range p.Parts {
			r.Tasks = append(r.Tasks, part.Tasks)
		}
		list = append(list, r)
	}
	if asJSON {
		return a.json(list)
	}
	var lines [][]string
	for _, r := range list {
		doc := r.Doc
		if r.Command != "" {
			doc += "; made by: " + r.Command
		}
		lines = append(lines, []string{r.Name, doc})
	}
	return writeListing(a.out, columns(a.out), 1, lines)
}
