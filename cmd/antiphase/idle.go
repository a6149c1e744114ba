package main

import (
	"fmt"

	"github.com/spf13/pflag"
)

// idle refuses flags that were given and would change nothing: a setting is applied or refused. why says when they would.
func idle(given *pflag.FlagSet, why string, names ...string) error {
	for _, name := range names {
		if given.Changed(name) {
			return usage(fmt.Errorf("--%s: has no effect %s", name, why))
		}
	}
	return nil
}

// jobFlagNames are those of jobFlags that only several ranks need.
var jobFlagNames = []string{"rendezvous", "interface", "local-rank", "join-timeout", "peer-timeout", "stall-timeout"}

// alone refuses them for one rank.
func (f *jobFlags) alone(given *pflag.FlagSet) error {
	return idle(given, "with one rank: start several (mpirun, srun, or --rank and --world-size), or leave it out", jobFlagNames...)
}
