package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

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
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TASK\tGROUP\tVERSION\tSHOTS\tMEASURES\t")
	for _, r := range list {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\n", r.Name, r.Group, r.Version, r.Shots,
			strings.Join(r.Measures, " "), r.Doc)
	}
	fmt.Fprintln(w, "\nSETTING\tDEFAULT\t\t\t\t")
	shown := map[string]bool{}
	for _, t := range all {
		for _, s := range t.Settings {
			key := t.Name + "." + s.Key
			if t.Group != "" {
				key = t.Group + "." + s.Key
			}
			if !shown[key] {
				fmt.Fprintf(w, "%s\t%v\t\t\t\t%s\n", key, s.Default, s.Doc)
			}
			shown[key] = true
		}
	}
	return w.Flush()
}
