package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is what the Go toolchain recorded about this program.
type build struct {
	Version  string `json:"version"` // of the module, where it was installed as one
	Commit   string `json:"commit"`  // empty if the build did not see the repository: go run, or an archive
	Date     string `json:"date"`    // of the commit
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Cgo      bool   `json:"cgo"`
}

func built() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "CGO_ENABLED":
			b.Cgo = s.Value == "1"
		}
	}
	return b
}

// short is the commit, or the module's version if the commit is unknown.
func (b build) short() string {
	s := b.Version
	if len(b.Commit) >= 12 {
		s = b.Commit[:12]
	}
	if b.Modified {
		s += "+dirty"
	}
	return s
}

// String formats one line for display.
func (b build) String() string {
	s := b.short()
	if b.Date != "" {
		s += " of " + b.Date
	} else if b.Commit == "" {
		s += " (built without its repository: no commit is known)"
	}
	return fmt.Sprintf("%s, %s, %s", s, b.Go, b.Platform)
}

// version identifies the program in results and exports.
func version() string { return built().short() }

func versionVerb(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the commit and date of this build",
		Example: "  antiphase version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := built()
			if asJSON {
				return a.json(b)
			}
			_, err := fmt.Fprintf(a.out, "antiphase %s\n", b)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
