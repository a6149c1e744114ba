package train

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"antiphase/internal/vfs"
)

// tokenizerChanges are changes of a run, and whether its tokenizer must be trained again.
var tokenizerChanges = map[string]struct {
	set   string // a change of the recipe; %s is the folder
	edit  string // new text of the first file
	again bool
}{
	"nothing":          {again: false},
	"steps":            {set: "train.steps=7"},
	"seed":             {set: "train.seed=5"},
	"held out":         {set: "data.held_out=0.3"},
	"vocabulary":       {set: "tokenizer.vocab=262", again: true},
	"documents":        {set: "tokenizer.docs=1", again: true},
	"pattern":          {set: "tokenizer.pattern=gpt2", again: true},
	"another source":   {set: "data.sources=%s/b.txt", again: true},
	"one more source":  {set: `data.sources=["%s/a.txt","%s/b.txt"]`, again: true},
	"an edited source": {edit: "bcbcbc bc bc\n", again: true},
}

// A run's tokenizer is trained again when any of its inputs changed, each by itself, and used again when none did or
// only what it does not depend on.
func TestTokenizerFollowsItsInputs(t *testing.T) {
	for name, c := range tokenizerChanges {
		dir := t.TempDir()
		at := time.Unix(1e9, 0)
		write := func(file, text string) {
			path := filepath.Join(dir, file)
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			at = at.Add(time.Millisecond)
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		write("a.txt", "ababab ab ab\n") // as long as its edit
		write("b.txt", "xyxyxy xy xy xy\n")
		set := []string{"tokenizer.path=", "tokenizer.vocab=260", "model.vocab=320", "data.sources=" + dir + "/a.txt"}
		opt := Options{Dir: dir, fs: vfs.OS{}}
		if _, err := prepareTokenizer(context.Background(), nano(t, "diff", set...), &opt); err != nil {
			t.Fatal(err)
		}
		if c.set != "" {
			set = append(set, strings.ReplaceAll(c.set, "%s", dir))
		}
		if c.edit != "" {
			write("a.txt", c.edit)
		}
		trained := false
		opt.Progress = func(stage string, _, _ int64) { trained = trained || stage == "tokenizer" }
		r := nano(t, "diff", set...)
		got, err := prepareTokenizer(context.Background(), r, &opt)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, err := MakeTokenizer(context.Background(), r, &Options{})
		if err != nil {
			t.Fatal(err)
		}
		if trained != c.again || got.Hash() != want.Hash() {
			t.Errorf("%s: trained again %v, want %v; the right one %v", name, trained, c.again,
				got.Hash() == want.Hash())
		}
		trained = false
		if again, err := prepareTokenizer(context.Background(), r, &opt); err != nil || trained ||
			again.Hash() != want.Hash() {
			t.Errorf("%s: the same again trains: %v, %v", name, trained, err)
		}
	}
}
