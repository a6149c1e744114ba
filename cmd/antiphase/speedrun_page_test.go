package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
	"antiphase/eval/report"
	"antiphase/experiment"
)

// spedRows are the held-out losses of a speedrun, one seed or several.
func spedRows(seeds ...uint64) (rows []experiment.Row) {
	for _, seed := range seeds {
		for i, arch := range speedrunArchs {
			r := experiment.Row{Measure: "lm.loss", Metric: "loss", Label: "loss", Better: eval.Lower,
				Value: 1.25 - 0.25*float64(i)}
			r.Experiment, r.Run, r.Size, r.Arch, r.LR, r.Seed, r.Steps = "speedrun-standard",
				fmt.Sprintf("tiny-%s-s%d", arch, seed), "tiny", arch, 1e-3, seed, 3000
			tuned := r
			tuned.Measure = "train.valid_loss" // which chooses the learning rate
			rows = append(rows, tuned, r)
		}
	}
	return rows
}

// The page of a speedrun states what repeated over seeds of this plan, on its own text alone, and commands that work.
func TestSpeedrunPage(t *testing.T) {
	for _, x := range []struct {
		what     string
		plan     plan
		data     []string
		verdicts bool
	}{{"a plan", plans[1], nil, true}, {"own text", plans[1], []string{"a.txt"}, false},
		{"another plan", plan{"standard", 3001, ""}, nil, false}} {
		f := &speedrunFlags{dir: "my runs", data: x.data}
		p, err := f.page(&app{}, x.plan, spedRows(1))
		if err != nil {
			t.Fatal(err)
		}
		e := p.Experiment
		if p.Title != "Antiphase speedrun" || (len(e.Verdicts) > 0) != x.verdicts ||
			strings.Contains(e.Lead, "not measured for this plan and this text") == x.verdicts ||
			!strings.HasPrefix(e.Rule, "Differences that held in at least 9 of 10 seeds") {
			t.Errorf("%s: %q, %d verdicts, %q", x.what, p.Title, len(e.Verdicts), e.Lead)
		}
		want := []string{"Let a model write: " + called() +
			" generate --model 'my runs/runs/tiny-diff2-s1' -p \"The magic code is\"", "Own text: " + called() +
			" speedrun --data FILE --dir runs/own",
			"Several seeds and learning rates, with intervals and verdicts on the paper's claims: " + called() +
				" compare --size tiny --seeds 3", "What the words mean: " + called() + " help glossary"}
		if !slices.Equal(e.Next, want) {
			t.Errorf("%s: %q", x.what, e.Next)
		}
	}
}

// What a speedrun prints and writes: the table, the sentence, a line for each verdict, the page and the data; with
// --json the data alone.
func TestSpeedrunPublished(t *testing.T) {
	dir := t.TempDir()
	f := &speedrunFlags{dir: dir}
	p, err := f.page(&app{}, plans[1], spedRows(1))
	if err != nil {
		t.Fatal(err)
	}
	p.Seconds, p.Experiment.Lead = 75, "It is so."
	p.Experiment.Verdicts = []report.Verdict{{Claim: "c", Figure: "f", Source: "s", Basis: "b", Verdict: "repeats"},
		{Claim: "d", Figure: "g", Source: "t", Basis: "e"}}
	var out, errs bytes.Buffer
	a := &app{out: &output{Writer: &out}, err: &errs, color: "never"}
	if err := f.publish(a, p); err != nil {
		t.Fatal(err)
	}
	if want := "\n" + p.Table(false) + "\nIt is so.\n  c: f; s, b\n  d: g; t, e\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if want := "\n" + filepath.Join(dir, "report.html") + " in 1m15s\n  " + strings.Join(p.Experiment.Next, "\n  ") +
		"\n"; errs.String() != want {
		t.Errorf("%q, want %q", errs.String(), want)
	}
	page, err1 := os.ReadFile(filepath.Join(dir, "report.html"))
	data, err2 := os.ReadFile(filepath.Join(dir, "report.json"))
	if err1 != nil || err2 != nil || !bytes.HasPrefix(page, []byte("<!doctype html>")) || !json.Valid(data) ||
		finishedSeconds(dir) != 75 {
		t.Errorf("%v, %v, %.40s, %.40s", err1, err2, page, data)
	}
	out.Reset()
	errs.Reset()
	f.json = true
	if err := f.publish(a, p); err != nil || out.String() != string(data) || errs.Len() > 0 {
		t.Errorf("%v, %.80s, %s", err, out.String(), errs.String())
	}
}

// How often each statement held over seeds, with a mark where it repeats, and every value in a file.
func TestPresentRepeats(t *testing.T) {
	f := &speedrunFlags{dir: t.TempDir()}
	rows := spedRows(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	rows[3].Value, rows[9].Value = 1.5, 1.5 // DIFF is worse than the Transformer with seeds 1 and 2
	var out, errs bytes.Buffer
	a := &app{out: &output{Writer: &out}, err: &errs}
	if err := f.presentRepeats(a, plans[1], rows); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i, want := range []string{`^   8 of 10  `, `^▸ 10 of 10  `, `^▸ 10 of 10  `} {
		if len(lines) != 3 || !regexp.MustCompile(want).MatchString(lines[i]) {
			t.Errorf("%q, want %s", lines, want)
		}
	}
	path := filepath.Join(f.dir, "speedrun-seeds.jsonl")
	if !strings.Contains(errs.String(), path) || !strings.Contains(errs.String(), "for plan standard") {
		t.Errorf("%s", errs.String())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	list, err := experiment.ReadRepeats(b, "standard", 3000)
	if err != nil || len(list) != 1 || len(list[0].Seeds) != 10 || list[0].Values["diff"][0] != 1.5 ||
		list[0].Values["diff2"][9] != 0.75 {
		t.Errorf("%+v, %v", list, err)
	}
	out.Reset()
	f.json = true
	var again []experiment.Repeat
	if err := f.presentRepeats(a, plans[1], rows); err != nil || json.Unmarshal(out.Bytes(), &again) != nil ||
		len(again) != 1 {
		t.Errorf("%v: %s", err, out.String())
	}
}

// A finished speedrun that is called again repeats its table and the time of the call that did the work.
func TestSpeedrunAgain(t *testing.T) {
	f := &flagRig{T: t, dir: t.TempDir()}
	t.Chdir(f.dir)
	t.Setenv("ANTIPHASE_HOME", t.TempDir())
	first, _ := f.sprint(0, "s", "--plan", "short", "--threads", "1")
	text := f.read("s/report.json")
	took := regexp.MustCompile(`"seconds": ?[0-9.e-]+`)
	if !took.MatchString(text) {
		t.Fatalf("no time in %.300s", text)
	}
	f.write("s/report.json", took.ReplaceAllString(text, `"seconds":392.5`))
	again, said := f.sprint(0, "s", "--threads", "1") // the folder's plan
	if again != first || !strings.Contains(said, filepath.Join("s", "report.html")+" in 6m32s\n") ||
		!strings.Contains(said, "plan short: 10 steps") || finishedSeconds("s") != 392.5 {
		t.Errorf("%s\n%s\n%s", first, again, said)
	}
}
