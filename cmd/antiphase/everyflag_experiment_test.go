package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"antiphase/bench"
	"antiphase/experiment"
)

// compared runs the smallest experiment there is and gives its rows, which must be finished.
func (f *flagRig) compared(dir string, args ...string) []experiment.Row {
	f.Helper()
	f.ok(append([]string{"compare", "--size", "nano", "--arch", "diff", "--seeds", "1", "--steps", "2",
		"--device", "cpu", "-q", "--dir", dir}, args...)...)
	rows, err := experiment.ReadRows(strings.NewReader(f.read(dir + "/rows.jsonl")))
	if err != nil || len(rows) == 0 {
		f.Fatalf("%d rows, %v", len(rows), err)
	}
	return rows
}

// asked are the arguments of an experiment with one short task.
var asked = []string{"--task", "outliers tokens=600", "--probe", "none"}

// about lists what the rows say that does not depend on the machine.
func about(rows []experiment.Row) (s string) {
	for _, r := range rows {
		if !r.Timing {
			s += fmt.Sprintln(r.Experiment, r.Measure, r.Value, len(r.Curve), r.Parameters)
		}
	}
	return s
}

// experiments: the rows have the pattern with the flag and lack it without.
func experiments(pattern string, args ...string) assertion {
	return func(f *flagRig) {
		dir := strings.ReplaceAll(f.name, " ", "")
		f.has(about(f.compared(dir+"-with", append(asked, args...)...)), pattern)
		f.lacks(about(f.compared(dir+"-without", asked...)), pattern)
	}
}

// changes: the rows are others with the flag.
func changes(args ...string) assertion {
	return func(f *flagRig) {
		dir := strings.ReplaceAll(f.name, " ", "")
		if about(f.compared(dir+"-with", append(asked, args...)...)) == about(f.compared(dir+"-without",
			append(asked, "--name", dir+"-with")...)) {
			f.Errorf("%q changes nothing", args)
		}
	}
}

var ofExperiment = map[string]assertion{
	"compare --dir":  func(f *flagRig) { f.compared("cmpdir", asked...) },
	"compare --name": experiments(`(?m)^hedgehog `, "--name", "hedgehog"),
	"compare --task": func(f *flagRig) {
		text := about(f.compared("cmptask", asked...))
		f.has(text, `outliers`)
		f.lacks(text, `needle`)
	},
	"compare --probe": func(f *flagRig) {
		probed := func(dir, probe string) string {
			return about(f.compared(dir, "--task", "outliers tokens=600", "--name", "x", "--probe", probe))
		}
		if probed("probed", "outliers tokens=600") == probed("unprobed", "none") {
			f.Error("nothing was asked while training")
		}
	},
	"compare --probe-every": func(f *flagRig) {
		every := func(n string) string {
			return about(f.compared("every"+n, "--task", "outliers tokens=600", "--probe", "outliers tokens=600",
				"--steps", "4", "--probe-every", n, "--name", "x"))
		}
		if every("1") == every("4") {
			f.Error("the number of probes does not follow the flag")
		}
		f.has(f.fails("compare", "--size", "nano", "--probe", "none", "--probe-every", "2", "--dry-run"),
			`has no effect with`)
		f.has(f.fails("compare", "--size", "nano", "--steps", "4", "--probe", "outliers tokens=600", "--probe-every",
			"5", "--dry-run"),
			`--probe-every: is 5, but runs of size nano have 4 steps`)
	},
	"compare --tune-by": func(f *flagRig) {
		chosen := func(dir, by string) string {
			rows := f.compared(dir, append(asked, "--lr", "1e-3,4e-1", "--tune-by", by)...)
			return fmt.Sprint(rows[0].Tuned)
		}
		f.has(chosen("tuneoutliers", "outliers"), `^outliers.logits_max or loss$`)
		f.has(chosen("tuneloss", "loss"), `^$`)
		f.has(f.fails("compare", "--size", "nano", "--lr", "1e-3,2e-3", "--tune-by", "nothing", "--dry-run"),
			`--tune-by: "nothing" is none`)
		f.has(f.fails("compare", "--size", "nano", "--tune-by", "lm", "--dry-run"),
			`has no effect with one learning rate`)
	},
	"compare --set":  changes("--set", "optim.weight_decay=0.9"),
	"compare --data": changes("--data", "synthetic:docs=70"),
	"compare --tokenizer": func(f *flagRig) {
		f.ok("tokenizer", "train", "text.txt", "--vocab", "258", "-o", "small.json", "-q")
		changes("--tokenizer", "small.json")(f)
	},
	"compare --eval-seed": func(f *flagRig) {
		draw := func(n string) string {
			return about(f.compared("draw"+n, "--set", "model.context=512", "--set", "train.seq_len=512", "--task",
				"attention samples=2 needles=1", "--probe", "none", "--name", "x", "--eval-seed", n))
		}
		if draw("3") == draw("4") {
			f.Error("the questions do not follow the flag")
		}
	},
	"compare --have": func(f *flagRig) {
		f.compared("had", append(asked, "--name", "x")...)
		f.compared("has", append(asked, "--name", "x", "--have", "had/rows.jsonl")...)
		if f.exists("has/runs/nano-diff-lr0.001-s1/checkpoints") {
			f.Error("a finished run was trained again")
		}
		f.both(exitBadInput, "compare", "--size", "nano", "--have", "nothing", "--dry-run")
	},
	"compare --inexact": notShown("hands train.Options.Inexact on, which train's tests and train --inexact show"),

	"bench serve --url": loaded1(func(*flagRig, *serveBench) {}),
	"bench serve --requests": loaded1(func(f *flagRig,
		s *serveBench) {
		f.same(s.Requests, 3)
		f.same(len(s.bodies), 3)
	}),
	"bench serve --rate": func(f *flagRig) {
		f.has(f.fails("bench", "serve", "--rate", "-1"),
			`--rate: is -1`)
	},
	"bench serve --served-model": loaded1(func(f *flagRig, s *serveBench) { f.has(s.bodies[0], `"model":"heron"`) }),
	"bench serve --prompt": loaded1(func(f *flagRig,
		s *serveBench) {
		f.same(strings.Count(s.prompt(f), ","), 6)
	}),
	"bench serve --output": loaded1(func(f *flagRig, s *serveBench) { f.has(s.bodies[0], `"max_tokens":5\b`) }),
	"bench serve --vocab":  loaded1(func(f *flagRig, s *serveBench) { f.lacks(s.prompt(f), `[2-9]|\d\d`) }),
	"bench serve --ignore-eos": loaded1(func(f *flagRig, s *serveBench) { f.lacks(s.bodies[0], `ignore_eos`) },
		"--ignore-eos=false"),
	"bench serve --deadline": loaded1(func(f *flagRig, s *serveBench) { f.same(s.Deadline, 7.0) }),
	"bench serve --seed": func(f *flagRig) {
		a, b, again := f.load("--seed", "1"), f.load("--seed", "2"), f.load("--seed", "1")
		if a.prompt(f) == b.prompt(f) || a.prompt(f) != again.prompt(f) {
			f.Error("the prompts do not follow the seed")
		}
	},
}

// same checks a value against the one that is wanted.
func (f *flagRig) same(got, want any) {
	f.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		f.Errorf("%v, want %v", got, want)
	}
}

// serveBench is a load's result, and the requests that the server saw.
type serveBench struct {
	bench.ServeResult
	bodies []string
}

// prompt is the first request's, as JSON.
func (s *serveBench) prompt(f *flagRig) string {
	f.Helper()
	var body struct{ Prompt json.RawMessage }
	if err := json.Unmarshal([]byte(s.bodies[0]), &body); err != nil {
		f.Fatal(err)
	}
	return string(body.Prompt)
}

func loaded1(check func(*flagRig, *serveBench), args ...string) assertion {
	return func(f *flagRig) { check(f, f.load(args...)) }
}

// load sends three requests to a server that answers with one token each.
func (f *flagRig) load(args ...string) *serveBench {
	f.Helper()
	s := &serveBench{}
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is missing shows in the body
		mu.Lock()
		s.bodies = append(s.bodies, string(body))
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	out := f.ok(append([]string{"bench", "serve", "--url", server.URL, "--requests", "3", "--rate", "0",
		"--served-model", "heron", "--prompt", "7", "--output", "5", "--vocab", "2", "--deadline", "7s", "--json",
		"-q"}, args...)...)
	if err := json.Unmarshal([]byte(out), &s.ServeResult); err != nil {
		f.Fatalf("%v in %s", err, out)
	}
	slices.Sort(s.bodies) // they came at once
	return s
}
