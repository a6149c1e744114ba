package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/internal/flock"
)

// A run replaces no file of the user that has a run's name, and goes over what an earlier attempt left.
func TestForeignFiles(t *testing.T) {
	r := nano(t, "diff", "train.steps=1")
	trained := nano(t, "diff", "train.steps=1", "tokenizer.path=", "tokenizer.vocab=260")
	for _, c := range []struct {
		name    string
		files   map[string]string
		trained bool // the run trains a tokenizer
		refused string
	}{
		{"partial recipe", map[string]string{"recipe.json": `{"train": {"steps": 9}}`}, false, "recipe.json"},
		{"not a recipe", map[string]string{"recipe.json": `{"mine": 1}`}, false, "recipe.json"},
		{"rows of another program", map[string]string{"metrics.jsonl": "{\"mine\": 1}\n"}, false, "metrics.jsonl"},
		{"tokenizer of the user", map[string]string{"tokenizer.json": "{}"}, true, "tokenizer.json"},
		{"tokenizer that the run does not write", map[string]string{"tokenizer.json": "{}"}, false, ""},
		{"this recipe", map[string]string{"recipe.json": string(r.JSON())}, false, ""},
		{"stopped before its first checkpoint",
			map[string]string{"recipe.json": string(trained.JSON()), "metrics.jsonl": ""}, false, ""},
		{"begun by an older version", map[string]string{"recipe.json": `{"train": {"steps": 9}}`, flock.Name: ""},
			false, ""},
		{"notes", map[string]string{"log.txt": "mine"}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			use := r
			if c.trained {
				use = trained
			}
			for range 2 { // the refusal itself must not make the folder a run's
				_, err := Run(context.Background(), use, options(t, dir))
				if c.refused == "" && err != nil {
					t.Fatal(err)
				}
				if c.refused == "" {
					continue
				}
				if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), filepath.Join(dir, c.refused)) {
					t.Fatalf("error %v, want one about %s", err, c.refused)
				}
				if b, _ := os.ReadFile(filepath.Join(dir, c.refused)); string(b) != c.files[c.refused] {
					t.Errorf("%s is %q now", c.refused, b)
				}
			}
		})
	}
}
