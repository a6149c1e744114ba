package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"antiphase/layer"
	"antiphase/model"
	"antiphase/recipe"
)

// listed is one row of the listing.
type listed struct {
	Size       string `json:"size"`
	Arch       string `json:"arch"`
	Parameters int    `json:"parameters"`
	Layers     int    `json:"layers"`
	Dim        int    `json:"dim"`
	Heads      int    `json:"heads"`
	HeadDim    int    `json:"head_dim"`
	FFN        int    `json:"ffn"`
	Doc        string `json:"doc"`
}

func recipesVerb(a *app) *cobra.Command {
	var asJSON, keys bool
	c := &cobra.Command{
		Use:   "recipes",
		Short: "List the named recipes, or every key of a recipe",
		Example: `  antiphase recipes
  antiphase recipes --keys
  antiphase recipes --json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if keys {
				return listKeys(a, asJSON)
			}
			return listRecipes(a, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&keys, "keys", false, "list the keys that --set accepts, with their meaning")
	return c
}

func listRecipes(a *app, asJSON bool) error {
	var list []listed
	for _, s := range recipe.Sizes() {
		for _, arch := range layer.Archs() {
			r, err := s.Make(arch.Name)
			if err != nil {
				return err
			}
			m := r.Model
			list = append(list, listed{s.Name, arch.Name, model.Table(m).Count(), m.Layers, m.Dim, m.Heads, m.HeadDim,
				m.FFN, s.Doc})
		}
	}
	if asJSON {
		return a.json(list)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SIZE\tARCH\tPARAMETERS\tLAYERS\tDIM\tHEADS\tHEAD DIM\tFFN\t")
	for _, r := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", r.Size, r.Arch, count(float64(r.Parameters)), r.Layers,
			r.Dim, r.Heads, r.HeadDim, r.FFN, r.Doc)
	}
	return w.Flush()
}

func listKeys(a *app, asJSON bool) error {
	r, err := recipe.Tiny("diff")
	if err != nil {
		return err
	}
	type key struct {
		Path    string `json:"key"`
		Default string `json:"tiny_diff"`
		Doc     string `json:"doc"`
	}
	var list []key
	for _, f := range r.Fields() {
		list = append(list, key{f.Path, f.Value, f.Doc})
	}
	if asJSON {
		return a.json(list)
	}
	rows := [][]string{{"KEY", "TINY DIFF", "MEANING"}}
	for _, k := range list {
		rows = append(rows, []string{k.Path, shorten(k.Default, 32), k.Doc})
	}
	return writeListing(a.out, columns(a.out), 1, rows)
}
