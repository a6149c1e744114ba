package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
	"antiphase/hf"
	"antiphase/internal/safetensors"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/tokenizer"
	"antiphase/train"
)

// Flags of eval that would change nothing, each with what makes it useful.
func TestEvalIdle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	local, remote := []string{"run"}, []string{"run", "x=http://h/v1#m"}
	for _, x := range []struct {
		what  string
		f     evalFlags
		given string
		says  string
		code  int
	}{
		{"nothing", evalFlags{models: local}, "", "", 0},
		{"samples", evalFlags{models: local, opt: eval.Options{LogSamples: true}}, "",
			"--log-samples: needs --output", exitUsage},
		{"samples in a store", evalFlags{models: local, opt: eval.Options{LogSamples: true, Output: "o"}}, "", "", 0},
		{"replicate", evalFlags{models: local, opt: eval.Options{Replicate: "r"}}, "",
			"--replicate: needs --output", exitUsage},
		{"replicate in a store", evalFlags{models: local, opt: eval.Options{Replicate: "r", Output: "o"}}, "", "", 0},
		{"scale", evalFlags{models: local}, "scale", "--scale: belongs to --preset", exitUsage},
		{"scale of a preset", evalFlags{models: local, preset: "table2"}, "scale", "", 0},
		{"context", evalFlags{models: local}, "endpoint-context", "--endpoint-context", exitUsage},
		{"context of an endpoint", evalFlags{models: remote}, "endpoint-context", "", 0},
		{"concurrency", evalFlags{models: local}, "endpoint-concurrency",
			"neither a --model nor the --judge", exitUsage},
		{"concurrency of a judge", evalFlags{models: local, judge: "http://h#m"}, "endpoint-concurrency", "", 0},
		{"concurrency of an endpoint", evalFlags{models: remote}, "endpoint-concurrency", "", 0},
		{"template", evalFlags{models: remote, chat: true}, "", "--apply-chat-template", exitUsage},
		{"template of a folder", evalFlags{models: local, chat: true}, "", "", 0},
		{"data", evalFlags{models: local, opt: eval.Options{Data: filepath.Dir(file)}}, "", "", 0},
		{"data in a file", evalFlags{models: local, opt: eval.Options{Data: file}}, "", "is a file; want the folder",
			exitBadInput},
		{"data nowhere", evalFlags{models: local, opt: eval.Options{Data: file + "x"}}, "", "--data: ", exitBadInput},
	} {
		x.f.changed = func(name string) bool { return name == x.given }
		err := x.f.idle()
		if (err == nil) != (x.says == "") || err != nil &&
			(!strings.Contains(err.Error(), x.says) || exitCode(err) != x.code) {
			t.Errorf("%s: %v, want %q", x.what, err, x.says)
		}
	}
}

// Flags that no task asked for heeds: examples, and a judge. A task that wraps another may use both.
func TestEvalIdleFor(t *testing.T) {
	plain, shots := eval.Task{Shots: -1}, eval.Task{Shots: 0}
	judged := eval.Task{Shots: -1, Measures: []eval.Measure{{Name: "judge"}}}
	wraps := eval.Task{Shots: -1, Settings: []eval.Setting{{Key: "task"}}}
	for _, x := range []struct {
		shots int
		judge string
		tasks []eval.Task
		says  string
	}{
		{-1, "", []eval.Task{plain}, ""}, {3, "", []eval.Task{plain}, "--num-fewshot"},
		{3, "", []eval.Task{plain, shots}, ""}, {0, "", []eval.Task{plain}, "--num-fewshot"},
		{3, "", []eval.Task{wraps}, ""},
		{-1, "j", []eval.Task{plain}, "--judge"}, {-1, "j", []eval.Task{judged}, ""}, {-1, "j", []eval.Task{wraps}, ""},
		{-1, "j", []eval.Task{shots}, "--judge"},
	} {
		f := evalFlags{judge: x.judge, opt: eval.Options{Shots: x.shots},
			changed: func(string) bool { return x.shots >= 0 }}
		if err := f.idleFor(x.tasks); (err == nil) != (x.says == "") || err != nil &&
			!strings.Contains(err.Error(), x.says) {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// A pattern is a group under its name, a path is one model; a pattern without matches is an error, a folder with such a
// name is not.
func TestExpand(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a1", "a2", "b[1]"} {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{"a*": "n [a1 a2]", "a1": " [a1]", "b[1]": " [b[1]]",
		"http://h/v1#m?x": " [http://h/v1#m?x]", "none": " [none]"} {
		group, paths, err := expand("n", path)
		if got := fmt.Sprint(group, " ", paths); err != nil || got != want {
			t.Errorf("%s: %q (%v), want %q", path, got, err, want)
		}
	}
	if _, _, err := expand("n", "c*"); err == nil || !strings.Contains(err.Error(), "no folder matches") {
		t.Error(err)
	}
}

// Logits for programs and for people: all of every position, or the five highest; ids in any form of list.
func TestLogitsForms(t *testing.T) {
	nanoRun(t)
	if err := os.WriteFile("ids.txt", []byte("[256, 72\n105]\t"), 0o644); err != nil {
		t.Fatal(err)
	}
	get := func(args ...string) (got struct {
		IDs    []int32
		Vocab  int
		Logits [][]float32
	}) {
		code, out, errs := ran(t, append([]string{"logits", "-m", "run", "--device", "cpu", "--json", "-q"},
			args...)...)
		if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
			t.Fatalf("exit %d, %v: %s", code, err, errs)
		}
		return got
	}
	a, b := get("--ids", "256,72,105"), get("--ids-file", "ids.txt", "--out", "l.safetensors")
	if !slices.Equal(a.IDs, []int32{256, 72, 105}) || a.Vocab != 260 || len(a.Logits) != 3 || len(a.Logits[2]) != 260 ||
		fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%v %d: %d rows, the same from a file: %v", a.IDs, a.Vocab, len(a.Logits),
			fmt.Sprint(a) == fmt.Sprint(b))
	}
	if one := get("--ids", "256"); !slices.Equal(one.Logits[0], a.Logits[0]) {
		t.Error("a later token changes an earlier row")
	}
	f, err := safetensors.Open("l.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if x, err := f.Float32s("logits"); err != nil || !slices.Equal(x[260:520], a.Logits[1]) {
		t.Errorf("the file has %d logits (%v)", len(x), err)
	}
	code, out, _ := ran(t, "logits", "-m", "run", "--device", "cpu", "--ids", "256,72", "-q")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	best := top(a.Logits[1], 5)
	if code != 0 || len(lines) != 2 ||
		!strings.HasPrefix(strings.Join(strings.Fields(lines[1]), " "), fmt.Sprintf("1 id 72 → %d ", best[0])) ||
		!strings.Contains(lines[1], fmt.Sprintf(" %.4f", a.Logits[1][best[4]])) {
		t.Errorf("%q", lines)
	}
	for args, says := range map[string]string{"": "give --ids or --ids-file",
		"--ids 1 --ids-file ids.txt": "give --ids or --ids-file", "--ids 1,x": `entry 2, "x"`,
		"--ids ,": "there are none", "--ids 999": "999"} {
		if code, _, errs := ran(t, append([]string{"logits", "-m", "run", "--device", "cpu"},
			strings.Fields(args)...)...); code != exitUsage || !strings.Contains(errs, says) {
			t.Errorf("%s: exit %d, %s", args, code, errs)
		}
	}
	long := strings.Repeat("1,", 65)
	if code, _, errs := ran(t, "logits", "-m", "run", "--device", "cpu", "--ids", long); code != exitUsage ||
		!strings.Contains(errs, "there are 65, the model's context is 64") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// The recipe of an ablation: the baseline or the challenger changed, the same data and seed for all, enough text for
// its steps.
func TestAblationRecipes(t *testing.T) {
	f := &ablationFlags{arch: "diff", size: "nano", steps: 100, seed: 7, set: []string{"optim.lr=0.5"}}
	rows, err := eval.Ablations("diff")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		r, err := f.recipe(row)
		if err != nil {
			t.Fatal(err)
		}
		arch := "transformer"
		if row.Challenger {
			arch = "diff"
		}
		if r.Model.Arch != arch || r.Train.Steps != 100 || r.Optim.Warmup > 5 || r.Train.Seed != 7 ||
			r.Optim.LR != 0.5 || !strings.HasSuffix(r.Name, "-"+row.Name) || r.Data.MaxTokens != 1<<20 {
			t.Errorf("%s: %s %s, %d steps, warm-up %d, seed %d, %d tokens", row.Name, r.Name, r.Model.Arch,
				r.Train.Steps, r.Optim.Warmup, r.Train.Seed, r.Data.MaxTokens)
		}
	}
	f.steps = 100_000
	r, err := f.recipe(rows[0])
	if want := int64(100_000 * 4 * 32 * 1.05 / (1 - r.Data.HeldOut)); err != nil || r.Data.MaxTokens != want {
		t.Errorf("%d tokens (%v), want %d", r.Data.MaxTokens, err, want)
	}
	f.set = []string{"data.held_out=0"}
	if _, err := f.recipe(rows[0]); err == nil || !strings.Contains(err.Error(), "the table shows held-out losses") {
		t.Error(err)
	}
}

// What an export states: the context that was trained on, facts of the run, its types by bytes.
func TestExportFacts(t *testing.T) {
	saved := func(step, seq int, from string) *train.Saved {
		return &train.Saved{State: &train.State{Step: step, Tokens: 99, Loss: 1.5, EMA: 1.25, Valid: 2},
			Tokenizer: tokenizer.Bytes(),
			Recipe:    recipe.Recipe{Name: "n", Train: recipe.Train{SeqLen: seq, From: from, Steps: 9, Seed: 4}}}
	}
	for _, x := range []struct {
		saved *train.Saved
		want  int
	}{{nil, 64}, {saved(5, 32, ""), 32}, {saved(5, 128, ""), 64}, {saved(0, 32, ""), 64},
		{saved(5, 32, "parent"), 64}} {
		s := &stored{Config: model.Config{Context: 64}, Saved: x.saved}
		if got := s.trainedContext(); got != x.want {
			t.Errorf("%+v: %d", x.saved, got)
		}
		s.Config.RopeScaling = new(model.RopeScaling)
		if got := s.trainedContext(); got != 64 {
			t.Errorf("%+v, with scaled positions: %d", x.saved, got)
		}
	}
	s := &stored{Config: whiteConfig(t), Dir: "a/b", Saved: saved(5, 32, "parent")}
	card := s.card(hf.Antiphase)
	facts := map[string]string{}
	for _, f := range card.Facts {
		facts[f[0]] = f[1]
	}
	for name, want := range map[string]string{"architecture": "diff", "parameters": "33664", "context": "64 tokens",
		"vocabulary": "260", "run": "n, seed 4", "began with": "parent", "trained": "5 of 9 steps, 99 tokens",
		"training loss": "1.5000 at the last step, 1.2500 smoothed", "held-out loss": "2.0000",
		"shape": "2 layers of width 32, 2 heads in 2 groups of 8, inner width 88"} {
		if facts[name] != want {
			t.Errorf("%s: %q, want %q", name, facts[name], want)
		}
	}
	if card.Name != "n" || !strings.HasSuffix(card.About, " Trained with Antiphase.") {
		t.Errorf("%q %q", card.Name, card.About)
	}
	s.Saved = nil
	if card = s.card(hf.Antiphase); card.Name != "b" || !strings.HasSuffix(card.About, " Converted with Antiphase.") ||
		len(card.Facts) != 5 {
		t.Errorf("%+v", card)
	}
	for range 8 {
		if got := dtypeList(map[string]int64{"F32": 10, "BF16": 30, "I8": 10, "F16": 20}); !slices.Equal(got,
			[]string{"BF16", "F16", "F32", "I8"}) {
			t.Fatalf("%q", got)
		}
	}
}
