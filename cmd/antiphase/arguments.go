package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
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
		return nil
	}
}

// oneText wants at most one argument, which is a text: words without quotes are several.
func oneText(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usage(fmt.Errorf("%s: is %d arguments, want one; quote it: %s %q", name, len(args), c.CommandPath(), strings.Join(args, " ")))
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
		return nil
	}
}
