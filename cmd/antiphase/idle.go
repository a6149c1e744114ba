package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"antiphase/dist"
)

// idle rejects given flags that would have no effect: a setting is applied or refused. why completes the message.
func idle(given *pflag.FlagSet, why string, names ...string) error {
	for _, name := range names {
		if given.Changed(name) {
			return usage(fmt.Errorf("--%s: has no effect %s", name, why))
		}
	}
	return nil
}

// jobFlagNames are the jobFlags that only several ranks need.
var jobFlagNames = []string{"rendezvous", "interface", "local-rank", "join-timeout", "peer-timeout", "stall-timeout"}

// alone rejects them for a single process. A launcher may start one rank with the command of several.
func (f *jobFlags) alone(l dist.Launch, given *pflag.FlagSet) error {
	if l.Source != "single" {
		return nil
	}
	return idle(given, "with one rank: start several (mpirun, srun, or --rank and --world-size), or leave it out",
		jobFlagNames...)
}
