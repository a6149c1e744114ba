package train

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/checkpoint"
	"antiphase/data"
	"antiphase/tokenizer"
)

// rowsCase is a change of a run's folder, and what OpenRows says of it.
type rowsCase struct {
	change func(dir string) error
	set    string
	split  string
	kind   error
	want   string
}

// rowsCases are runs with one or two things missing, damaged or exchanged; other is a set of another run.
func rowsCases(other string) map[string]rowsCase {
	state := filepath.Join("checkpoints", "step-00000001", "state.json")
	write := func(dir, name, text string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644) }
	remove := func(dir string, names ...string) (err error) {
		for _, name := range names {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, name)))
		}
		return err
	}
	return map[string]rowsCase{
		"as it is": {func(string) error { return nil }, "", data.Train, nil, ""},
		"no checkpoint": {func(dir string) error { return remove(dir, "checkpoints") }, "",
			data.Train, nil, ""},
		"no recipe": {func(dir string) error { return remove(dir, "recipe.json") }, "",
			data.Train, nil, ""},
		"a damaged checkpoint": {func(dir string) error { return write(dir, state, "{}") }, "",
			data.Train, nil, ""},
		"that, and no recipe": {func(dir string) error {
			return errors.Join(write(dir, state, "{}"), remove(dir, "recipe.json"))
		}, "", data.Train, checkpoint.ErrDamaged, "state.json"},
		"neither": {func(dir string) error { return remove(dir, "recipe.json", "checkpoints") }, "",
			data.Train, fs.ErrNotExist, "recipe.json"},
		"a damaged recipe": {func(dir string) error {
			return errors.Join(write(dir, "recipe.json", "{"), remove(dir, "checkpoints"))
		}, "", data.Train, nil, "recipe.json"},
		"no set": {func(dir string) error { return remove(dir, "data") }, "", data.Train,
			fs.ErrNotExist, "is not a token set"},
		"another set": {func(string) error { return nil }, other, data.Train, nil,
			"not the token set of this run: its hash is "},
		"another set, not begun": {func(dir string) error { return remove(dir, "checkpoints") }, other,
			data.Train, nil, ""},
		"nothing held out":          {func(string) error { return nil }, "", data.Valid, nil, `split "valid"`},
		"a split that no set knows": {func(string) error { return nil }, "", "test", nil, `split "test"`},
	}
}

// What OpenRows needs: a recipe or a whole checkpoint, the set of the run, and the split.
func TestOpenRowsRefuses(t *testing.T) {
	r := nano(t, "diff", "train.steps=1", "train.save_every=0", "data.held_out=0")
	whole := t.TempDir()
	mustRun(t, r, options(t, whole))
	other := filepath.Join(t.TempDir(), "set")
	if err := MakeSet(t.Context(), nano(t, "diff", "data.sources=synthetic:docs=30,seed=4"), other, tokenizer.Bytes(),
		&Options{}); err != nil {
		t.Fatal(err)
	}
	for name, c := range rowsCases(other) {
		dir := filepath.Join(t.TempDir(), "run")
		if err := errors.Join(os.CopyFS(dir, os.DirFS(whole)), c.change(dir)); err != nil {
			t.Fatal(err)
		}
		rows, err := OpenRows(dir, c.set, c.split, func(string) {})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || c.kind != nil &&
			!errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %q and %v", name, err, c.want, c.kind)
		}
		if err == nil {
			if err := errors.Join(rows.At(1), rows.Close()); err != nil || rows.Steps() != 1 {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Sources that share text are told of when a set is built from them, once for each group.
func TestSharedSourcesAreSaid(t *testing.T) {
	for sources, want := range map[string]int{
		`["synthetic:docs=6", "synthetic:docs=9"]`: 1, `["synthetic:docs=6", "synthetic:docs=9,seed=2"]`: 0,
	} {
		var said []string
		opt := &Options{Say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
		if err := MakeSet(t.Context(), nano(t, "diff", "data.sources="+sources), filepath.Join(t.TempDir(), "set"),
			tokenizer.Bytes(), opt); err != nil {
			t.Fatal(err)
		}
		said = slices.DeleteFunc(said, func(s string) bool { return !strings.HasPrefix(s, "warning: sources ") })
		if len(said) != want {
			t.Errorf("%s: said %q", sources, said)
		}
	}
}
