package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// files are the contents of all files below a folder whose names end so.
func (f *flagRig) files(dir, ending string) (list []string) {
	f.Helper()
	err := filepath.WalkDir(filepath.Join(f.dir, dir), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ending) {
			b, rerr := os.ReadFile(path)
			list, err = append(list, string(b)), rerr
		}
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	return list
}

var ofGenerate = map[string]assertion{
	"generate --seed":               byTest("TestGenerateFlags"),
	"generate --max-tokens":         byTest("TestGenerateFlags"),
	"generate --num-samples":        byTest("TestGenerateFlags"),
	"generate --temperature":        byTest("TestGenerateFlags"),
	"generate --top-k":              byTest("TestGenerateFlags"),
	"generate --top-p":              byTest("TestGenerateFlags"),
	"generate --min-p":              byTest("TestGenerateFlags"),
	"generate --repetition-penalty": byTest("TestGenerateFlags"),
	"generate --stop":               byTest("testStop"),
	"generate --prompt":             byTest("TestPromptFlags"),
	"generate --prompt-file":        byTest("TestPromptFlags"),
	"generate --echo":               byTest("TestPromptFlags"),
	"generate --logprobs":           byTest("TestPromptFlags"),
	"generate --json":               byTest("TestPromptFlags"),
	"generate --model": func(f *flagRig) {
		of := func(model string) string {
			return f.ok("generate", "--model", model, "-n", "8", "--temperature", "0", "-q", "--json", "a")
		}
		if of("run") == of("pair:diff") {
			f.Error("two models write the same")
		}
	},
	"generate --ignore-eos": func(f *flagRig) { // hot enough to end a text early, sooner or later
		ended := false
		for seed := range 40 {
			args := []string{"generate", "-m", "run", "-n", "100", "--temperature", "50", "--seed",
				string(rune('0' + seed%10)), "--json", "-q", strings.Repeat("a", seed/10+1)}
			var s, all sample
			if json.Unmarshal([]byte(f.ok(args...)), &s) != nil ||
				json.Unmarshal([]byte(f.ok(append(args, "--ignore-eos")...)), &all) != nil {
				f.Fatal("not JSON")
			}
			if all.Reason != "length" {
				f.Fatalf("with --ignore-eos the text ended by %q", all.Reason)
			}
			if ended = s.Reason != "length"; ended {
				break
			}
		}
		if !ended {
			f.Error("no text ended by itself, so the flag was not tried")
		}
	},
}

// exported writes run as a folder of this name with these arguments, and gives its configuration.
func (f *flagRig) exported(name string, args ...string) string {
	f.Helper()
	f.ok(append([]string{"export", "run", name, "-q"}, args...)...)
	return f.read(name + "/config.json")
}

var ofFolders = map[string]assertion{
	"export --dtype": func(f *flagRig) {
		f.has(f.exported("e1", "--dtype", "bfloat16"),
			`"(torch_)?dtype": "bfloat16"`)
	},
	"export --class": func(f *flagRig) {
		f.has(f.exported("e2", "--class", "antiphase"), `AntiphaseForCausalLM`)
		f.has(f.exported("e3"), `DiffLlamaForCausalLM`)
	},
	"export --chat-template": func(f *flagRig) {
		f.exported("e4", "--chat-template", "t.jinja")
		if f.read("e4/chat_template.jinja") != f.read("t.jinja") {
			f.Error("the folder has another template")
		}
	},
	"export --max-shard-size": func(f *flagRig) {
		f.exported("e5", "--max-shard-size", "20KB")
		if !f.exists("e5/model.safetensors.index.json") || f.exists("e5/model.safetensors") {
			f.Error("weights are not spread over files")
		}
	},
	"export --force": func(f *flagRig) {
		f.exported("e6")
		f.has(f.fails("export", "run", "e6", "-q"), `--force`)
		f.has(f.exported("e6", "--force", "--dtype", "float16"), `float16`)
	},
	"export --json": func(f *flagRig) {
		if out := f.ok("export", "run", "e7", "--json", "-q"); !json.Valid([]byte(out)) ||
			!strings.Contains(out, "e7") {
			f.Errorf("printed %q", out)
		}
	},
	"import --json": func(f *flagRig) {
		f.exported("e8")
		var r struct {
			Arch       string
			Parameters int
		}
		if err := json.Unmarshal([]byte(f.ok("import", "e8", "imported", "--json", "-q")), &r); err != nil ||
			r.Arch != "diff" || r.Parameters == 0 {
			f.Errorf("%+v, %v", r, err)
		}
	},
	"show --json": func(f *flagRig) { f.has(f.ok("show", "run", "--json"), `"step": 20`) },
	"show --tensors": func(f *flagRig) {
		f.has(f.ok("show", "run", "--tensors"), `layers\.1\.attn\.qkv\.weight`)
		f.lacks(f.ok("show", "run"), `qkv`)
	},
	"recipes --json":    byScript("listings"),
	"recipes --keys":    byScript("listings"),
	"doctor --json":     byScript("listings"),
	"version --json":    byScript("help"),
	"logits --ids":      func(f *flagRig) { f.has(f.ok("logits", "-m", "run", "--ids", "1,2,3", "--json"), `^[\[{]`) },
	"logits --json":     byScript("folders"),
	"logits --ids-file": byScript("train"),
	"logits --out":      byScript("force"),
	"logits --model": func(f *flagRig) {
		if f.ok("logits", "--ids", "1", "--json", "-m", "run") == f.ok("logits", "--ids", "1", "--json", "-m",
			"pair:diff") {
			f.Error("two models have the same logits")
		}
	},
	"validate --json": func(f *flagRig) {
		if !json.Valid([]byte(f.ok("validate", "run", "--json"))) {
			f.Error("not JSON")
		}
	},
	"tokenize --model":     byScript("folders"),
	"tokenize --decode":    byScript("folders"),
	"tokenize --json":      byScript("folders"),
	"tokenize --tokenizer": byScript("folders"),
	"attend --json":        byScript("attend"),
	"attend --max-cells":   byScript("attend"),
	"attend --model":       byScript("attend"),
	"attend --out":         byScript("attend"),
	"attend --prompt":      byScript("attend"),
	"attend --prompt-file": byScript("attend"),
	"data show --json":     byScript("data"),
	"data show --out":      byScript("data"),
	"data show --row":      byScript("data"),
	"data show --split":    byScript("data"),
	"data show --step":     byScript("data"),
	"data show --steps":    byScript("data"),
	"data build --json":    byScript("data"),
	"data build --out":     byScript("data"),
	"data build --tokenizer": func(f *flagRig) {
		f.has(f.ok("data", "build", "text.txt", "--tokenizer", "bytes", "--out", "set1", "--json", "-q"),
			`"vocab": 2[0-9]{2}`)
	},
	"data build --max-tokens": func(f *flagRig) {
		var r struct{ Splits json.RawMessage }
		out := f.ok("data", "build", "text.txt", "--tokenizer", "bytes", "--out", "set2", "--max-tokens", "500",
			"--json", "-q")
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			f.Fatal(err)
		}
		all := f.ok("data", "build", "text.txt", "--tokenizer", "bytes", "--out", "set3", "--json", "-q")
		if len(out) == 0 || out == all {
			f.Error("a limit changes nothing")
		}
	},
	"tokenizer train --out":   byScript("data"),
	"tokenizer train --vocab": byScript("data"),
}
