package main

import (
	"encoding/json"
	"reflect"
	"strings"
)

// results are those that eval prints as JSON for two samples of a task.
func (f *flagRig) results(args ...string) map[string]any {
	f.Helper()
	var r map[string]any
	out := f.ok(append([]string{"eval", "-m", "run", "--json", "-q"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		f.Fatalf("%v in %s", err, out)
	}
	return r
}

var ofEval = map[string]assertion{
	"eval --json": func(f *flagRig) {
		if r := f.results("-t", "lm", "--limit", "2"); r["results"] == nil {
			f.Errorf("no results: %v", r)
		}
	},
	"eval --batch": func(f *flagRig) { // speed alone: the numbers do not depend on it
		one, four := f.results("-t", "lm", "--limit", "4", "--batch", "1"),
			f.results("-t", "lm", "--limit", "4", "--batch", "4")
		if !reflect.DeepEqual(one["results"], four["results"]) {
			f.Error("numbers depend on --batch")
		}
		f.has(f.fails("eval", "-m", "run", "-t", "lm", "--batch", "0"), `batch`)
	},
	"eval --tasks": func(f *flagRig) {
		f.has(f.ok("eval", "-m", "run", "-t", "outliers", "--limit", "2", "-q"), `outliers`)
		f.has(f.fails("eval", "-m", "run", "--tasks", "outlier"), `task "outlier" is unknown`)
	},
	"eval --model": func(f *flagRig) {
		f.has(f.ok("eval", "--model", "base=run", "-t", "lm", "--limit", "2", "-q"), `base`)
		f.has(f.fails("eval", "-t", "lm"), `--model: missing`)
	},
	"eval --set": func(f *flagRig) {
		f.has(f.fails("eval", "-m", "run", "-t", "lm", "--set", "lm.peaces=3"), `lm.peaces`)
		two, three := f.results("-t", "lm", "--set", "lm.pieces=2"), f.results("-t", "lm", "--set", "lm.pieces=3")
		if reflect.DeepEqual(two["results"], three["results"]) {
			f.Error("another number of pieces changes nothing")
		}
	},
	"eval --output": func(f *flagRig) {
		f.ok("eval", "-m", "run", "-t", "lm", "--limit", "2", "-q", "--output", "store")
		f.has(f.read("store/run/results.json"), `standin_lm`)
	},
	"eval --log-samples": func(f *flagRig) {
		f.has(f.fails("eval", "-m", "run", "-t", "lm", "--log-samples"), `needs --output`)
		f.ok("eval", "-m", "run", "-t", "arc_easy", "--limit", "2", "-q", "--output", "logged", "--log-samples")
		f.has(strings.Join(f.files("logged", ".jsonl"), "\n"), `"context":"`)
		f.ok("eval", "-m", "run", "-t", "arc_easy", "--limit", "2", "-q", "--output", "terse")
		f.lacks(strings.Join(f.files("terse", ".jsonl"), "\n"), `"context":"`)
	},
	"eval --limit":               byTest("TestEvalFlags"),
	"eval --seed":                byTest("TestEvalFlags"),
	"eval --apply-chat-template": byScript("eval"),
	"eval --data":                byScript("eval"),
	"eval --num-fewshot":         byScript("eval"),
	"eval --task-files":          byScript("eval"),
	"eval --checkpoints":         byScript("preset"),
	"eval --preset":              byScript("preset"),
	"eval --scale":               byScript("preset"),
	"eval ls --json":             byScript("eval"),
	"eval ls --task-files":       byScript("eval"),
	"eval presets --json": func(f *flagRig) {
		if !json.Valid([]byte(f.ok("eval", "presets", "--json"))) {
			f.Error("not JSON")
		}
	},
	"eval --save": func(f *flagRig) {
		f.ok("eval", "-m", "run", "-t", "lm", "--limit", "2", "-q", "--save")
		f.has(strings.Join(f.files("results", ".jsonl"), "\n"), `"task":"standin_lm"`)
	},
	"eval --replicate": func(f *flagRig) {
		for _, name := range []string{"one", "two"} {
			f.ok("eval", "-m", "run", "-t", "lm", "--limit", "2", "-q", "--output", "again", "--replicate", name)
		}
		all := strings.Join(f.files("again", ".json"), "\n") + strings.Join(f.files("again", ".jsonl"), "\n")
		f.has(all, `one`)
		f.has(all, `two`)
	},
}
