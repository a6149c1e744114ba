package main

import "github.com/spf13/cobra"

func dataVerb(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "data",
		Short: "Build a token set, or show the rows of a training step",
	}
	c.AddCommand(dataBuildVerb(a), dataShowVerb(a))
	return c
}
