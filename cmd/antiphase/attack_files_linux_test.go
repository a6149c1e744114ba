package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
)

// target is a file to damage and a command that reads it. The command must not change anything but the folder out.
type target struct {
	file string
	args []string
}

// victims makes a folder with a file of every kind that the program reads.
func victims(o *ordeal) []target {
	call := func(args ...string) { o.Helper(); call(o.T, o.dir, 0, append(args, "-q")...) }
	call("train", "--size", "nano", "--steps", "4", "--dir", "run", "--set", "model.context=256", "--set",
		"tokenizer.path=", "--set", "tokenizer.vocab=300", "--set", "model.vocab=320")
	call("export", "run", "hf")
	call("pack", "run", "-o", "packed.safetensors")
	call("eval", "--tasks", "copa,lm", "--limit", "4", "-m", "run", "-o", "store", "--log-samples")
	call("compare", "--size", "nano", "--arch", "diff", "--seeds", "1", "--steps", "2", "--task", "outliers tokens=600",
		"--probe", "none", "--dir", "experiment")
	texts(o)
	call("data", "build", "text.jsonl", "--tokenizer", "bytes", "-o", "set")
	list := []target{
		{"text.txt", []string{"tokenizer", "train", "text.txt", "--vocab", "280", "-o", "out/tok.json"}},
		{"image.png", []string{"data", "build", "image.png", "--tokenizer", "bytes", "-o", "out/set"}},
		{"recipe.json", []string{"train", "recipe.json", "--print-config"}},
		{"recipe.yaml", []string{"train", "recipe.yaml", "--dry-run"}},
		{"hf/tokenizer.json", []string{"tokenize", "-m", "hf", "some text to encode"}},
		{"hf/config.json", []string{"logits", "-m", "hf", "--ids", "1,2"}},
		{"hf/model.safetensors", []string{"logits", "-m", "hf", "--ids", "1,2"}},
		{"hf/antiphase.json", []string{"validate", "hf"}},
		{"packed.safetensors", []string{"generate", "-m", "packed.safetensors", "-n", "2", "x"}},
		{"run/metrics.jsonl", []string{"show", "run"}},
		{"run/metrics.jsonl", []string{"report", "run", "-o", "out/page.html"}},
		{"run/recipe.json", []string{"data", "show", "run", "--step", "2"}},
		{"set/manifest.json", []string{"train", "--size", "nano", "--data", "set", "--steps", "1", "--dir", "out/run"}},
		{"set/train-00000.bin", []string{"train", "--size", "nano", "--data", "set", "--steps", "1",
			"--dir", "out/run"}},
		{"experiment/experiment.json", []string{"compare", "--size", "nano", "--arch", "diff", "--seeds", "1",
			"--steps", "2", "--task", "outliers tokens=600", "--probe", "none", "--dir", "experiment"}},
		{"experiment/rows.jsonl", []string{"evidence", "experiment", "-o", "out/evidence.md"}},
		{"tasks/copy.yaml", []string{"eval", "--task-files", "tasks/copy.yaml", "--limit", "2", "-m", "run"}},
		{"tasks/copy.jsonl", []string{"eval", "--task-files", "tasks/copy.yaml", "--limit", "2", "-m", "run"}},
	}
	for _, ending := range []string{"txt.gz", "txt.zst", "jsonl", "jsonl.gz", "jsonl.zst", "parquet"} {
		list = append(list, target{"text." + ending,
			[]string{"data", "build", "text." + ending, "--tokenizer", "bytes", "-o", "out/set"}})
	}
	for _, name := range []string{"MANIFEST.json", "state.json", "tokenizer.json", "model.safetensors",
		"optimizer.safetensors"} {
		list = append(list, target{"run/checkpoints/step-00000004/" + name,
			[]string{"generate", "-m", "run", "-n", "2", "x"}})
	}
	stores, _ := filepath.Glob(filepath.Join(o.dir, "store", "*.jsonl"))
	for _, path := range stores {
		name, _ := filepath.Rel(o.dir, path)
		list = append(list, target{name, []string{"report", "store", "-o", "out/page.html"}})
	}
	return list
}

// texts writes the same documents in every format, two recipes, a task and an image.
func texts(o *ordeal) {
	put := func(name string, b []byte) {
		o.Helper()
		path := filepath.Join(o.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			o.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			o.Fatal(err)
		}
	}
	var plain, lines bytes.Buffer
	var rows []struct {
		Text string `parquet:"text"`
	}
	for i := range 60 {
		text := fmt.Sprintf("the heron number %d waits in the shallow water for fish and finds %d", i, i*i)
		fmt.Fprintln(&plain, text)
		fmt.Fprintf(&lines, "{\"text\": %q, \"id\": %d}\n", text, i)
		rows = append(rows, struct {
			Text string `parquet:"text"`
		}{text})
	}
	var table bytes.Buffer
	if err := parquet.Write(&table, rows); err != nil {
		o.Fatal(err)
	}
	put("text.txt", plain.Bytes())
	put("text.jsonl", lines.Bytes())
	put("text.parquet", table.Bytes())
	for name, b := range map[string][]byte{"text.txt": plain.Bytes(), "text.jsonl": lines.Bytes()} {
		put(name+".gz", gzipped(b))
		w, _ := zstd.NewWriter(nil) // no option of it can be wrong
		put(name+".zst", w.EncodeAll(b, nil))
	}
	put("image.png", slices.Concat([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"),
		bytes.Repeat([]byte{0, 0xff, 0x1b, 0x80}, 200)))
	recipe, err := os.ReadFile(filepath.Join(o.dir, "run", "recipe.json"))
	if err != nil {
		o.Fatal(err)
	}
	put("recipe.json", recipe)
	put("recipe.yaml",
		[]byte("name: mine\nmodel:\n  arch: diff\n  layers: 2\ntrain:\n  steps: 12\n  batch: 8\noptim:\n  lr: 0.001\n"))
	put("tasks/copy.yaml",
		[]byte("task: copy\ndataset_path: json\ndataset_kwargs:\n  data_files: copy.jsonl\ntest_split: train\n"+
			"output_type: multiple_choice\ndoc_to_text: \"{{question}}\"\ndoc_to_choice: [\"yes\", \"no\"]\n"+
			"doc_to_target: label\nmetric_list:\n  - metric: acc\n"))
	put("tasks/copy.jsonl", []byte(strings.Repeat("{\"question\": \"is it?\", \"label\": 1}\n", 4)))
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b) // into memory
	_ = w.Close()
	return out.Bytes()
}

// damage is one way to spoil a file.
var damages = []struct {
	name string
	make func(g *rand.Rand, b []byte) []byte
}{
	{"a flipped bit", func(g *rand.Rand, b []byte) []byte { b[g.IntN(len(b))] ^= 1 << g.IntN(8); return b }},
	{"a wild byte", func(g *rand.Rand, b []byte) []byte { b[g.IntN(len(b))] = byte(g.Uint32()); return b }},
	{"a cut end", func(g *rand.Rand, b []byte) []byte { return b[:g.IntN(len(b))] }},
	{"a cut beginning", func(g *rand.Rand, b []byte) []byte { return b[g.IntN(len(b)):] }},
	{"nothing left", func(*rand.Rand, []byte) []byte { return nil }},
	{"a lost part", func(g *rand.Rand, b []byte) []byte { i, j := span(g, len(b)); return slices.Delete(b, i, j) }},
	{"a part of zeros", func(g *rand.Rand, b []byte) []byte { i, j := span(g, len(b)); clear(b[i:j]); return b }},
	{"a part twice", func(g *rand.Rand, b []byte) []byte {
		i, j := span(g, len(b))
		return slices.Insert(b, j, slices.Clone(b[i:j])...)
	}},
	{"noise", func(g *rand.Rand, b []byte) []byte {
		for i := range b {
			b[i] = byte(g.Uint32())
		}
		return b
	}},
	{"more at the end", func(g *rand.Rand, b []byte) []byte { return append(b, "}\x00\xff trailing"...) }},
	{"a huge number", func(g *rand.Rand, b []byte) []byte { return number(g, b, "1000000000000") }},
	{"a negative number", func(g *rand.Rand, b []byte) []byte { return number(g, b, "-7") }},
	{"deep nesting", func(g *rand.Rand, b []byte) []byte {
		return slices.Insert(b, g.IntN(len(b)+1), bytes.Repeat([]byte("["), 20000)...)
	}},
}

func span(g *rand.Rand, n int) (int, int) {
	i := g.IntN(n)
	return i, min(n, i+1+g.IntN(1+n/4))
}

// number puts text in place of a run of digits.
func number(g *rand.Rand, b []byte, text string) []byte {
	at := g.IntN(len(b))
	for k := range b {
		i := (at + k) % len(b)
		j := i
		for j < len(b) && b[j] >= '0' && b[j] <= '9' {
			j++
		}
		if j > i {
			return slices.Concat(b[:i], []byte(text), b[j:])
		}
	}
	return b
}

// TestAttackFiles damages files of every kind. Whatever reads them takes what is still right, or reports which file is
// wrong.
func TestAttackFiles(t *testing.T) {
	o := newOrdeal(t)
	list := victims(o)
	o.clear()
	for _, v := range list {
		if code, said := o.try("whole "+v.file, false, append(v.args, "-q")...); code != 0 && v.file != "image.png" {
			t.Fatalf("undamaged %s: antiphase %q ends with %d: %s", v.file, v.args, code, said)
		}
		o.clear()
	}
	o.codes = map[int]int{}
	g := rand.New(rand.NewPCG(21, 21))
	n := attempts(2*len(list), 3000)
	unnamed := 0
	for i := range n {
		v, d := list[i%len(list)], damages[g.IntN(len(damages))]
		path := filepath.Join(o.dir, v.file)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, d.make(g, slices.Clone(whole)), 0o644); err != nil {
			t.Fatal(err)
		}
		what := fmt.Sprintf("%s in %s (attempt %d)", d.name, v.file, i)
		code, said := o.try(what, false, append(v.args, "-q")...)
		switch {
		case code == exitNotFinite && strings.HasSuffix(v.file, ".safetensors"): // a model without hashes
		case code == exitFailed || code == exitNotFinite:
			t.Errorf("%s: bad input ends with %d: %s", what, code, said)
		case code != 0 && !places(v.file, said):
			unnamed++
			t.Errorf("%s: the error does not say where: %s", what, said)
		}
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
		o.clear()
	}
	o.report(fmt.Sprintf("damaged files of %d kinds (%d errors without a place)", len(list), unnamed), n)
}

// places reports whether an error names the file, or the folder that it is in.
func places(file, said string) bool {
	dir := filepath.Dir(file)
	if task, ok := strings.CutPrefix(file, "tasks/"); ok &&
		strings.Contains(said, "error: "+strings.TrimSuffix(task, filepath.Ext(task))+": ") {
		return true
	}
	return strings.Contains(said, filepath.Base(file)) || dir != "." && strings.Contains(said, dir)
}

// clear deletes what a command has written.
func (o *ordeal) clear() {
	if err := os.RemoveAll(filepath.Join(o.dir, "out")); err != nil {
		o.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(o.dir, "out"), 0o755); err != nil {
		o.Fatal(err)
	}
}
