package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"antiphase/experiment"
	"antiphase/internal/vfs"
)

func evidenceVerb(a *app) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "evidence FOLDER",
		Short: "Render experiment rows as a document: every claim with its interval and verdict",
		Long: `Evidence reads rows (*.jsonl) written by "antiphase compare", of one or more experiments, and writes a Markdown
document: what was measured and what is missing; every claim of the paper and of DIFF V2 with figure, 95 %
interval and verdict; and each experiment with its command, scores, tuning grid and runs.`,
		Example: `  antiphase evidence results/evidence -o docs/evidence.md`,
		Args:    exactly("FOLDER"),
		RunE:    func(_ *cobra.Command, args []string) error { return writeEvidence(a, args[0], out) },
	}
	c.Flags().StringVarP(&out, "out", "o", "", "file to write (default: standard output)")
	return c
}

// maxDocument bounds the bytes of a document that may be replaced.
const maxDocument = 64 << 20

func writeEvidence(a *app, dir, out string) error {
	if _, err := os.Stat(dir); err != nil {
		return badInput{err}
	}
	var b bytes.Buffer
	if err := experiment.Evidence(dir, &b); err != nil {
		return badInput{err}
	}
	if out == "" {
		_, err := a.out.Write(b.Bytes())
		return err
	}
	if err := replaceable(out, "is not a document of evidence", func(path string) bool {
		old, err := vfs.ReadFile(vfs.OS{}, path, maxDocument)
		return err == nil && strings.HasPrefix(string(old), "# Evidence\n")
	}); err != nil {
		return err
	}
	if err := writeBytes(out, b.Bytes()); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}
