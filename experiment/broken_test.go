package experiment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/tokenizer"
)

// After a source that breaks midway the folder binds nobody: the same call continues once the file is mended, and so
// does one with other sources. From the token set on, text and tokenizer stay as they are.
func TestSourceBreaksMidway(t *testing.T) {
	in := t.TempDir()
	good := filepath.Join(in, "good.jsonl")
	bad := filepath.Join(in, "bad.jsonl")
	text := ""
	for i := range 600 {
		text += fmt.Sprintf("{\"text\": %q}\n", strings.Repeat(fmt.Sprint("words of text ", i, " "), 40))
	}
	if err := errors.Join(os.WriteFile(good, []byte(text), 0o644),
		os.WriteFile(bad, []byte(text+"{\"text\": broken\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	of := func(path string) *Spec {
		s := nanoSpec(4)
		s.Archs, s.LRs, s.Seeds, s.TuneSeeds, s.Probes, s.Data = s.Archs[:1], nil, s.Seeds[:1], 0, nil, []string{path}
		return s
	}
	for what, next := range map[string]string{"other sources": good, "the mended file": bad} {
		opt := options(t.TempDir(), oneThread(t))
		if _, err := Work(t.Context(), of(bad), opt); err == nil || !strings.Contains(err.Error(), "line 601") {
			t.Fatalf("%s: %v", what, err)
		}
		if data.IsSet(setOf(opt.Dir)) {
			t.Fatalf("%s: there is a token set", what)
		}
		trained := filepath.Join(opt.Dir, tokenizerName) // by the first call
		if err := tokenizer.Bytes().Save(trained); err != nil {
			t.Fatal(err)
		}
		if next == bad {
			if err := os.WriteFile(bad, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		rows, err := Work(t.Context(), of(next), opt)
		if err != nil || len(rows) == 0 {
			t.Fatalf("%s: %d rows, %v", what, len(rows), err)
		}
		if _, err := os.Stat(trained); (err == nil) != (next == bad) {
			t.Errorf("%s: the first call's tokenizer: %v", what, err)
		}
		if err := os.WriteFile(bad, []byte(text+"{\"text\": broken\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(opt.Dir, "runs")); err != nil {
			t.Fatal(err)
		}
		if err := admit(opt.Dir, of("another.jsonl")); !errors.Is(err, ErrOther) {
			t.Errorf("%s: other sources beside a token set: %v", what, err)
		}
	}
}
