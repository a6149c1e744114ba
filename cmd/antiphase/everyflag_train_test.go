package main

import (
	"encoding/json"
	"regexp"
	"strings"
)

// config is the resolved recipe that train would take with these arguments.
func (f *flagRig) config(args ...string) string {
	f.Helper()
	return f.ok(append([]string{"train", "--size", "nano", "--print-config"}, args...)...)
}

var ofAll = map[string]assertion{
	"--threads": byTest("TestThreadsFlag"),
	"--device": func(f *flagRig) {
		f.has(f.fails("doctor", "--device", "tpu"), `tpu`)
		f.ok("doctor", "--device", "cpu")
	},
	"--precision": func(f *flagRig) {
		f.has(f.ok("train", "--size", "nano", "--dry-run", "--precision", "fp32", "--device", "cpu"), `fp32`)
	},
	"--kv-cache": func(f *flagRig) { // what int8 does needs a GPU: device/cuda's TestBytes
		f.has(f.fails("generate", "--model", "run", "-p", "the", "--device", "cpu", "--kv-cache", "int8"),
			`int8 needs --device cuda`)
		f.has(f.fails("generate", "--model", "run", "-p", "the", "--device", "cpu", "--kv-cache", "fp8"),
			`there are auto and int8`)
		f.ok("generate", "--model", "run", "-p", "the", "-n", "1", "--device", "cpu", "--kv-cache", "auto")
	},
	"--quiet": func(f *flagRig) {
		_, loud := f.both(0, "train", "--size", "nano", "--steps", "1", "--dir", "loud")
		_, still := f.both(0, "train", "--size", "nano", "--steps", "1", "--dir", "still", "--quiet")
		f.has(loud, `step 1/1`)
		if still != "" {
			f.Errorf("--quiet said %q", still)
		}
		_, warned := f.both(0, "train", "--size", "nano", "--steps", "1", "--dir", "warned", "--quiet", "--set",
			"optim.lr=0.01", "--from", "run")
		f.has(warned, `^warning: optim.lr=0.01 is a rate for training from scratch`)
	},
	"--color": func(f *flagRig) {
		f.has(f.fails("doctor", "--color", "pink"), `there are auto, always and never`)
		always := f.ok("eval", "-m", "run", "-t", "lm", "--limit", "2", "--color", "always", "-q")
		never := f.ok("eval", "-m", "run", "-t", "lm", "--limit", "2", "--color", "never", "-q")
		f.has(always, "\x1b\\[")
		f.lacks(never, "\x1b\\[")
	},
}

var ofTrain = map[string]assertion{
	"train --arch":  func(f *flagRig) { f.has(f.config("--arch", "diff2"), `"arch": "diff2"`) },
	"train --size":  func(f *flagRig) { f.has(f.ok("train", "--size", "tiny", "--print-config"), `"dim": 128`) },
	"train --steps": func(f *flagRig) { f.has(f.config("--steps", "7"), `"steps": 7`) },
	"train --set":   func(f *flagRig) { f.has(f.config("--set", "optim.lr=0.25"), `"lr": 0.25`) },
	"train --tokenizer": func(f *flagRig) {
		f.ok("export", "run", "tok", "-q")
		f.has(f.config("--tokenizer", "tok/tokenizer.json"), `"path": ".*tok/tokenizer.json"`)
	},
	"train --data": func(f *flagRig) {
		f.ok("train", "--size", "nano", "--data", "text.txt", "--dir", "herons", "--steps", "1", "-q")
		f.has(f.ok("data", "show", "herons", "--step", "1"), `heron waits`)
		f.lacks(f.ok("data", "show", "run", "--step", "1"), `heron`)
	},
	"train --sample-every":  byScript("train"),
	"train --sample-prompt": byScript("train"),
	"train --sample-tokens": func(f *flagRig) {
		const long = `"text":".{9,}"\}`
		for length, check := range map[string]func(text, pattern string){"1": f.lacks, "60": f.has} {
			f.ok("train", "--size", "nano", "--dir", "said"+length, "--steps", "3", "--sample-every", "1",
				"--sample-tokens", length, "-q")
			check(f.read("said"+length+"/samples.jsonl"), long)
		}
	},
	"train --dir": func(f *flagRig) {
		f.ok("train", "--size", "nano", "--dir", "place", "--steps", "1", "-q")
		if !f.exists("place/recipe.json") || f.exists("runs") {
			f.Error("the run is not in the folder that --dir names")
		}
	},
	"train --dry-run": func(f *flagRig) {
		f.has(f.ok("train", "--size", "nano", "--dir", "dry", "--dry-run"), `parameters`)
		if f.exists("dry") {
			f.Error("a dry run made a folder")
		}
	},
	"train --print-config": func(f *flagRig) {
		if !json.Valid([]byte(f.config("--dir", "printed"))) || f.exists("printed") {
			f.Error("it prints something else, or trains")
		}
	},
	"train --json": func(f *flagRig) {
		var r struct{ Steps int }
		if err := json.Unmarshal([]byte(f.ok("train", "--size", "nano", "--dir", "js", "--steps", "2", "-q", "--json")),
			&r); err != nil || r.Steps != 2 {
			f.Errorf("%+v, %v", r, err)
		}
	},
	"train --from": func(f *flagRig) {
		f.ok("train", "--size", "nano", "--from", "run", "--dir", "on", "--steps", "1", "-q")
		f.has(f.ok("show", "on"), `parent +run`)
	},
	"train --force":   byTest("TestForceFlag"),
	"train --inexact": byScript("train"),

	"train --rank": func(f *flagRig) {
		f.has(f.refused("train", "--size", "nano", "--dir", "r1", "--rank", "5", "--world-size", "2"), `rank 5 of 2`)
	},
	"train --world-size": func(f *flagRig) {
		args := []string{"train", "--size", "nano", "--dir", "r2", "--steps", "1", "-q", "--rank", "0", "--device",
			"cpu", "--world-size"}
		f.has(f.refused(append(args, "2")...), `ranks on a CPU talk through MPI`)
		f.ok(append(args, "1")...)
	},
	"train --rendezvous": notShown(
		"ranks on a CPU need an MPI launcher; launch-info has the same flag and shows it (script launch)"),
	"train --join-timeout": notShown(
		"ranks on a CPU need an MPI launcher; launch-info has the same flag and shows it (script launch)"),
	"train --launcher": func(f *flagRig) {
		f.Setenv("RANK", "1")
		f.Setenv("WORLD_SIZE", "2")
		f.has(f.refused("train", "--size", "nano", "--dir", "launched", "--steps", "1", "-q"),
			`rank|RANK|ANTIPHASE_SECRET`)
		f.ok("train", "--size", "nano", "--dir", "launched", "--steps", "1", "-q", "--launcher", "none")
	},
	"train --local-rank": notShown("picks the GPU, and a test has none"),
	"train --parallel": func(f *flagRig) {
		f.has(f.refused("train", "--size", "nano", "--dir", "pp", "--steps", "1", "--parallel", "dp=2"), `dp|parallel`)
	},
	"train --bandwidth": func(f *flagRig) {
		forecast := func(gb string) string {
			return f.ok("train", "--size", "nano", "--dry-run", "--parallel", "dp=2", "--bandwidth", gb,
				"--device", "cpu")
		}
		if slow, fast := forecast("0.001"), forecast("100"); comms(slow) == comms(fast) {
			f.Errorf("a thousandth of a GB/s and 100 GB/s give the same forecast: %q", slow)
		}
	},
	"train --interface": notShown(
		"what rank 0 listens on is seen by a second machine alone; launch-info shows the address (script launch)"),
	"train --peer-timeout": notShown(
		"takes a rank that is stopped but not dead: TestRanksTerminate and its neighbours run with 2s where an " +
			"MPI launcher is installed, and dist holds the time-out"),
	"train --stall-timeout": notShown(
		"takes a rank that hangs in a collective; dist holds the time-out, this verb hands it on"),
}

// comms is what a forecast says of the time that ranks spend sending.
func comms(text string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "GB/s") {
			return regexp.MustCompile(`[\d.]+ GB/s`).ReplaceAllString(line, "")
		}
	}
	return ""
}

// refused is what a command said that must fail, with whatever code.
func (f *flagRig) refused(args ...string) string {
	f.Helper()
	var out, errw strings.Builder
	if run(args, strings.NewReader(""), &out, &errw) == 0 {
		f.Fatalf("antiphase %s succeeded", strings.Join(args, " "))
	}
	return errw.String()
}
