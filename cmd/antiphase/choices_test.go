package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/device/cpu"
	"antiphase/eval"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/recipe"
)

// Every combination of the flags that choose a device: which are refused, in what words, and what the CPU is opened
// with.
func TestChosenDevice(t *testing.T) {
	for _, x := range []struct {
		device, precision, cache string
		threads                  int
		says                     string
	}{
		{"cpu", "auto", "auto", 0, ""}, {"cpu", "fp32", "auto", 1, ""}, {"cpu", "bf16", "auto", maxThreads, ""},
		{"cpu", "int8", "auto", 3, ""},
		{"cpu", "auto", "auto", -1, "--threads: is -1, must be from 0 (all cores) to 4096"},
		{"cpu", "auto", "auto", maxThreads + 1, "--threads: is 4097"},
		{"cpu", "fp8", "auto", 1, "--precision: "},
		{"cpu", "auto", "int4", 1, "--kv-cache: \"int4\" is unknown; there are auto and int8"},
		{"cpu", "auto", "int8", 1, "--kv-cache: int8 needs --device cuda"},
		{"cuda", "fp32", "auto", 1, "--precision: fp32 is not what --device cuda computes in"},
		{"cuda:3", "int8", "auto", 1, "--precision: int8 is not what --device cuda:3 computes in"},
		{"cuda:-1", "auto", "auto", 1, "--device: \"cuda:-1\" is not a device"},
		{"cuda:x", "auto", "auto", 1, "--device: \"cuda:x\" is not a device"},
		{"cuda:", "auto", "auto", 1, "is not a device"}, {"cpu:0", "auto", "auto", 1, "is not a device"},
		{"auto:1", "auto", "auto", 1, "is not a device"},
		{"gpu", "auto", "auto", 1, "--device: \"gpu\" is unknown; there are auto, cpu, cuda and cuda:N"},
		{"auto", "fp32", "auto", 2, ""}, {"auto", "int8", "auto", 2, ""},
	} {
		a := &app{device: x.device, precision: x.precision, kvCache: x.cache, threads: x.threads}
		d, err := openNamed(a)
		if (err == nil) != (x.says == "") || err != nil &&
			(!strings.Contains(err.Error(), x.says) || exitCode(err) != exitUsage) {
			t.Errorf("%+v: %v", x, err)
		}
		if err != nil {
			continue
		}
		c, ok := d.(*cpu.Device)
		want, _ := cpu.ParsePrecision(x.precision)
		if !ok || x.precision != "auto" && c.Precision() != want || x.threads > 0 && workers(a) != x.threads {
			t.Errorf("%+v: %s, %v, %d threads", x, d.Name(), ok, workers(a))
		}
		d.Close()
	}
	for _, name := range []string{"cuda", "cuda:0"} { // with or without a GPU
		for _, precision := range []string{"auto", "bf16"} {
			d, err := openNamed(&app{device: name, precision: precision, kvCache: "auto"})
			if err == nil {
				d.Close()
			} else if exitCode(err) == exitUsage {
				t.Errorf("%s in %s: %v", name, precision, err)
			}
		}
	}
}

// Folders that complete a model's name: runs and Hugging Face folders, here, below runs and one deeper, and nothing
// else.
func TestRunFolders(t *testing.T) {
	t.Chdir(t.TempDir())
	var want []string
	for _, base := range []string{".", "runs", "runs/more", "runs/more/deep"} {
		for name, file := range map[string]string{"run": "checkpoints/x", "recipe": "recipe.json", "hf": "config.json",
			"other": "notes.txt"} {
			path := filepath.Join(base, name, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
				os.WriteFile(path, []byte("{}"), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(base, "config.json.txt"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if base != "runs/more/deep" {
			for _, name := range []string{"run", "hf"} {
				want = append(want, filepath.Join(base, name))
			}
		}
	}
	got := runFolders()
	for _, dir := range want {
		if !slices.Contains(got, dir) {
			t.Errorf("%s is not offered", dir)
		}
	}
	for _, dir := range got {
		if strings.Contains(dir, "other") || strings.Contains(dir, "deep") || strings.Contains(dir, ".txt") {
			t.Errorf("%s is offered", dir)
		}
	}
}

// A model may not be written over the folder that it is read from, or over one around that.
func TestApart(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.MkdirAll("a/b/c", 0o755), os.MkdirAll("a/d", 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		source, from, dir string
		good              bool
	}{
		{"a/b", "a/b", "a/b", false}, {"a/b", "a/b", "a", false}, {"a/b", "a/b", "a/b/c", true},
		{"a/b", "a/b", "a/d", true}, {"a/b", "a/b", "a/new", true}, {"a/b/c", "a/d", "a/d", false},
		{"a/b/c", "a/d", "a/b", false}, {"a/b", "a/b", "a/d/../b", false}, {"a/b/c", "org/name", "a/b", false},
		{"a/b/c", "org/name", "a/d", true},
	} {
		if err := apart(x.source, x.from, x.dir); (err == nil) != x.good || err != nil && exitCode(err) != exitUsage {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// Models of one group have one shape, and no model has two names; endpoints are compared with nothing.
func TestAlike(t *testing.T) {
	small, big := &model.Model{}, &model.Model{}
	small.Config.Layers, big.Config.Layers = 1, 2
	small.Params, big.Params = new(layer.ParamSet), new(layer.ParamSet)
	ours := func(name, group, hash string, m *model.Model) eval.Target {
		return eval.Target{Model: eval.Model{Name: name, Group: group, Hash: hash}, LM: &eval.Subject{Model: m}}
	}
	remote := eval.Target{Model: eval.Model{Name: "e", Hash: "h1"}, LM: &eval.Endpoint{}}
	for _, x := range []struct {
		list []eval.Target
		says string
	}{
		{nil, ""}, {[]eval.Target{remote, remote}, ""}, {[]eval.Target{ours("a", "", "h1", small), remote}, ""},
		{[]eval.Target{remote, ours("a", "", "h1", small), ours("b", "", "h2", big)}, ""},
		{[]eval.Target{ours("a", "g", "h1", small), ours("b", "g", "h2", small), ours("c", "k", "h3", big)}, ""},
		{[]eval.Target{ours("a", "", "h1", small), ours("c", "", "h3", big), ours("b", "", "h1", small)},
			"a and b are the same model; name it once"},
		{[]eval.Target{ours("a", "g", "h1", small), ours("b", "k", "h1", small)}, "a and b are the same model"},
		{[]eval.Target{ours("a", "g", "h1", small), ours("b", "g", "h2", small), ours("c", "g", "h3", big)},
			"the group g has models of different shape: a is"},
	} {
		if err := alike(x.list); (err == nil) != (x.says == "") || err != nil &&
			(!strings.Contains(err.Error(), x.says) || exitCode(err) != exitUsage) {
			t.Errorf("%s: %v", x.says, err)
		}
	}
}

// Ids are read from a flag or a file, in any of the usual forms, and refused by their place.
func TestReadIDs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ids")
	for text, want := range map[string][]int32{"1,2": {1, 2}, "[1, 2]": {1, 2}, "1 2\n3": {1, 2, 3},
		"1\r\n2\r\n": {1, 2}, "1\t2": {1, 2}, "-1": {-1}, "2147483647": {2147483647}, "2147483648": nil, "1,x": nil,
		"1.5": nil, "[]": nil, " ": nil} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, f := range []logitsFlags{{ids: text}, {file: file}} {
			if got, err := f.read(); !slices.Equal(got, want) || (err == nil) != (want != nil) || err != nil &&
				exitCode(err) != exitUsage {
				t.Errorf("%q: %v, %v", text, got, err)
			}
		}
	}
	if _, err := (&logitsFlags{ids: "1,2,3,x,4"}).read(); err == nil ||
		err.Error() != `ids: entry 4, "x", is not a token id` {
		t.Error(err)
	}
	for _, f := range []logitsFlags{{}, {ids: "1", file: file}} {
		if _, err := f.read(); err == nil || !strings.Contains(err.Error(), "one of them") {
			t.Error(err)
		}
	}
}

// A run that began with --from goes on by its own recipe, if it has a checkpoint and began with the same model.
func TestBegun(t *testing.T) {
	t.Chdir(t.TempDir())
	r, err := recipe.Named("nano", "diff")
	if err != nil {
		t.Fatal(err)
	}
	r.Train.From = "parent"
	folder := func(dir, checkpoint string, recipe []byte) {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, checkpoint), 0o755),
			os.WriteFile(filepath.Join(dir, "recipe.json"), recipe, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	folder("saved", "checkpoints/step-00000001", r.JSON())
	folder("unsaved", "checkpoints", r.JSON())
	folder("damaged", "checkpoints/step-00000001", []byte("{"))
	folder("runs/parent-on", "checkpoints/step-00000001", r.JSON())
	for _, x := range []struct {
		from, dir, arch string
		want            bool
	}{
		{"parent", "saved", "", true}, {"parent", "saved", "diff", true}, {"parent", "saved", "transformer", false},
		{"other", "saved", "", false}, {"parent", "unsaved", "", false},
		{"parent", "damaged", "", false}, {"parent", "nowhere", "", false}, {"parent", "", "", true},
		{"other", "", "", false},
	} {
		got, ok := (&trainFlags{from: x.from, dir: x.dir, arch: x.arch}).begun()
		if ok != x.want || ok && (got.Train.From != "parent" || got.Name != r.Name) {
			t.Errorf("%+v: %v, %s", x, ok, got.Name)
		}
	}
}

// As many samples as the limit are taken, and no more; what is refused next is the missing prompt.
func TestNumberOfSamples(t *testing.T) {
	for n, says := range map[int]string{0: "--num-samples: is 0, must be from 1 to 10000", 1: "--prompt-file",
		maxSamples: "--prompt-file", maxSamples + 1: "--num-samples: is 10001"} {
		f := generateFlags{samples: n, file: filepath.Join(t.TempDir(), "none")}
		f.Temperature, f.RepetitionPenalty = 1, 1
		if err := f.run(t.Context(), &app{}, false); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%d samples: %v, want %q", n, err, says)
		}
	}
}
