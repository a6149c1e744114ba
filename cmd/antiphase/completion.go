package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"antiphase/eval/task"
	"antiphase/hf"
	"antiphase/layer"
	"antiphase/recipe"
	"antiphase/train"
)

// complete returns the values of a flag or an argument, each optionally followed by a tab and its meaning.
type complete func() []string

// flagValues are the flags with known values, on any command.
var flagValues = map[string]complete{
	"size":      sizeNames,
	"arch":      archValues,
	"tasks":     taskNames,
	"color":     fixed("auto", "always", "never"),
	"device":    fixed("auto", "cpu", "cuda", "cuda:0"),
	"precision": fixed("auto", "fp32", "bf16", "int8"),
	"kv-cache":  fixed("auto", "int8"),
	"dtype":     func() []string { return hf.DTypes() },
	"to":        fixed("transformers", "run"),
	"by":        fixed("parameters", "tokens"),
	"data":      fixed("synthetic", "goroot"),
	"set":       settings,
	"class": func() (list []string) {
		for _, c := range hf.Classes() {
			list = append(list, string(c))
		}
		return list
	},
}

func fixed(list ...string) complete { return func() []string { return list } }

func sizeNames() (list []string) {
	for _, s := range recipe.Sizes() {
		list = append(list, s.Name+"\t"+s.Doc)
	}
	return list
}

func archValues() (list []string) {
	for _, a := range layer.Archs() {
		list = append(list, a.Name+"\t"+a.Doc)
	}
	return list
}

func taskNames() []string {
	list := []string{"all"}
	for _, t := range task.All() {
		list = append(list, t.Name+"\t"+t.Doc)
	}
	return list
}

func settings() (list []string) {
	var r recipe.Recipe
	for _, f := range r.Fields() {
		list = append(list, f.Path+"=\t"+f.Doc)
	}
	return list
}

// runFolders are the run folders below runs/ and in the current folder.
func runFolders() (list []string) {
	for _, pattern := range []string{"*", filepath.Join("runs", "*"), filepath.Join("runs", "*", "*")} {
		found, _ := filepath.Glob(pattern) // the patterns are well formed
		for _, dir := range found {
			if train.IsRun(dir) || hf.IsFolder(dir) {
				list = append(list, dir)
			}
		}
	}
	return list
}

// completions registers the known values of a command's flags and arguments. Models may be folders anywhere, so other
// folders are offered as well as run folders.
func completions(c *cobra.Command) {
	for name, values := range flagValues {
		if name == "set" && c.Name() != "train" {
			continue // settings of other commands have other keys
		}
		if f := c.Flags().Lookup(name); f != nil || c.PersistentFlags().Lookup(name) != nil {
			// Fails only for a flag that does not exist, or a second time.
			_ = c.RegisterFlagCompletionFunc(name, values.flag)
		}
	}
	for _, name := range []string{"model", "from"} {
		if c.Flags().Lookup(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, models)
		}
	}
	if strings.HasPrefix(c.Use, c.Name()+" MODEL") {
		c.ValidArgsFunction = func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return models(c, args, word)
		}
	}
}

// flag completes the value of a flag; for a list, its last entry.
func (f complete) flag(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	before := word[:strings.LastIndex(word, ",")+1]
	list := slices.Clone(f())
	for i := range list {
		list[i] = before + list[i]
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

func models(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	var list []string
	for _, dir := range runFolders() {
		if strings.HasPrefix(dir, word) {
			list = append(list, dir)
		}
	}
	if len(list) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}
