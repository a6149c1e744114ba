package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// computeFlags are the global flags that control computation.
var computeFlags = []string{"device", "threads", "precision", "kv-cache"}

// computing are the verbs that open a device.
var computing = []string{"speedrun", "train", "generate", "chat", "logits", "show", "bench", "doctor",
	"eval", "ablation", "serve", "attend", "compare"}

// listing are their subcommands that do not.
var listing = []string{"ls", "presets"}

// opensDevice reports whether a command takes computeFlags: a verb that computes, or one of its subcommands except
// those that only list.
func opensDevice(c *cobra.Command) bool {
	path := strings.Fields(c.CommandPath())
	return len(path) > 1 && slices.Contains(computing, path[1]) && !slices.Contains(listing, c.Name())
}

// refuseComputeFlags shadows the global flags of a command that does not compute: they are hidden, and rejected rather
// than ignored.
func refuseComputeFlags(c *cobra.Command) {
	for _, name := range computeFlags {
		c.Flags().Var(notComputing{c, name}, name, "")
		c.Flags().Lookup(name).Hidden = true
	}
}

// notComputing is a flag of computeFlags on a command that does not compute, and the error of giving it.
type notComputing struct {
	c    *cobra.Command
	flag string
}

func (n notComputing) Error() string {
	return fmt.Sprintf("--%s: %s does not compute; leave it out (it is for %s)", n.flag, n.c.CommandPath(),
		strings.Join(computing, ", "))
}

// Set rejects the flag; String and Type make it a flag.
func (n notComputing) Set(string) error { return n }
func (n notComputing) String() string   { return "" }
func (n notComputing) Type() string     { return "refused" }
