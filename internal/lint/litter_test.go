package lint

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"testing"
)

// left are the names of what runs, experiments and token sets write.
var left = []string{"LOCK", "*.bin", "rows*.jsonl", "metrics.jsonl", "time.json", "experiment.json", "recipe.json"}

// litter are the files that look like what a command or a test left behind.
func litter(files []string) (out []string) {
	for _, f := range files {
		if slices.ContainsFunc(left, func(pattern string) bool {
			ok, err := path.Match(pattern, path.Base(f))
			return ok || err != nil
		}) {
			out = append(out, f)
		}
	}
	return out
}

// No package has files of a run: a test that wrote into its folder left them.
func TestNoLitter(t *testing.T) {
	root := filepath.Join("..", "..")
	var files []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		switch {
		case !d.IsDir():
			files = append(files, filepath.ToSlash(rel))
		case p != root && (rel == "runs" || enter(p, d.Name()) != nil):
			return fs.SkipDir
		}
		return nil
	})
	if err != nil || len(files) < 500 {
		t.Fatalf("%d files (%v)", len(files), err)
	}
	report(t, litter(files))
}

func TestLitterCanFail(t *testing.T) {
	bad := []string{"data/LOCK", "data/train-00000.bin", "experiment/runs/a/rows.jsonl",
		"experiment/runs/a/eval/rows-2.jsonl", "experiment/time.json"}
	good := []string{"data/lock.go", "results/evidence/pair.jsonl", "web/package.json"}
	if got := litter(slices.Concat(good, bad)); !slices.Equal(got, bad) {
		t.Errorf("%q", got)
	}
}
