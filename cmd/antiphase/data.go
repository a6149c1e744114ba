package main

import "github.com/spf13/cobra"

func dataVerb(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "data",
		Short: "Build a token set; look at the rows that a step of a run saw",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(dataBuildVerb(a), dataShowVerb(a))
	return c
}
