package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/checkpoint"
)

// agedRun takes a stopped run of stream order back to the form that it had before there was a choice: no order in its
// recipes.
func agedRun(t *testing.T, dir string, step int64) {
	t.Helper()
	age := func(recipe []byte) []byte {
		var r map[string]any
		if err := json.Unmarshal(recipe, &r); err != nil {
			t.Fatal(err)
		}
		for _, later := range []string{"order", "held_out_by"} {
			delete(r["data"].(map[string]any), later)
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	store, err := checkpoint.Open(dir, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := store.Latest(nil)
	if err != nil || c.Step != step {
		t.Fatalf("latest is %+v, %v", c, err)
	}
	var list []checkpoint.File
	for name, b := range files(t, c.Dir) {
		if name == "state.json" {
			var state map[string]json.RawMessage
			if err := json.Unmarshal(b, &state); err != nil {
				t.Fatal(err)
			}
			state["recipe"] = age(state["recipe"])
			if b, err = json.Marshal(state); err != nil {
				t.Fatal(err)
			}
		}
		if strings.HasSuffix(name, ".safetensors") || name == "state.json" || name == "tokenizer.json" {
			list = append(list, checkpoint.File{Name: name,
				Write: func(w io.Writer) error { _, err := w.Write(b); return err }})
		}
	}
	if err := store.Save(step, list); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "recipe.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, age(b), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The folder of a run that began before rows could be taken at random continues as it began, with the command that made
// it and with its own recipe, to the bytes of an unbroken stream.
func TestOldRunsResumeAsTheyBegan(t *testing.T) {
	base := []string{"train.steps=9", "train.save_every=0", "data.sources=synthetic:docs=6,len=128"}
	stream := nano(t, "diff", append(base, "data.order=stream", "data.held_out_by=documents", "data.held_out=0.2")...)
	whole := t.TempDir()
	mustRun(t, stream, options(t, whole))
	want := files(t, filepath.Join(whole, "checkpoints", "step-00000009"))
	for _, byFile := range []bool{false, true} {
		dir := t.TempDir()
		opt := options(t, dir)
		stopAt(t, stream, opt, 4)
		agedRun(t, dir, 4)
		r := nano(t, "diff", append(base, "data.held_out=0.2")...) // random by default
		if byFile {
			if err := r.Read(filepath.Join(dir, "recipe.json")); err != nil {
				t.Fatal(err)
			}
			var err error
			if r, err = r.Complete(); err != nil {
				t.Fatal(err)
			}
		}
		var said bytes.Buffer
		opt.Say = func(f string, args ...any) { fmt.Fprintf(&said, f+"\n", args...) }
		if res := mustRun(t, r, opt); res.Resumed != 4 {
			t.Fatalf("resumed from %d", res.Resumed)
		}
		sameFiles(t, files(t, filepath.Join(dir, "checkpoints", "step-00000009")), want)
		// Its own recipe has it.
		if told := strings.Contains(said.String(), "this run began with data.order=stream"); told == byFile {
			t.Errorf("by the run's own recipe %v: said %s", byFile, said.String())
		}
	}
}

// A run of one order is not continued in the other, unless forced, and then it reports that rows begin again.
func TestChangedOrder(t *testing.T) {
	for _, set := range []string{"data.order=stream", "train.seq_len=8"} {
		dir := t.TempDir()
		opt := options(t, dir)
		r := nano(t, "diff", "train.steps=8")
		stopAt(t, r, opt, 3)
		changed := nano(t, "diff", "train.steps=8", set)
		if _, err := Run(context.Background(), changed, opt); !errors.Is(err, ErrChanged) ||
			!strings.Contains(err.Error(), set[:6]) {
			t.Fatalf("%s: %v", set, err)
		}
		var said bytes.Buffer
		forced := opt
		forced.Force, forced.Say = true, func(f string, args ...any) { fmt.Fprintf(&said, f+"\n", args...) }
		if res := mustRun(t, changed, forced); res.Resumed != 3 || !strings.Contains(said.String(), "begins again") {
			t.Errorf("%s: %+v, said %s", set, res, said.String())
		}
	}
}
