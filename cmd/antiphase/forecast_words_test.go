package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/recipe"
)

// What a dry run of compare says of every size and architecture: how many runs it has, and of one run the parameters,
// the tokens and the memory, the same that train refuses a run by.
func TestForecastOfEachModel(t *testing.T) {
	t.Chdir(t.TempDir())
	for precision, p := range map[string]cpu.Precision{"fp32": cpu.FP32, "bf16": cpu.BF16} {
		code, out, errs := ran(t, "compare", "--size", "nano", "--arch", "transformer,diff", "--variant",
			"wide diff model.ffn=192", "--lr", "1e-3,2e-3", "--seeds", "3", "--steps", "7", "--jobs", "2", "--set",
			"train.micro_batch=2", "--device", "cpu", "--precision", precision, "--dry-run", "--json", "-q")
		var got struct {
			Runs, Finished int
			Tokens         int64
			Bytes          int
			Seconds        float64 `json:"training_seconds"`
			Rows           []dryRow
		}
		if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
			t.Fatalf("exit %d, %v: %s", code, err, errs)
		}
		names, most, seconds := []string{}, 0, 0.0
		for _, r := range got.Rows {
			names, most, seconds = append(names, r.Arch), max(most, r.Bytes), seconds+4*r.Seconds
			arch, ffn := r.Arch, 0
			if r.Arch == "wide" {
				arch, ffn = "diff", 192
			}
			c, err := recipe.Nano(arch)
			if err != nil {
				t.Fatal(err)
			}
			if ffn > 0 {
				c.Model.FFN = ffn
			}
			n := model.Table(c.Model).Count()
			d := cpu.New(cpu.Options{Threads: 1, Precision: p})
			// A parameter has a gradient and two moments in float32, and its weight: in float32, or in bf16 with the
			// rest of the master; either way 16 bytes.
			size := 16*n + c.Model.ActivationBytes(2*32, d.Types(), c.Train.Recompute)
			if r.Size != "nano" || r.Runs != 4 || r.Finished != 0 || r.Parameters != n || r.Tokens != 7*4*32 ||
				r.Bytes != size || r.Seconds <= 0 {
				t.Errorf("%s: %+v, want %d parameters and %d bytes", precision, r, n, size)
			}
			d.Close()
		}
		if !slices.Equal(names, []string{"transformer", "diff", "wide"}) || got.Runs != 12 || got.Tokens != 12*7*128 ||
			got.Bytes != 2*most || got.Seconds/seconds < 0.999 || got.Seconds/seconds > 1.001 {
			t.Errorf("%s: %q, %+v", precision, names, got)
		}
	}
}

// rated makes the device of these options one that multiplies at 10⁹ operations a second, for forecasts.
func rated(t *testing.T, o cpu.Options) *cpu.Device {
	t.Helper()
	d := cpu.New(o)
	t.Cleanup(func() { d.Close() })
	home := t.TempDir()
	t.Setenv("ANTIPHASE_HOME", home)
	b, err := json.Marshal(map[string]float64{device.MachineOf(d) + "; " + d.Name(): 1e9})
	if err == nil {
		err = os.WriteFile(filepath.Join(home, "peak.json"), b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// dryTrain is what train --dry-run --json prints.
type dryTrain struct {
	Arch, Device      string
	Parameters, Steps int
	Forward           float64 `json:"flops_per_token_forward"`
	All               float64 `json:"flops_per_token"`
	State             int     `json:"state_bytes"`
	Activations       int     `json:"activation_bytes"`
	Tokens            float64
	Seconds           float64 `json:"expected_seconds"`
	Sources           []sourceRow
	Parallel          forecast
}

// A dry run of train, line by line and field by field: half of the machine's rate, 16 bytes for a parameter in
// training, a byte for a token and 2 % of them held out.
func TestDryRunWords(t *testing.T) {
	t.Chdir(t.TempDir())
	d := rated(t, cpu.Options{Threads: 1, Precision: cpu.FP32})
	if err := os.WriteFile("text.txt", []byte(strings.Repeat("0123456789", 50_000)), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"train", "--size", "small", "--arch", "diff", "--data", "text.txt", "--tokenizer", "bytes",
		"--steps", "100", "--set", "train.batch=16", "--set", "train.micro_batch=8", "--set", "train.seq_len=256",
		"--dry-run", "--device", "cpu", "--precision", "fp32", "--threads", "1", "-q"}
	code, out, errs := ran(t, append(args, "--json")...)
	var got dryTrain
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, errs)
	}
	r, err := recipe.Named("small", "diff")
	if err != nil {
		t.Fatal(err)
	}
	n := model.Table(r.Model).Count()
	forward, all := r.Model.FLOPs(256)
	acts := r.Model.ActivationBytes(8*256, d.Types(), r.Train.Recompute)
	const tokens = 100 * 16 * 256
	seconds := tokens * all / 0.5e9
	source := sourceRow{Source: "text.txt", Tokens: 490_000, About: true, Share: 1, Epochs: tokens / 490_000.}
	if got.Arch != "diff" || got.Device != d.Name() || got.Parameters != n || got.Steps != 100 ||
		got.Forward != forward || got.All != all || got.State != 16*n ||
		got.Activations != acts || got.Tokens != tokens || !(math.Abs(got.Seconds/seconds-1) <= 1e-9) ||
		!slices.Equal(got.Sources, []sourceRow{source}) {
		t.Errorf("%+v, want %g s, %d bytes, %+v", got, seconds, acts, source)
	}
	if p := got.Parallel; p.Ranks != 1 || p.Bandwidth != 12.5e9 || !(math.Abs(p.Compute/(seconds/100)-1) <= 1e-9) ||
		p.Step != p.Compute {
		t.Errorf("%+v", p)
	}
	code, out, errs = ran(t, args...)
	arch, _ := layer.LookupArch("diff")
	want := []string{fmt.Sprintf("architecture diff (%s)", arch.Doc), "parameters " + count(float64(n)),
		fmt.Sprintf("FLOPs/token %s forward, %s with backward", count(forward), count(all)),
		fmt.Sprintf("memory %.2f GiB weights, gradients and moments + %.2f GiB activations (train.recompute=off)",
			16*float64(n)/(1<<30), float64(acts)/(1<<30)),
		"steps 100 of 16 × 256 tokens = 409.6k tokens",
		fmt.Sprintf("expected time about %s on %s", hours(seconds), d.Name()), "",
		"tokens share epochs at most source", "about 490k 100.0 % 0.84 – text.txt"}
	if lines := fields(out); code != 0 || !slices.Equal(lines, want) {
		t.Errorf("%s\nwant\n%s%s", strings.Join(lines, "\n"), strings.Join(want, "\n"), errs)
	}
	code, out, errs = ran(t, append(args, "--json", "--parallel", "dp=4", "--bandwidth", "2")...)
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, errs)
	}
	// Four ranks take 4 rows each, fewer than a micro-batch.
	few := r.Model.ActivationBytes(4*256, d.Types(), r.Train.Recompute)
	if p := got.Parallel; p.Ranks != 4 || p.Bandwidth != 2e9 || !(math.Abs(p.Compute/(seconds/400)-1) <= 1e-9) ||
		p.Activations != int64(few) || p.Parameters != n ||
		p.Gradients <= 0 || p.Wire != 0 || !(math.Abs((p.Step-p.Compute)/(p.Gradients/2e9)-1) <= 1e-9) ||
		got.Seconds/seconds < 0.999 {
		t.Errorf("%+v", p)
	}
}

// hours is a time of at least a minute, for people.
func hours(s float64) string {
	if s < 3600 {
		return fmt.Sprintf("%dm%02ds", int(s)/60, int(s)%60)
	}
	return fmt.Sprintf("%dh%02dm", int(s)/3600, int(s)/60%60)
}

// sourceForecasts are recipes of two files of 1,000 and 3,000 bytes, and what is expected of each source.
var sourceForecasts = []struct {
	what    string
	sources []recipe.Source
	set     []string
	want    []sourceRow
	says    string
}{
	{"all", recipe.Paths("a.txt", "b.txt"), nil,
		[]sourceRow{{Tokens: 900, Share: 0.25, Epochs: 0.25}, {Tokens: 2700, Share: 0.75, Epochs: 0.25}}, ""},
	{"some of the second", recipe.Paths("a.txt", "b.txt"), []string{"data.max_tokens=2000"},
		[]sourceRow{{Tokens: 900, Share: 0.5, Epochs: 0.5}, {Tokens: 900, Share: 0.5, Epochs: 0.5}}, ""},
	{"nothing of the second", recipe.Paths("a.txt", "b.txt"), []string{"data.max_tokens=500"},
		[]sourceRow{{Tokens: 450, Share: 1, Epochs: 2}, {}}, ""},
	{"weights", []recipe.Source{{Path: "a.txt", Weight: 3}, {Path: "b.txt", Weight: 1}}, nil,
		[]sourceRow{{Tokens: 900, Share: 0.75, Epochs: 0.75}, {Tokens: 2700, Share: 0.25, Epochs: 0.25 / 3}}, ""},
	{"epochs", []recipe.Source{{Path: "a.txt", Epochs: 0.5}}, nil,
		[]sourceRow{{Tokens: 900, Share: 1, Epochs: 0.5, Bound: 0.5}},
		"warning: the epochs allow about 5 of 10 steps"},
	{"a vocabulary", recipe.Paths("b.txt"), []string{"tokenizer.path=", "tokenizer.vocab=1024", "model.vocab=1024"},
		[]sourceRow{{Tokens: 1124, Share: 1, Epochs: 900. / 1124}}, ""}, // just above 2.4 bytes a token
}

// Sources of a recipe before they are read: tokens by the tokenizer's own count or by its vocabulary, those of
// max_tokens taken from the first sources, held-out text left out; and the steps that their epochs allow.
func TestForecastOfSources(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, n := range map[string]int{"a.txt": 1000, "b.txt": 3000} {
		if err := os.WriteFile(name, bytes.Repeat([]byte("0123456789"), n/10), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range sourceForecasts {
		r, err := recipe.Nano("diff")
		if err != nil {
			t.Fatal(err)
		}
		r.Data.Sources, r.Data.HeldOut, r.Train.Steps, r.Train.Batch, r.Train.SeqLen = x.sources, 0.1, 10, 3, 30
		for _, s := range x.set {
			if err := r.SetPair(s); err != nil {
				t.Fatal(err)
			}
		}
		var said bytes.Buffer
		got, err := (&app{err: &said}).sourceRows(t.Context(), r)
		if err != nil || len(got) != len(x.want) || !strings.Contains(said.String(), x.says) || x.says == "" &&
			said.Len() > 0 {
			t.Fatalf("%s: %+v, %v, said %q", x.what, got, err, said.String())
		}
		for i, w := range x.want {
			w.Source, w.About = x.sources[i].Path, true
			g := got[i]
			if g.Epochs = math.Round(g.Epochs*1e9) / 1e9; g.Epochs != math.Round(w.Epochs*1e9)/1e9 ||
				!(math.Abs(g.Share-w.Share) <= 1e-9) {
				t.Errorf("%s: %+v, want %+v", x.what, g, w)
			}
			if g.Epochs, g.Share = w.Epochs, w.Share; g != w {
				t.Errorf("%s: %+v, want %+v", x.what, g, w)
			}
		}
	}
	var b bytes.Buffer
	if err := printSources(&b, []sourceRow{{Source: "a b", Tokens: 12345, Share: 0.256, Epochs: 1.234, Bound: 2.5},
		{Source: "c", Tokens: 7, About: true}}); err != nil {
		t.Fatal(err)
	}
	if got := fields(b.String()); !slices.Equal(got,
		[]string{"tokens share epochs at most source", "12.35k 25.6 % 1.23 2.5 a b", "about 7 0.0 % – – c"}) {
		t.Errorf("%q", got)
	}
}
