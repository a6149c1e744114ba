package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/experiment"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/server"
	"antiphase/tokenizer/chat"
	"antiphase/train"
)

// Lines of progress, by hand: what is not known is not on them.
func TestTrainingLines(t *testing.T) {
	row := train.Row{Step: 5, Total: 20, Percent: 25, LossEMA: 1.23456, GradNorm: 0.456, LR: 1e-3, TokS: 12345,
		MFU: 0.345, LambdaMin: math.NaN(), LambdaMax: math.NaN(), ETA: 75}
	if got := stepLine(row, math.NaN()); got !=
		"step 5/20 (25 %) | loss 1.2346 | grad 0.46 | lr 1.00e-03 | 12.35k tok/s | mfu 34 % | eta 1m15s" {
		t.Errorf("%q", got)
	}
	row.LambdaMin, row.LambdaMax, row.Warnings = 0.25, 0.75, 3
	if got := stepLine(row, 2.5); got != "step 5/20 (25 %) | loss 1.2346 | held-out 2.5000 | grad 0.46 | lr 1.00e-03 "+
		"| 12.35k tok/s | mfu 34 % | λ 0.25…0.75 | 3 warned | eta 1m15s" {
		t.Errorf("%q", got)
	}
	for want, got := range map[string]string{"tokens 1.5k of 6k (25 %)": prepareLine("tokens", 1500, 6000),
		"tokens 1.5k": prepareLine("tokens", 1500, 0), ", held-out 1.5000": heldOut(1.5), "": heldOut(0),
		"1.50 GFLOP/s": rateText(1.5e9), "15.0 GFLOP/s": rateText(15e9), "150 GFLOP/s": rateText(150e9),
		"1500 GFLOP/s": rateText(1.5e12)} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A dry run's numbers are those of the model, the device and the recipe: parameters, FLOPs by token, tokens, memory.
func TestDryRunNumbers(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("ANTIPHASE_HOME", t.TempDir())
	code, out, errs := ran(t, "train", "--size", "nano", "--arch", "diff", "--steps", "7", "--dry-run", "--json",
		"--device", "cpu", "--precision", "fp32", "-q")
	var got struct {
		Parameters, Steps int
		Forward           float64 `json:"flops_per_token_forward"`
		All               float64 `json:"flops_per_token"`
		State             int     `json:"state_bytes"`
		Tokens            float64
		Seconds           float64 `json:"expected_seconds"`
		Sources           []sourceRow
	}
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, errs)
	}
	r, err := recipe.Nano("diff")
	if err != nil {
		t.Fatal(err)
	}
	forward, all := r.Model.FLOPs(32)
	if got.Parameters != 33664 || got.Steps != 7 || got.Forward != forward || got.All != all || got.Tokens != 7*4*32 ||
		got.State < 4*4*33664 || got.Seconds <= 0 || len(got.Sources) != 1 || got.Sources[0].Share != 1 {
		t.Errorf("%+v", got)
	}
	if n := model.Table(r.Model).Count(); n != got.Parameters {
		t.Errorf("%d parameters", n)
	}
	code, out, _ = ran(t, "train", "--size", "nano", "--arch", "diff", "--steps", "7", "--dry-run",
		"--device", "cpu", "-q")
	for _, want := range []string{"architecture   diff (", "parameters     33.66k",
		"steps          7 of 4 × 32 tokens = 896 tokens", "(train.recompute=off)"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.Contains(out, "layout") {
		t.Error("a layout of one rank")
	}
}

// A recipe file decides the architecture unless a flag says another; settings on the line come after files and flags.
func TestResolveOrder(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("r.json", `{"model":{"arch":"diff2"},"train":{"steps":9,"batch":8},"optim":{"lr":0.25}}`)
	over := write("over.json", `{"train":{"batch":16},"optim":{"lr":0.125}}`)
	odd := write("odd.json", `{"model":{"arch":"dif"}}`)
	for _, x := range []struct {
		what string
		f    trainFlags
		args []string
		want string
		says string
	}{
		{"a size", trainFlags{size: "nano", arch: "diff"}, nil, "diff 20 4 0.003", ""},
		{"a file", trainFlags{size: "nano", arch: "diff"}, []string{file}, "diff2 9 8 0.25", ""},
		{"a file over another", trainFlags{size: "nano", arch: "diff"}, []string{file, over}, "diff2 9 16 0.125", ""},
		{"the other over it", trainFlags{size: "nano", arch: "diff"}, []string{over, file}, "diff2 9 8 0.25", ""},
		{"a flag over a file", trainFlags{size: "nano", arch: "diff", steps: 3, stepsSet: true}, []string{file},
			"diff2 3 8 0.25", ""},
		{"a setting over both", trainFlags{size: "nano", arch: "diff", steps: 3, stepsSet: true,
			set: []string{"train.steps=5"}}, []string{file, "optim.lr=0.5"}, "diff2 5 8 0.5", ""},
		{"the same architecture", trainFlags{size: "nano", arch: "diff2", archSet: true}, []string{file},
			"diff2 9 8 0.25", ""},
		{"another architecture", trainFlags{size: "nano", arch: "diff", archSet: true}, []string{file}, "",
			"--arch: is diff, "},
		{"no architecture", trainFlags{size: "nano", arch: "diff"}, []string{odd}, "", "odd.json: model."},
		{"heads of another", trainFlags{size: "nano", arch: "diff", set: []string{"model.arch=diff2"}}, nil, "",
			"use --arch diff2"},
		{"no size", trainFlags{size: "huge", arch: "diff"}, nil, "", "huge"},
		{"a tokenizer that is not trained",
			trainFlags{size: "nano", arch: "diff", set: []string{"tokenizer.vocab=300"}}, nil, "",
			"tokenizer.vocab: has no effect"},
	} {
		r, err := x.f.resolve(context.Background(), &app{}, x.args)
		if x.says != "" {
			if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), x.says) {
				t.Errorf("%s: %v, want %q", x.what, err, x.says)
			}
			continue
		}
		b, _ := json.Marshal([]any{r.Model.Arch, r.Train.Steps, r.Train.Batch, r.Optim.LR})
		if got := strings.NewReplacer(`[`, "", `]`, "", `"`, "", ",", " ").Replace(string(b)); err != nil ||
			got != x.want {
			t.Errorf("%s: %s (%v), want %s", x.what, got, err, x.want)
		}
	}
}

// The usage line says what resolve takes: any number of files, and settings.
func TestTrainUsage(t *testing.T) {
	if use := trainVerb(&app{}).Use; use != "train [recipe.json|recipe.yaml ...] [key=value ...]" {
		t.Error(use)
	}
}

// Who may listen where: without a key or --insecure only this machine; the command to paste is that of the model's
// kind.
func TestListenAndAnnounce(t *testing.T) {
	keys, err := server.NewKeys("a-long-enough-key")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		listen   string
		keys     *server.Keys
		insecure bool
		loopback bool
		bad      bool
	}{
		{"127.0.0.1:80", nil, false, true, false}, {"127.3.2.1:80", nil, false, true, false},
		{"localhost:80", nil, false, true, false}, {"[::1]:80", nil, false, true, false},
		{"0.0.0.0:80", nil, false, false, true},
		{":80", nil, false, false, true}, {"10.0.0.1:80", nil, false, false, true},
		{"10.0.0.1:80", keys, false, false, false}, {"10.0.0.1:80", nil, true, false, false},
		{"host.example:80", nil, false, false, true}, {"127.0.0.1", nil, false, false, true},
	} {
		f := &serveFlags{listen: x.listen, insecure: x.insecure}
		loopback, err := f.checkListen(x.keys)
		if loopback != x.loopback || (err != nil) != x.bad || err != nil && exitCode(err) != exitUsage {
			t.Errorf("%+v: %v, %v", x, loopback, err)
		}
	}
	template, err := chat.Parse("x", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		template *chat.Template
		keyed    bool
		file     string
		addr     string
		want     []string
		lacks    string
	}{
		{nil, false, "", "h:1", []string{"serving on http://h:1\n", "http://h:1/v1/completions -H 'Content-Type",
			`"model":"id","prompt":`}, "Authorization"},
		{template,
			true, "", "h:1", []string{"/v1/chat/completions -H \"Authorization: Bearer ${ANTIPHASE_API_KEY%%,*}\" -H",
				`"messages":`}, `"prompt"`},
		{nil, true, "my keys", "[::]:1",
			[]string{"serving on http://127.0.0.1:1\n", "curl http://127.0.0.1:1/v1", "Bearer $(grep -m 1 '^[^#]' " +
				experiment.ShellWord("my keys") + ")\""}, "API_KEY"},
		{nil, false, "", "0.0.0.0:1", []string{"serving on http://127.0.0.1:1\n", "curl http://127.0.0.1:1/v1"},
			"0.0.0.0"},
		{nil, false, "", "[::1]:1", []string{"serving on http://[::1]:1\n", "curl http://[::1]:1/v1"}, "127"},
	} {
		var b bytes.Buffer
		m := &server.Model{}
		m.ID, m.Template = "id", x.template
		(&app{err: &b}).announce(x.addr, []*server.Model{m, {}}, x.keyed, x.file)
		for _, w := range x.want {
			if !strings.Contains(b.String(), w) || strings.Contains(b.String(), x.lacks) {
				t.Errorf("%q is not in %s", w, b.String())
			}
		}
	}
}
