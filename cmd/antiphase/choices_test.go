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
)

// Every combination of the flags that choose a device: which are refused, in what words, and what the CPU is opened with.
func TestChosenDevice(t *testing.T) {
	for _, x := range []struct {
		device, precision, cache string
		threads                  int
		says                     string
	}{
		{"cpu", "auto", "auto", 0, ""}, {"cpu", "fp32", "auto", 1, ""}, {"cpu", "bf16", "auto", maxThreads, ""}, {"cpu", "int8", "auto", 3, ""},
		{"cpu", "auto", "auto", -1, "--threads: is -1, must be from 0 (all cores) to 4096"}, {"cpu", "auto", "auto", maxThreads + 1, "--threads: is 4097"},
		{"cpu", "fp8", "auto", 1, "--precision: "}, {"cpu", "auto", "int4", 1, "--kv-cache: \"int4\" is unknown; there are auto and int8"},
		{"cpu", "auto", "int8", 1, "--kv-cache: int8 needs --device cuda"}, {"cuda", "fp32", "auto", 1, "--precision: fp32 is not what --device cuda computes in"},
		{"cuda:3", "int8", "auto", 1, "--precision: int8 is not what --device cuda:3 computes in"}, {"cuda:-1", "auto", "auto", 1, "--device: \"cuda:-1\" is not a device"},
		{"cuda:x", "auto", "auto", 1, "--device: \"cuda:x\" is not a device"}, {"cuda:", "auto", "auto", 1, "is not a device"}, {"cpu:0", "auto", "auto", 1, "is not a device"}, {"auto:1", "auto", "auto", 1, "is not a device"},
		{"gpu", "auto", "auto", 1, "--device: \"gpu\" is unknown; there are auto, cpu, cuda and cuda:N"}, {"auto", "fp32", "auto", 2, ""}, {"auto", "int8", "auto", 2, ""},
	} {
		a := &app{device: x.device, precision: x.precision, kvCache: x.cache, threads: x.threads}
		d, err := openNamed(a)
		if (err == nil) != (x.says == "") || err != nil && (!strings.Contains(err.Error(), x.says) || exitCode(err) != exitUsage) {
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

// Folders that complete a model's name: runs and Hugging Face folders, here, below runs and one deeper, and nothing else.
func TestRunFolders(t *testing.T) {
	t.Chdir(t.TempDir())
	var want []string
	for _, base := range []string{".", "runs", "runs/more", "runs/more/deep"} {
		for name, file := range map[string]string{"run": "checkpoints/x", "recipe": "recipe.json", "hf": "config.json", "other": "notes.txt"} {
			path := filepath.Join(base, name, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("{}"), 0o644)); err != nil {
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
		{"a/b", "a/b", "a/b", false}, {"a/b", "a/b", "a", false}, {"a/b", "a/b", "a/b/c", true}, {"a/b", "a/b", "a/d", true}, {"a/b", "a/b", "a/new", true}, {"a/b/c", "a/d", "a/d", false},
		{"a/b/c", "a/d", "a/b", false}, {"a/b", "a/b", "a/d/../b", false}, {"a/b/c", "org/name", "a/b", false}, {"a/b/c", "org/name", "a/d", true},
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
		{nil, ""}, {[]eval.Target{remote, remote}, ""}, {[]eval.Target{ours("a", "", "h1", small), remote}, ""}, {[]eval.Target{remote, ours("a", "", "h1", small), ours("b", "", "h2", big)}, ""},
		{[]eval.Target{ours("a", "g", "h1", small), ours("b", "g", "h2", small), ours("c", "k", "h3", big)}, ""},
		{[]eval.Target{ours("a", "", "h1", small), ours("c", "", "h3", big), ours("b", "", "h1", small)}, "a and b are the same model; name it once"},
		{[]eval.Target{ours("a", "g", "h1", small), ours("b", "k", "h1", small)}, "a and b are the same model"},
		{[]eval.Target{ours("a", "g", "h1", small), ours("b", "g", "h2", small), ours("c", "g", "h3", big)}, "the group g has models of different shape: a is"},
	} {
		if err := alike(x.list); (err == nil) != (x.says == "") || err != nil && (!strings.Contains(err.Error(), x.says) || exitCode(err) != exitUsage) {
			t.Errorf("%s: %v", x.says, err)
		}
	}
}
