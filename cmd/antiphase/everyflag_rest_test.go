package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// as is launch-info of a rank that flags describe, as JSON.
func (f *flagRig) as(args ...string) string {
	f.Helper()
	return f.ok(append([]string{"launch-info", "--json", "--rank", "1", "--world-size", "3"}, args...)...)
}

// ablated runs the ablations of the smallest size, one step each.
func (f *flagRig) ablated(dir string, args ...string) string {
	f.Helper()
	return f.ok(append([]string{"ablation", "--size", "nano", "--steps", "1", "--dir", dir, "--json", "-q", "--device",
		"cpu"}, args...)...)
}

// other: what a command prints as JSON differs with the flag.
func other(run func(f *flagRig, dir string, args ...string) string, args ...string) assertion {
	return func(f *flagRig) {
		dir := strings.Map(func(r rune) rune { return map[bool]rune{true: r, false: '-'}[r > ' '] }, f.name)
		with, without := run(f, dir+"-with", args...), run(f, dir+"-without")
		if with == without {
			f.Errorf("%q changes nothing:\n%.1000s", args, with)
		}
	}
}

var ofRest = map[string]assertion{
	"launch-info --rank":       func(f *flagRig) { f.has(f.as(), `"rank":1,`) },
	"launch-info --world-size": func(f *flagRig) { f.has(f.as(), `"world_size":3,`) },
	"launch-info --local-rank": func(f *flagRig) { f.has(f.as("--local-rank", "2"), `"local_rank":2,`) },
	"launch-info --json":       func(f *flagRig) { f.has(f.as(), `^\{"source":"flags"`) },
	"launch-info --launcher":   byScript("launch"),
	"launch-info --meet":       byScript("launch"),
	"launch-info --rendezvous": func(f *flagRig) {
		f.has(f.as("--rendezvous", "file:///nowhere/shared", "--interface", "127.0.0.1"),
			`"meets":"file:///nowhere/shared"`)
		f.has(f.as("--rendezvous", "ftp://x"), `nowhere yet: rendezvous \\"ftp://x\\"`)
		f.has(f.fails("launch-info", "--rendezvous", "tcp://127.0.0.1:1"), `--rendezvous: has no effect with one rank`)
	},
	"launch-info --interface": func(f *flagRig) {
		f.has(f.fails("launch-info", "--interface", "lo"),
			`no effect with one rank`)
	},
	"launch-info --join-timeout": func(f *flagRig) {
		f.has(f.fails("launch-info", "--rank", "0", "--world-size", "2", "--join-timeout", "1ms"),
			`--join-timeout: is 1ms`)
	},
	"launch-info --peer-timeout": func(f *flagRig) {
		f.has(f.fails("launch-info", "--rank", "0", "--world-size", "2", "--peer-timeout", "1ms"),
			`--peer-timeout: is 1ms`)
	},
	"launch-info --stall-timeout": func(f *flagRig) {
		f.has(f.fails("launch-info", "--rank", "0", "--world-size", "2", "--stall-timeout", "1ms"),
			`--stall-timeout: is 1ms`)
	},

	"ablation --arch":  func(f *flagRig) { f.has(f.ablated("ab2", "--arch", "diff2"), `"name": "v2-base-1.5h"`) },
	"ablation --size":  func(f *flagRig) { f.has(f.ablated("ab"), `"size": "nano"`) },
	"ablation --steps": func(f *flagRig) { f.has(f.ablated("ab"), `"steps": 1,`) },
	"ablation --json":  func(f *flagRig) { f.has(f.ablated("ab"), `^\{\n`) },
	"ablation --dir": func(f *flagRig) {
		f.ablated("ab")
		f.has(f.read("ab/ablation.json"), `"name": "base-wide-norm"`)
	},
	"ablation --seed": other((*flagRig).ablated, "--seed", "2"),
	"ablation --set":  other((*flagRig).ablated, "--set", "optim.lr=0.5"),
	"ablation --data": func(f *flagRig) {
		f.write("long.txt", strings.Repeat("the heron waits in the shallow water and does not move\n", 2000))
		other((*flagRig).ablated, "--data", "long.txt")(f)
	},
	"ablation --inexact": func(f *flagRig) {
		f.ablated("abx", "--precision", "fp32")
		f.fails("ablation", "--size", "nano", "--steps", "2", "--dir", "abx", "--precision", "bf16", "-q",
			"--device", "cpu")
		f.ok("ablation", "--size", "nano", "--steps", "2", "--dir", "abx", "--precision", "bf16", "-q", "--device",
			"cpu", "--inexact")
	},

	"convert --to":    byScript("folders"),
	"convert --json":  byScript("folders"),
	"convert --force": byScript("force"),
	"convert --dtype": func(f *flagRig) { f.has(f.converted("cd", "--dtype", "float16"), `"float16"`) },
	"convert --class": func(f *flagRig) {
		f.has(f.converted("cc", "--class", "antiphase"),
			`AntiphaseForCausalLM`)
	},
	"convert --max-shard-size": func(f *flagRig) { f.converted("cs", "--max-shard-size", "40KB"); f.several("cs") },
	"convert --chat-template": func(f *flagRig) {
		f.converted("ct", "--chat-template", "t.jinja")
		f.has(f.read("ct/chat_template.jinja"), `m.content`)
	},

	"pack --out": func(f *flagRig) {
		f.ok("pack", "run", "--out", "p.safetensors", "-q")
		f.ok("generate", "-m", "p.safetensors", "-n", "1", "-q", "a")
	},
	"evidence --out":        byScript("compare"),
	"report --output":       byScript("report"),
	"report --files":        byScript("report"),
	"scaling --output":      byScript("report"),
	"scaling --seed":        byScript("report"),
	"scaling --json":        byScript("report"),
	"scaling --at":          byScript("report"),
	"scaling --by":          byScript("report"),
	"tokenize --no-special": byScript("folders"),
	"validate --shallow": func(f *flagRig) {
		f.chatty()
		path := filepath.Join(f.dir, "chatty", "model.safetensors")
		whole := []byte(f.read("chatty/model.safetensors"))
		bad := append([]byte{}, whole...)
		copy(bad[len(bad)-4:], "\x00\x00\xc0\x7f") // the last weight is not a number
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			f.Fatal(err)
		}
		deep, _ := f.both(exitBadInput, "validate", "chatty")
		f.has(deep, `(?m)^bad `)
		f.lacks(f.ok("validate", "chatty", "--shallow"), `(?m)^bad `)
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			f.Fatal(err)
		}
	},
	"tokenizer train --docs": func(f *flagRig) {
		f.write("docs.jsonl", strings.Repeat(`{"text":"aaaa aaaa"}`+"\n",
			4)+strings.Repeat(`{"text":"bbbb bbbb"}`+"\n", 400))
		for _, n := range []string{"4", "404"} {
			f.ok("tokenizer", "train", "docs.jsonl", "--vocab", "264", "--docs", n, "-o", "t"+n+".json", "-q")
		}
		f.lacks(f.read("t4.json"), `"bb"`)
		f.has(f.read("t404.json"), `"bb"`)
	},
	"tokenizer train --pattern": func(f *flagRig) {
		for _, p := range []string{"gpt2", "llama3"} {
			f.ok("tokenizer", "train", "text.txt", "--vocab", "270", "--pattern", p, "-o", p+".json", "-q")
		}
		if f.read("gpt2.json") == f.read("llama3.json") {
			f.Error("the pattern changes nothing")
		}
	},
	"data build --held-out": func(f *flagRig) {
		f.held("h0", "$", "--held-out", "0")
		f.held("h5", "[1-9]",
			"--held-out", "0.5")
	},
	"data build --held-out-by": func(f *flagRig) {
		f.has(f.held("hd", "", "--held-out", "0.5", "--held-out-by", "documents"), `"held_out_by": "documents"`)
	},
	"data show --data": func(f *flagRig) {
		f.ok("train", "--size", "nano", "--steps", "1", "--dir", "shown", "-q", "--device", "cpu")
		want := f.ok("data", "show", "shown", "--step", "1")
		if err := os.Rename(filepath.Join(f.dir, "shown", "data"), filepath.Join(f.dir, "moved")); err != nil {
			f.Fatal(err)
		}
		if got := f.ok("data", "show", "shown", "--step", "1", "--data", "moved"); got != want {
			f.Errorf("from elsewhere %q, want %q", got, want)
		}
	},
}

// converted makes a Hugging Face folder of run and gives its configuration.
func (f *flagRig) converted(dir string, args ...string) string {
	f.Helper()
	f.ok(append([]string{"convert", "run", dir, "-q"}, args...)...)
	return f.read(dir + "/config.json")
}

// several: the folder's weights lie in several files.
func (f *flagRig) several(dir string) {
	f.Helper()
	if n := len(f.files(dir, ".safetensors")); n < 2 {
		f.Errorf("%d files of weights", n)
	}
}

// held builds a token set and holds the tokens held out to a pattern; it gives the manifest.
func (f *flagRig) held(dir, pattern string, args ...string) string {
	f.Helper()
	f.ok(append([]string{"data", "build", "text.txt", "--tokenizer", "bytes", "-o", dir, "-q"}, args...)...)
	text := f.read(dir + "/manifest.json")
	var m struct {
		Sources []struct {
			HeldOut json.Number `json:"held_out"`
		} `json:"sources"`
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil || len(m.Sources) != 1 {
		f.Fatalf("%d sources, %v", len(m.Sources), err)
	}
	f.has(m.Sources[0].HeldOut.String(), "^"+pattern)
	return text
}
