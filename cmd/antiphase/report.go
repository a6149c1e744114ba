package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"antiphase/eval"
	"antiphase/eval/report"
	"antiphase/internal/vfs"
	"antiphase/metrics"
)

// Names of the files that scaling and ablation write and report reads, besides eval's own.
const (
	scalingFile  = "scaling-%s.json" // by parameters or tokens
	ablationFile = "ablation.json"
	pageFile     = "evaluation.html"
)

func reportVerb(a *app) *cobra.Command {
	var out, files string
	c := &cobra.Command{
		Use:   "report FOLDER...",
		Short: "Write one HTML page of evaluations, scaling fits and ablations",
		Long: `Report reads the results of "antiphase eval --output", "antiphase scaling --output" and "antiphase ablation" from the
folders and writes one HTML page: tables, and figures next to the paper's, each of which can be saved as SVG and CSV.
For run folders it shows losses, gradient norms and spikes. The page needs neither network nor scripts.`,
		Example: `  antiphase report results/a-b
  antiphase report results/a-b runs/a runs/b
  antiphase report results/a-b runs/ablation --output page.html
  antiphase report results/a-b --files figures`,
		Args: atLeastOne("FOLDER"),
		RunE: func(_ *cobra.Command, dirs []string) error { return writeReport(a, dirs, out, files) },
	}
	c.Flags().StringVarP(&out, "output", "o", "", "file to write (default FOLDER/"+pageFile+")")
	c.Flags().StringVar(&files, "files", "",
		"folder for scores.csv, scores.tex (LaTeX) and every figure as SVG and CSV; "+
			"replaces only what an earlier report wrote there")
	return c
}

func writeReport(a *app, dirs []string, out, files string) error {
	var p report.Page
	found := 0
	var stores []string
	for _, dir := range dirs {
		if eval.IsStore(dir) {
			stores = append(stores, dir)
		}
		n, err := readPage(&p, dir)
		if err != nil {
			return badInput{err}
		}
		found += n
		if _, err := os.Stat(filepath.Join(dir, metrics.FileName)); err == nil {
			t, err := trainingOf(a, filepath.Base(filepath.Clean(dir)), filepath.Join(dir, metrics.FileName))
			if err != nil {
				return badInput{err}
			}
			p.Training = append(p.Training, t)
			found++
		}
	}
	n, err := readStores(a, &p, stores, found > 0)
	if err != nil {
		return err
	}
	found += n
	if found == 0 {
		return badInput{fmt.Errorf("%v: no results, %s or %s; make some with \"antiphase eval --output\", "+
			"\"antiphase scaling --output\" or \"antiphase ablation\"",
			dirs, fmt.Sprintf(scalingFile, "…"), ablationFile)}
	}
	if out == "" {
		out = filepath.Join(dirs[0], pageFile)
	}
	return publishReport(a, &p, out, files)
}

// publishReport writes the page and, into a folder if one is named, its files.
func publishReport(a *app, p *report.Page, out, files string) error {
	var b bytes.Buffer
	if err := p.HTML(&b); err != nil {
		return badInput{err}
	}
	if err := replaceablePage(out); err != nil {
		return err
	}
	var list []report.File
	if files != "" {
		var err error
		if list, err = p.Files(); err != nil {
			return err
		}
		if err := checkFiles(files, list); err != nil { // before anything is written
			return err
		}
	}
	if err := writeBytes(out, b.Bytes()); err != nil {
		return err
	}
	fmt.Fprintln(a.out, out)
	if files == "" {
		return nil
	}
	if err := writeFiles(files, list); err != nil {
		return err
	}
	a.note("%d files in %s", len(list), files)
	return nil
}

// readStores adds the stores' results and returns the number of stores. Stores without a finished result are an error
// if nothing else was found.
func readStores(a *app, p *report.Page, stores []string, others bool) (int, error) {
	if len(stores) == 0 {
		return 0, nil
	}
	store, err := eval.ReadStores(stores...)
	if err != nil {
		return 0, badInput{err}
	}
	for _, w := range store.Warnings {
		a.note("%s", w)
	}
	cells := store.Cells()
	if n := len(store.Warnings); len(cells) == 0 && n > 0 && !others {
		return 0, badInput{fmt.Errorf("no finished results: %s (%d damaged rows in all)", store.Warnings[0], n)}
	}
	if len(cells) == 0 && !others {
		return 0, badInput{fmt.Errorf(
			"%s: no finished results; \"antiphase eval --output\" with the same arguments completes what was begun",
			strings.Join(stores, ", "))}
	}
	if n := store.Unfinished(); n > 0 {
		a.note("%d tasks are begun and not finished; they are left out", n)
	}
	if len(cells) > 0 {
		p.Evaluation = eval.Assemble(cells)
		p.Evaluation.Warnings = store.Warnings
	}
	return len(stores), nil
}

// readPage adds the contents of a folder and returns how much was found.
func readPage(p *report.Page, dir string) (found int, err error) {
	if _, err := os.Stat(dir); err != nil {
		return 0, err
	}
	read := func(name string, use func(b []byte) error) error {
		path := filepath.Join(dir, name)
		b, err := vfs.ReadFile(vfs.OS{}, path, maxReport)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = use(b)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		found++
		return nil
	}
	for _, by := range []string{"parameters", "tokens"} {
		err = errors.Join(err, read(fmt.Sprintf(scalingFile, by), func(b []byte) error {
			var r eval.ScalingResult
			if err := json.Unmarshal(b, &r); err != nil {
				return err
			}
			p.Scaling = append(p.Scaling, r)
			return r.Check()
		}))
	}
	return found, errors.Join(err, read(ablationFile, func(b []byte) error { return json.Unmarshal(b, &p.Ablation) }))
}
