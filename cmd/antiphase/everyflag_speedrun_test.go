package main

import (
	"os"
	"path/filepath"
	"strings"

	"antiphase/experiment"
)

// sprint runs a speedrun of nano models and two plans of a few steps, which asks little.
func (f *flagRig) sprint(code int, dir string, args ...string) (stdout, stderr string) {
	f.Helper()
	defer func(p []plan, size string, tasks, probes []experiment.Ask) {
		plans, speedrunSize, speedrunTasks, speedrunProbes = p, size, tasks, probes
	}(plans, speedrunSize, speedrunTasks, speedrunProbes)
	plans = []plan{{"short", 10, "a few steps"}, {"standard", 20, "some more"}}
	speedrunSize, speedrunTasks, speedrunProbes = "nano", []experiment.Ask{"lm pieces=4"}, nil
	return f.both(code, append([]string{"speedrun", "--device", "cpu", "--dir", dir}, args...)...)
}

// sprinted gives the rows of a finished short plan, without times.
func (f *flagRig) sprinted(dir string, args ...string) string {
	f.Helper()
	f.sprint(0, dir, append([]string{"--plan", "short", "-q"}, args...)...)
	rows, err := experiment.ReadRows(strings.NewReader(f.read(dir + "/rows.jsonl")))
	if err != nil || len(rows) == 0 {
		f.Fatalf("%d rows, %v", len(rows), err)
	}
	return about(rows)
}

var ofSpeedrun = map[string]assertion{
	"speedrun --dir": func(f *flagRig) {
		f.sprint(0, "sdir", "--plan", "short", "-q")
		f.has(f.read("sdir/report.html"), `Antiphase speedrun`)
	},
	"speedrun --plan": func(f *flagRig) {
		f.has(f.sprinted("splan"), `speedrun-short`)
		_, said := f.sprint(0, "splan2", "--plan", "standard")
		f.has(said, `plan standard: 20 steps`)
		f.has(f.fails("speedrun", "--plan", "shrot", "--device", "cpu", "--dir", "splan3"),
			`"shrot" is unknown; there are short, standard, long`)
	},
	"speedrun --minutes": func(f *flagRig) {
		_, said := f.sprint(0, "sminutes", "--minutes", "1000")
		f.has(said, `plan standard, the longest that fits 1000 minutes`)
		_, said = f.sprint(0, "sminutes2", "--minutes", "1e-9")
		f.has(said, `plan short, the shortest there is`)
		f.has(f.fails("speedrun", "--minutes", "0"), `--minutes: is 0`)
	},
	"speedrun --seed": func(f *flagRig) {
		one, again, two := f.sprinted("sseed", "--seed", "1"), f.sprinted("sseed1"), f.sprinted("sseed2", "--seed", "2")
		if one != again {
			f.Error("the default is not seed 1")
		}
		if one == two {
			f.Error("another seed changes nothing")
		}
	},
	"speedrun --seeds": func(f *flagRig) {
		out, _ := f.sprint(0, "sseeds", "--plan", "short", "--seeds", "2", "-q")
		f.has(out, `\d of 2 `)
		f.has(f.read("sseeds/speedrun-seeds.jsonl"), `"plan":"short"`)
		f.has(f.fails("speedrun", "--seeds", "-1"), `--seeds: is -1`)
	},
	"speedrun --jobs": func(f *flagRig) { // speed alone: the numbers do not depend on it
		if f.sprinted("sjobs1") != f.sprinted("sjobs3", "--jobs", "3", "--threads", "3") {
			f.Error("the numbers depend on --jobs")
		}
		f.has(f.fails("speedrun", "--jobs", "65"), `--jobs: is 65`)
	},
	"speedrun --json": func(f *flagRig) {
		out, _ := f.sprint(0, "sjson", "--plan", "short", "-q", "--json")
		f.has(out, `^\{`)
		out, _ = f.sprint(0, "sjson", "--plan", "short", "-q")
		f.lacks(out, `^\{`)
	},
	"speedrun --data": func(f *flagRig) {
		if f.sprinted("sdata", "--data", "text.txt") == f.sprinted("sdata2") {
			f.Error("own text changes nothing")
		}
		f.has(f.read("sdata/experiment.json"), `text.txt@0.5`)
	},
	"speedrun --fresh": func(f *flagRig) {
		f.sprint(0, "sfresh", "--plan", "short", "-q")
		_, said := f.sprint(exitUsage, "sfresh", "--plan", "standard", "-q")
		f.has(said, `sfresh`)
		f.sprint(0, "sfresh", "--plan", "standard", "-q", "--fresh")
		f.has(f.read("sfresh/experiment.json"), `speedrun-standard`)
		if err := os.Rename(filepath.Join(f.dir, "sfresh", "experiment.json"),
			filepath.Join(f.dir, "sfresh", "mine.json")); err != nil {
			f.Fatal(err)
		}
		_, said = f.sprint(exitUsage, "sfresh", "--fresh", "-q")
		f.has(said, `--fresh: sfresh holds`)
	},
	"speedrun --inexact": notShown("hands train.Options.Inexact on, which train's tests and train --inexact show"),
}
