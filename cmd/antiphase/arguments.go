package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// exactly wants one argument for each name.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch n, want := len(args), len(names); {
		case n < want:
			return usage(fmt.Errorf("%s: missing; want %s", names[n], c.UseLine()))
		case n > want:
			return usage(fmt.Errorf("%q: one argument too many; want %s", args[want], c.UseLine()))
		}
		for i, arg := range args {
			if arg == "" {
				return usage(fmt.Errorf("%s: is empty; want %s", names[i], c.UseLine()))
			}
		}
		return nil
	}
}

// mayBeEmpty are flags whose empty text says something: a new document, no system message, the server's first model.
var mayBeEmpty = []string{"prompt", "sample-prompt", "system", "served-model"}

// filled rejects an empty value of a text flag: the value of a shell variable that is not set would select the default
// without a word, such as training from scratch where --from was meant.
func filled(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		} else if f.Value.Type() != "string" {
			return
		}
		if err == nil && slices.Contains(values, "") && !slices.Contains(mayBeEmpty, f.Name) {
			err = usage(fmt.Errorf("--%s: is empty; give a value, or leave the flag out", f.Name))
		}
	})
	return err
}

// oneText wants at most one argument, which is a text: words without quotes are several.
func oneText(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usage(fmt.Errorf("%s: is %d arguments, want one; quote it: %s %q", name, len(args), c.CommandPath(),
				strings.Join(args, " ")))
		}
		return nil
	}
}

// atLeastOne refuses a call without arguments.
func atLeastOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(fmt.Errorf("%s: missing; want %s", what, c.UseLine()))
		}
		if slices.Contains(args, "") {
			return usage(fmt.Errorf("%s: is empty; want %s", what, c.UseLine()))
		}
		return nil
	}
}
