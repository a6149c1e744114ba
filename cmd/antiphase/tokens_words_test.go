package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/internal/safetensors"
	"antiphase/recipe"
	"antiphase/tokenizer"
)

// What of a tokenizer is left out is noted; the template of an export is the given one.
func TestNotesOfTokenizer(t *testing.T) {
	nanoRun(t)
	for _, args := range [][]string{{"export", "run", "hf", "-q"},
		{"train", "--size", "nano", "--steps", "0", "-q", "--device", "cpu"}} {
		if code, _, errs := ran(t, args...); code != 0 {
			t.Fatal(errs)
		}
	}
	if _, err := os.Stat("runs/nano-diff/checkpoints"); err != nil {
		t.Errorf("a run without a folder is not in runs: %v", err)
	}
	if err := os.WriteFile("chat.jinja", []byte("<{{ messages[0].content }}>"), 0o666); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := ran(t, "export", "hf", "hf2", "-q", "--chat-template", "chat.jinja"); code != 0 {
		t.Fatal(errs)
	}
	if b, err := os.ReadFile("hf2/chat_template.jinja"); string(b) != "<{{ messages[0].content }}>" {
		t.Errorf("the template is %q, %v", b, err)
	}
	b, err := os.ReadFile("hf2/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	fields["padding"] = map[string]any{"strategy": "BatchLongest"}
	if b, err = json.Marshal(fields); err == nil {
		err = os.WriteFile("hf2/tokenizer.json", b, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	if code, _, errs := ran(t, "tokenize", "-m", "hf2", "a b"); code != 0 ||
		!strings.Contains(errs, "note: padding is ignored: ids are not padded\n") {
		t.Errorf("exit %d, %s", code, errs)
	}
	if _, out, _ := ran(t, "validate", "hf2"); !strings.Contains(out,
		"260 ids; padding is ignored: ids are not padded") {
		t.Errorf("%s", out)
	}
}

// A model without a tokenizer works on ids: every verb that needs text names the folder and what it lacks, and writes
// nothing.
func TestModelsWithoutTokenizer(t *testing.T) {
	nanoRun(t)
	if code, _, errs := ran(t, "export", "run", "hf", "-q"); code != 0 {
		t.Fatal(errs)
	}
	if err := os.Remove("hf/tokenizer.json"); err != nil {
		t.Fatal(err)
	}
	const lacks = "hf has no tokenizer.json"
	for want, args := range map[string][]string{
		lacks + `, so text cannot be made; "antiphase logits" works on ids`: {"generate", "-m", "hf", "-p", "a",
			"--device", "cpu"},
		lacks + ", so text cannot be made": {"serve", "-m", "hf", "--listen",
			"127.0.0.1:0", "--device", "cpu"},
		lacks + ", so text cannot be read": {"attend", "-m", "hf", "-o", "new.html",
			"--device", "cpu", "-p", "a b"},
		lacks + ", so it cannot be evaluated": {"eval", "-m", "hf", "--tasks", "lm",
			"--output", "new", "--device", "cpu"},
		lacks + ", and training needs one": {"train", "--from", "hf", "--dir", "new",
			"--device", "cpu"},
		lacks + ", and a run needs one":          {"import", "hf", "new"},
		lacks + ", and a packed model needs one": {"pack", "hf", "-o", "new"},
		lacks:                                    {"tokenize", "-m", "hf", "a"},
	} {
		code, _, errs := ran(t, args...)
		if code != exitBadInput || !strings.HasSuffix(errs, want+"\n") {
			t.Errorf("%q: exit %d, %q, want %q", args, code, errs, want)
		}
		if left, _ := filepath.Glob("new*"); len(left) > 0 {
			t.Errorf("%q left %q", args, left)
		}
	}
	if code, _, errs := ran(t, "logits", "-m", "hf", "--ids", "1,2", "--out", "l.safetensors", "--device",
		"cpu"); code != 0 {
		t.Errorf("ids: exit %d, %s", code, errs)
	}
}

// A forecast counts the tokens of a tokenizer that is named; of one that will be trained it has an estimate.
func TestEstimatedRows(t *testing.T) {
	t.Chdir(t.TempDir())
	text := strings.Repeat("abcd ", 4000)
	if err := os.WriteFile("a.txt", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Train(t.Context(), func(yield func(string) bool) { yield(text) },
		tokenizer.TrainOptions{Vocab: 262, Specials: []string{"<|endoftext|>"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := tok.Save("tok.json"); err != nil {
		t.Fatal(err)
	}
	whole := float64(len(tok.EncodeOrdinary(nil, text)))
	if whole > 10000 {
		t.Fatalf("%g tokens of %d bytes", whole, len(text))
	}
	for path, want := range map[string]float64{"bytes": 20000, "tok.json": whole,
		"": 20000 / (0.37*math.Log2(512) - 1.3)} {
		r, err := recipe.Nano("diff")
		if err != nil {
			t.Fatal(err)
		}
		r.Tokenizer, r.Data = recipe.Tokenizer{Path: path, Vocab: 512},
			recipe.Data{Sources: recipe.Paths("a.txt"), HeldOut: 0.25}
		list, err := (&app{err: new(bytes.Buffer)}).estimateRows(t.Context(), r)
		if err != nil || len(list) != 1 || !list[0].About || list[0].Share != 1 ||
			!(math.Abs(float64(list[0].Tokens)/(0.75*want)-1) <= 0.01) {
			t.Errorf("%q: %+v, %v, want %g", path, list, err, 0.75*want)
		}
	}
	r, err := recipe.Nano("diff")
	if err != nil {
		t.Fatal(err)
	}
	r.Tokenizer.Path, r.Data.Sources = "none.json", recipe.Paths("a.txt")
	if _, err := (&app{}).estimateRows(t.Context(), r); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a tokenizer that is not there: %v", err)
	}
}

// Logits are the same numbers in every form: the file, JSON, and the five largest of each position as text.
func TestLogitsInEveryForm(t *testing.T) {
	nanoRun(t)
	forms := func(more ...string) string {
		t.Helper()
		code, out, errs := ran(t, append([]string{"logits", "-m", "run", "--ids", "7,40,9", "--device", "cpu"},
			more...)...)
		if code != 0 || strings.HasSuffix(errs, "wrote l.safetensors\n") != slices.Contains(more, "--out") {
			t.Fatalf("%q: exit %d, %s", more, code, errs)
		}
		return out
	}
	var got struct {
		IDs    []int64
		Vocab  int
		Logits [][]float32
	}
	if err := json.Unmarshal([]byte(forms("--json")), &got); err != nil || !slices.Equal(got.IDs, []int64{7, 40, 9}) ||
		got.Vocab != 260 || len(got.Logits) != 3 {
		t.Fatalf("%v, %v", got.IDs, err)
	}
	forms("--out", "l.safetensors")
	f, err := safetensors.Open("l.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ids, err1 := f.Int64s("input_ids")
	values, err2 := f.Float32s("logits")
	if err := errors.Join(err1, err2); err != nil || !slices.Equal(ids, got.IDs) ||
		!slices.Equal(values, slices.Concat(got.Logits...)) {
		t.Errorf("the file has the ids %v, or other numbers (%v)", ids, err)
	}
	want := ""
	for i, row := range got.Logits {
		order := make([]int, len(row))
		for k := range order {
			order[k] = k
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(row[b], row[a]) })
		want += fmt.Sprintf("%4d  id %-6d →", i, got.IDs[i])
		for _, k := range order[:5] {
			want += fmt.Sprintf("  %d %q %.4f", k, tokenizer.Bytes().Token(int32(k)), row[k])
		}
		want += "\n"
	}
	if text := forms(); text != want {
		t.Errorf("%s, want %s", text, want)
	}
}
