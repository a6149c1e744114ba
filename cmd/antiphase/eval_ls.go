package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"antiphase/eval"
)

// evalListVerb lists the tasks.
func evalListVerb(a *app) *cobra.Command {
	var asJSON bool
	var paths []string
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the tasks, their measures and their settings",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all, _, err := allTasks(a, paths)
			if err != nil {
				return err
			}
			return listTasks(a, all, asJSON)
		},
	}
	c.Flags().StringArrayVar(&paths, "task-files", nil,
		"add the tasks of a YAML file or of a folder of them (repeatable)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func listTasks(a *app, all []eval.Task, asJSON bool) error {
	type row struct {
		Name     string         `json:"name"`
		Group    string         `json:"group,omitempty"`
		Version  int            `json:"version"`
		Shots    int            `json:"shots"`
		Doc      string         `json:"doc"`
		Measures []string       `json:"measures"`
		Inside   bool           `json:"inside"`
		Slow     bool           `json:"slow"`
		Settings map[string]any `json:"settings,omitempty"`
	}
	var list []row
	for _, t := range all {
		r := row{t.Name, t.Group, t.Version, max(t.Shots, 0), t.Doc, nil, t.Inside, t.Slow, map[string]any{}}
		for _, m := range t.Measures {
			r.Measures = append(r.Measures, m.Name)
		}
		for _, s := range t.Settings {
			r.Settings[s.Key] = s.Default
		}
		list = append(list, r)
	}
	if asJSON {
		return a.json(list)
	}
	tasks := [][]string{{"TASK", "GROUP", "VERSION", "SHOTS", "MEASURES", ""}}
	for _, r := range list {
		tasks = append(tasks, []string{r.Name, r.Group, fmt.Sprint(r.Version), fmt.Sprint(r.Shots),
			strings.Join(r.Measures, " "), r.Doc})
	}
	if err := writeListing(a.out, columns(a.out), 2, tasks); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	return writeListing(a.out, columns(a.out), 2, settingRows(all))
}

// settingRows lists the settings of all tasks; those of a group once.
func settingRows(all []eval.Task) [][]string {
	rows := [][]string{{"SETTING", "DEFAULT", ""}}
	shown := map[string]bool{}
	for _, t := range all {
		for _, s := range t.Settings {
			key := t.Name + "." + s.Key
			if t.Group != "" {
				key = t.Group + "." + s.Key
			}
			if !shown[key] {
				rows = append(rows, []string{key, fmt.Sprint(s.Default), s.Doc})
			}
			shown[key] = true
		}
	}
	return rows
}
