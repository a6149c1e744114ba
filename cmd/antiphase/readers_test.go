package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
)

// tree lists every file and folder below dir, files with the time of their last change.
func tree(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && !e.IsDir() {
			path += " " + info.ModTime().String()
		}
		list = append(list, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Verbs that read a run leave it as it is, with the drafts that a live run is writing.
func TestReadersChangeNothing(t *testing.T) {
	nanoRun(t)
	for _, name := range []string{"step-00000009.tmp-0123456789abcdef", "latest.tmp-0123456789abcdef"} {
		if err := os.MkdirAll(filepath.Join("run", "checkpoints", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, "run")
	for _, line := range []string{"validate run", "show run", "recipes", "generate -m run -p x -n 1",
		"logits -m run --ids 1,2 --out l.safetensors", "tokenize -m run x",
		"eval -m run --tasks lm --limit 1 --checkpoints -o store", "export run hf", "data show run --step 1",
		"attend -m run -p x -o page.html"} {
		if code, _, errs := ran(t, append(strings.Fields(line), "-q")...); code != 0 {
			t.Errorf("%s: exit %d, %s", line, code, errs)
		}
		if after := tree(t, "run"); !slices.Equal(after, before) {
			t.Errorf("%s changed\n%s\nto\n%s", line, strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
	}
	if err := os.Mkdir("none", 0o755); err != nil {
		t.Fatal(err)
	}
	code, _, errs := ran(t, "eval", "-m", "none", "--tasks", "lm", "--checkpoints", "-o", "store", "-q")
	if left := tree(t, "none"); code != exitBadInput ||
		errs != "error: --checkpoints: none: it holds no checkpoint\n" || len(left) != 1 {
		t.Errorf("exit %d, %s, %q", code, errs, left)
	}
}

// What is known of an embedded model, and what an evaluation is told of a model or an endpoint.
func TestFactsOfModels(t *testing.T) {
	s, err := openStored(context.Background(), &app{}, "pair:diff")
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if !reflect.DeepEqual(s.Manners, ownManners(s.Tokenizer)) || s.Manners.First < 0 || s.Kind != "packed" ||
		s.Dir != "pair:diff" || s.Hash == "" ||
		s.Bytes < 1<<20 || !reflect.DeepEqual(s.DTypes, map[string]int64{"I8": s.Bytes}) || s.Saved != nil ||
		s.Config.Arch != "diff" {
		t.Errorf("%+v", s)
	}
	nanoRun(t)
	if list, err := findings(context.Background(), &app{}, "run", true); err != nil ||
		!strings.HasSuffix(list[0].Detail, "step-00000002 (run)") {
		t.Errorf("%+v, %v", list, err)
	}
	a := &app{device: "cpu", precision: "fp32", kvCache: "auto", threads: 1}
	l := loadedRun(t)
	kind, precision := computes(l.Model.Device())
	got := newSubject(a, l.Model.Device(), "x", "hash", l, 7)
	want := eval.Model{Name: "x", Hash: "hash", Context: l.Model.Config.Context, Precision: precision, Device: kind,
		Threads: 1, Tokens: l.Tokens}
	sub := got.LM.(*eval.Subject)
	if !reflect.DeepEqual(got.Model, want) || l.Tokens == 0 || sub.Name != "x" || sub.Batch != 7 ||
		!slices.Equal(sub.EOS, l.EOS) || *sub.First != l.Manners.First {
		t.Errorf("%+v, %+v", got.Model, sub)
	}
	t.Setenv("OPENAI_API_KEY", "secret")
	f := &evalFlags{context: 99, parallel: 5}
	got, err = f.target(a, nil, "far", "http://localhost:8000/v1#small#chat")
	far := eval.Endpoint{URL: "http://localhost:8000/v1", Model: "small", Key: "secret", Chat: true, Parallel: 5}
	if err != nil || *got.LM.(*eval.Endpoint) != far ||
		!reflect.DeepEqual(got.Model, eval.Model{Name: "far", Hash: "http://localhost:8000/v1#small#chat", Context: 99,
			Device: "endpoint"}) {
		t.Errorf("%+v, %+v, %v", got.Model, got.LM, err)
	}
	if err := os.WriteFile(filepath.Join(l.Dir, "chat_template.jinja"), []byte(
		"{% for m in messages %}<{{ m.role }}:{{ m.content }}>{% endfor %}{% if add_generation_prompt %}!{% endif %}"),
		0o644); err != nil {
		t.Fatal(err)
	}
	asked := newSubject(a, l.Model.Device(), "x", "hash", l, 7)
	if err := converse(&asked, l); err != nil || asked.Hash != "chat hash" {
		t.Fatalf("%v, %q", err, asked.Hash)
	}
	if text, err := asked.LM.(*eval.Subject).Template("how?"); err != nil || text != "<user:how?>!" {
		t.Errorf("%q, %v", text, err)
	}
}

// Refusals that name two values name each in its place.
func TestWordsOfTwoValues(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("r.yaml", []byte("model: {arch: diff2}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"doctor --device cuda --precision int8": "--precision: int8 is not what --device cuda computes in; CUDA has " +
			"bf16, the CPU has all",
		"doctor --device cpu --kv-cache int8": "--kv-cache: int8 needs --device cuda; the CPU keeps keys and values " +
			"as it computes",
		"doctor --device cpu --threads -3": "--threads: is -3, must be from 0 (all cores) to ",
		"doctor --device gpu":              `--device: "gpu" is unknown; there are auto, cpu, cuda and cuda:N`,
		"doctor --device cpu:1":            `--device: "cpu:1" is not a device; want auto, cpu, cuda or cuda:N`,

		"speedrun --dir s --seed 18446744073709551613 --seeds 4": "--seed: 18446744073709551613 and 3 more exceed " +
			"the largest seed",
		"speedrun --dir s --seeds 1001":      "--seeds: is 1001, must be 1 to 1000",
		"train r.yaml --arch diff --dry-run": "--arch: is diff, r.yaml says diff2",

		"train --size nano --dry-run --parallel dp=2,tp=2,zero=2": "--parallel: zero=2; there are 0, and 1, which " +
			"shards the moments",

		"train --size nano --dry-run --bandwidth -2 --parallel dp=2": "--bandwidth: is -2 GB/s, must be positive",

		"train --size nano --parallel dp=2,tp=2": "--parallel: dp=2 × tp=2 is 4 ranks, but there are 1",
		"ablation --arch gda --dir x":            "--arch: ",

		"ablation --size nano --dir x --set model.heads=3 --set q=1": "base: --set: q: there is no such " +
			"key; nearest is ",
	} {
		code, out, errs := ran(t, strings.Fields(line)...)
		if code != exitUsage || out != "" || !strings.HasPrefix(errs, "error: "+want) {
			t.Errorf("%s: exit %d, %s%s, want %s", line, code, out, errs, want)
		}
	}
}
