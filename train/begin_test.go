package train

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/recipe"
)

// Input that a new run cannot use is refused before anything is made, by any rank; a run that has a checkpoint does not
// need it.
func TestNothingIsMadeOfBadInput(t *testing.T) {
	in := t.TempDir()
	at := func(name string) string { return filepath.Join(in, name) }
	if err := os.MkdirAll(at("folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"empty.txt": "", "x.zip": "x", "bad.parquet": "PAR1", "bad.json": "{",
		"good.txt": strings.Repeat("some words of text. ", 2000), "set/manifest.json": "{"} {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(in, "new", "run")
	opt := options(t, dir)
	for _, x := range []struct{ source, tokenizer, want string }{
		{"none.txt", "bytes", "none.txt"}, {"empty.txt", "bytes", "empty.txt"}, {"x.zip", "bytes", "x.zip"},
		{"bad.parquet", "bytes", "bad.parquet"}, {"folder", "bytes", "holds no file"}, {"no*.txt", "bytes", "no*.txt"},
		{"set", "bytes", "manifest.json"}, {"good.txt", at("none.json"), "none.json"},
		{"good.txt", at("bad.json"), "bad.json"},
	} {
		r := nano(t, "diff")
		r.Data.Sources, r.Tokenizer.Path = []recipe.Source{{Path: at(x.source)}}, x.tokenizer
		if _, err := Run(context.Background(), r, opt); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v", x, err)
		}
		if _, err := runRanks(t, r, dir, 2, false, nil); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v, two ranks: %v", x, err)
		}
		if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%+v: a folder is made (%v)", x, err)
		}
	}
	r := nano(t, "diff", "train.steps=2")
	r.Data.Sources, r.Tokenizer.Path = []recipe.Source{{Path: at("good.txt")}}, "bytes"
	stopAt(t, r, opt, 1)
	if err := os.Remove(at("good.txt")); err != nil {
		t.Fatal(err)
	}
	mustRun(t, r, opt)
	if _, err := data.ReadManifest(filepath.Join(dir, "data")); err != nil {
		t.Error(err)
	}
}
