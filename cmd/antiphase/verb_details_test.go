package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"antiphase/device/cpu"
	"antiphase/eval"
	"antiphase/internal/simd"
	"antiphase/lab"
	"antiphase/model"
	"antiphase/tokenizer/chat"
)

// Attend shows both models on the prompt, the loss of each by its own logits, and interventions on the first alone.
func TestAttendNumbers(t *testing.T) {
	nanoRun(t)
	if code, _, errs := ran(t, "train", "--size", "nano", "--arch", "transformer", "--steps", "1", "--dir", "base",
		"-q", "--device", "cpu"); code != 0 {
		t.Fatal(errs)
	}
	args := []string{"attend", "--model", "run", "--model", "b=base", "-p", "abcd", "--device", "cpu",
		"--precision", "fp32"}
	code, out, notes := ran(t, append(args, "--json")...)
	var page lab.File
	if err := json.Unmarshal([]byte(out), &page); code != 0 || err != nil || page.Text != "abcd" ||
		len(page.Looks) != 2 || len(page.Models) != 2 {
		t.Fatalf("exit %d, %v: %s", code, err, notes)
	}
	for i, name := range []string{"run", "b"} {
		dir := map[string]string{"run": "run", "b": "base"}[name]
		logits := decoded[struct{ Logits [][]float64 }](t, "logits", "-m", dir, "--ids", "256,97,98,99,100", "--device",
			"cpu", "--json", "-q").Logits
		loss := 0.0
		for k, id := range []int{97, 98, 99, 100} {
			sum := 0.0
			for _, x := range logits[k] {
				sum += math.Exp(x)
			}
			loss += (math.Log(sum) - logits[k][id]) / 4
		}
		if look := page.Looks[i]; look.Model != name || page.Models[i].ID != name || !look.Whole ||
			!(math.Abs(look.Loss-loss) <= 1e-4) {
			t.Errorf("%s: loss %g, want %g", name, look.Loss, loss)
		}
		if want := fmt.Sprintf("%s: 5 tokens, loss %.4f\n", name, page.Looks[i].Loss); !strings.Contains(notes, want) {
			t.Errorf("%q is not in %s", want, notes)
		}
	}
	same := map[string]bool{}
	for name, o := range page.Outcomes {
		same[name] = math.Abs(o.Loss-page.Looks[0].Loss) < 1e-9
	}
	_, lambda := same["lambda=0.5@L1"] // which the baseline does not have
	if is, ok := same["knockout@L1@H1"]; !lambda || !ok || is || page.Models[0].Meta.Arch != "diff" {
		t.Errorf("outcomes %v", same)
	}
}

// Progress that goes to a file has the steps with a held-out loss, every log_every-th one and the last; a line repeats
// the held-out loss that was measured before.
func TestStepsInALog(t *testing.T) {
	t.Chdir(t.TempDir())
	code, _, errs := ran(t, "train", "--size", "nano", "--steps", "7", "--set", "train.eval_every=2", "--set",
		"train.log_every=5", "--dir", "run", "--device", "cpu")
	if code != 0 {
		t.Fatal(errs)
	}
	held := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^step (\d)/7 .* held-out ([0-9.]+) `).FindAllStringSubmatch(errs, -1) {
		held[m[1]] = m[2]
	}
	for _, step := range []string{"2", "4", "5", "6", "7"} {
		if held[step] == "" {
			t.Errorf("no step %s in %s", step, errs)
		}
	}
	if held["5"] != held["4"] || held["4"] == held["2"] {
		t.Errorf("held-out losses %v", held)
	}
	if !regexp.MustCompile(`(?m)^run: diff, 33\.66k parameters, on cpu: `).MatchString(errs) ||
		!strings.Contains(errs, "done: step 7, loss ") {
		t.Errorf("%s", errs)
	}
	for every, good := range map[int]bool{0: true, 5: true, 6: true, 7: false} {
		if err := (&sampleFlags{every: every}).fits(6); (err == nil) != good {
			t.Errorf("samples every %d of 6 steps: %v", every, err)
		}
	}
}

// A preset fits the model with the shortest context, and says which settings it asks with.
func TestPresetFits(t *testing.T) {
	for scale, says := range map[string]string{
		"fit":   "table2 at the scale of a context of 300 tokens: not the published settings\n",
		"paper": "table2 at the published settings; --scale fit asks what suits a context of 300 tokens\n"} {
		var b bytes.Buffer
		f := &evalFlags{preset: "table2", scale: scale}
		choose, err := f.choose(&app{err: &b})
		if err != nil {
			t.Fatal(err)
		}
		targets := make([]eval.Target, 3)
		for i, n := range []int{512, 300, 1024} {
			targets[i].Context = n
		}
		if tasks, err := choose(targets); err != nil || len(tasks) == 0 || b.String() != says || f.checkpoints {
			t.Errorf("%s: %d tasks, %v: %q", scale, len(tasks), err, b.String())
		}
	}
	f := &evalFlags{preset: "figure9", scale: "fit"}
	if _, err := f.choose(&app{}); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "--output: missing") {
		t.Error(err)
	}
	f.opt.Output = "x"
	if _, err := f.choose(&app{}); err != nil || !f.checkpoints {
		t.Errorf("%v, checkpoints %v", err, f.checkpoints)
	}
}

// What a number is computed by, and what a served model is known by: anything that may change an answer changes it.
func TestIdentityOfResults(t *testing.T) {
	prints := map[string]bool{}
	c := whiteConfig(t)
	for p, name := range map[cpu.Precision]string{cpu.FP32: "fp32", cpu.BF16: "bf16", cpu.Int8: "int8"} {
		d := cpu.New(cpu.Options{Threads: 1, Precision: p})
		if kind, precision := computes(d); kind != "cpu "+simd.Name() || precision != name {
			t.Errorf("%s: %q, %q", name, kind, precision)
		}
		l := &loaded{Model: &model.Model{}, Dir: "a", Step: 1}
		l.Model.Config = c
		l.Model.Config.RopeScaling = &model.RopeScaling{Type: "linear", Factor: 2}
		first := fingerprint(d, l)
		l.Model.Config.RopeScaling = &model.RopeScaling{Type: "linear", Factor: 2} // equal, in another place
		again := fingerprint(d, l)
		if first != again {
			t.Error("a fingerprint that does not repeat")
		}
		prints[first] = true
		if name == "fp32" {
			other := *l
			other.Step = 2
			prints[fingerprint(d, &other)] = true
			other.Dir = "b"
			prints[fingerprint(d, &other)] = true
			l.Model.Config.RopeScaling.Factor = 4
			prints[fingerprint(d, l)] = true
		}
		d.Close()
	}
	if len(prints) != 6 {
		t.Errorf("%v", prints)
	}
}

// Templates of serve: one message per line, or a file.
func TestServedTemplates(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("t.jinja", []byte("<{{ messages[0].content }}>"), 0o644); err != nil {
		t.Fatal(err)
	}
	messages := []chat.Message{{Role: "user", Content: "a"}, {Role: "assistant", Content: "b"},
		{Role: "user", Content: "c"}}
	for name, want := range map[string]string{"plain": "a\nb\nc", "t.jinja": "<a>"} {
		f := &serveFlags{template: name}
		if err := f.readTemplate(); err != nil {
			t.Fatal(err)
		}
		template, err := chat.Parse(f.jinja, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := template.Render(chat.Conversation{Messages: messages, Generate: true}); err != nil ||
			got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if err := (&serveFlags{template: "none"}).readTemplate(); err == nil {
		t.Error("a file that is not there")
	}
	f := &serveFlags{}
	if err := f.readTemplate(); err != nil || f.jinja != "" {
		t.Errorf("%q, %v", f.jinja, err)
	}
	if got := f.folders(); !slices.Equal(got, []string{"pair:diff", "pair:transformer"}) {
		t.Errorf("%q", got)
	}
	f.models = []string{"a=x/y", "z"}
	if got := f.folders(); !slices.Equal(got, []string{"x/y", "z"}) {
		t.Errorf("%q", got)
	}
}
