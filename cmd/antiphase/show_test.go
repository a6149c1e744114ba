package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/device"
	"antiphase/metrics"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/train"
)

// What show prints, line by line: of a run with everything that can be known, and of a folder with nothing of it.
func TestShownLines(t *testing.T) {
	at := time.Date(2026, 11, 17, 4, 5, 6, 0, time.UTC)
	s := shown{Dir: "d", Kind: "k", Parameters: 1_234_567, Bytes: 3 << 20, Stored: 5 << 19,
		DTypes: []string{"BF16", "F32"}, ModelType: "llama",
		Config: model.Config{Arch: "none", Layers: 2, Dim: 32, Heads: 6, KVHeads: 3, HeadDim: 8, FFN: 88,
			Context: 64, Vocab: 260},
		Lambda: []float64{0.25, -0.5}, LambdaOf: "the first id", LambdaMin: ptr(-0.75), LambdaMax: ptr(0.875),
		Tensors: []paramShape{{"w", []int{3, 4}}}}
	s.Run = &shownRun{Step: 3, Steps: 9, Tokens: 12345, Loss: 1.5, LossEMA: 1.25, Valid: ptr(2.5),
		Data: []recipe.Source{{Path: "a", Weight: 0.5}, {Path: "b"}}, DataSet: "0123456789abcdef", Epoch: ptr(0.756),
		Began: ptr(at), Saved: ptr(at.Add(time.Hour)), Parent: &train.Parent{Path: "p", SHA256: "fedcba9876543210"},
		Computed: []train.Computed{{From: 0, Identity: device.Identity{Device: "cpu", Precision: "fp32", Kernels: "x"}},
			{From: 2, Identity: device.Identity{Device: "cuda", Precision: "bf16", Kernels: "y"}}},
		Warnings: map[string]int{"loss": 2, "grad_norm": 1}, WarnedLast: 3}
	lines := func() []string {
		var b bytes.Buffer
		if err := printShown(&app{out: &output{Writer: &b}}, s); err != nil {
			t.Fatal(err)
		}
		return fields(b.String())
	}
	common := []string{"architecture none: none", "model type llama", "parameters 1.235M (3.0 MiB in float32)",
		"stored 2.5 MiB as BF16, F32", "shape 2 layers × 32, 6 heads in 3 groups of 8, ffn 88",
		"context 64 tokens, vocabulary 260"}
	want := append([]string{"folder d (k)", "step 3 of 9, 12.35k tokens", "loss 1.5000 (smoothed 1.2500)",
		"held-out loss 2.5000", "data a@0.5, b (set 0123456789ab, 0.76 epochs)",
		"began 2026-11-17 04:05:06 UTC", "saved 2026-11-17 05:05:06 UTC", "parent p (sha256 fedcba987654)",
		fmt.Sprint("computed from step 0 by ", s.Run.Computed[0]),
		fmt.Sprint("computed from step 2 by ", s.Run.Computed[1]),
		"warnings grad_norm at 1 steps, loss at 2 steps; the last at step 3"}, common...)
	want = append(want, "λ by layer 0.250 -0.500 (of the first id; it depends on the text)",
		"λ in training -0.750 to 0.875 over layers and heads at the last step", "w [3 4]")
	if got := lines(); !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	s.Run = &shownRun{Steps: 9, Data: []recipe.Source{{Path: "a"}}, DataSet: "01"}
	s.Lambda, s.LambdaMin, s.Tensors = nil, nil, nil
	if got, want := lines(), append([]string{"folder d (k)", "step 0 of 9, 0 tokens", "data a (set 01)",
		"warnings none"}, common...); !slices.Equal(got, want) {
		t.Errorf("before the first step:\n%s", strings.Join(got, "\n"))
	}
	s.Run = &shownRun{Steps: 9, Data: []recipe.Source{{Path: "a"}}}
	if got, want := lines(), append([]string{"folder d (k)", "step 0, imported: not trained here yet", "warnings none"},
		common...); !slices.Equal(got, want) {
		t.Errorf("imported:\n%s", strings.Join(got, "\n"))
	}
	s.Run, s.ModelType = nil, ""
	if got, want := lines(), append([]string{"folder d (k)", common[0]}, common[2:]...); !slices.Equal(got, want) {
		t.Errorf("not a run:\n%s", strings.Join(got, "\n"))
	}
}

// What show says of a run as JSON is what the run's own files say: its metrics, its state, its weights.
func TestShownRun(t *testing.T) {
	nanoRun(t)
	rows, err := metrics.Read("run/"+metrics.FileName, func(s string) { t.Error(s) })
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	get := func(name string, args ...string) (s shown) {
		t.Helper()
		code, out, errs := ran(t, append([]string{"show", name, "--json", "--device", "cpu"}, args...)...)
		if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil {
			t.Fatalf("%s: exit %d, %v: %s", name, code, err, errs)
		}
		return s
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }
	s := get("run", "--tensors")
	total := 0
	for _, x := range s.Tensors {
		n := 1
		for _, k := range x.Shape {
			n *= k
		}
		total += n
	}
	if s.Dir != "run/checkpoints/step-00000002" || s.Kind != kindRun || s.Step != 2 || s.Parameters != 33664 ||
		s.Bytes != 4*33664 || s.Stored != 4*33664 || total != 33664 ||
		!slices.Equal(s.DTypes, []string{"F32"}) || s.Vocab != 260 || s.ModelType != "" || s.LambdaOf != "" ||
		s.Config.Arch != "diff" {
		t.Errorf("%+v, %d in its tensors", s, total)
	}
	last := rows[1]
	if len(s.Lambda) != 2 || !near(s.Lambda[0], last.LambdaMin) || !near(s.Lambda[1], last.LambdaMax) ||
		!near(*s.LambdaMin, last.LambdaMin) || !near(*s.LambdaMax, last.LambdaMax) {
		t.Errorf("λ %v, %v to %v", s.Lambda, *s.LambdaMin, *s.LambdaMax)
	}
	r := s.Run
	if r.Step != 2 || r.Steps != 2 || r.Tokens != 2*4*32 || !near(r.Loss, last.Loss) ||
		!near(r.LossEMA, last.LossEMA) || !near(*r.Valid, last.Valid) || sourceNames(r.Data) != "synthetic:docs=200" ||
		len(r.DataSet) != 64 || !near(*r.Epoch, last.Epoch) || r.Parent != nil || len(r.Computed) != 1 ||
		len(r.Warnings) != 0 {
		t.Errorf("%+v", r)
	}
	if info, err := os.Stat("run/checkpoints/step-00000002/MANIFEST.json"); err != nil ||
		!r.Saved.Equal(info.ModTime().Truncate(time.Second)) || r.Began.After(*r.Saved) {
		t.Errorf("began %v, saved %v (%v)", r.Began, r.Saved, err)
	}
	if s := get("run"); s.Tensors != nil {
		t.Error("tensors without --tensors")
	}
	if code, _, errs := ran(t, "export", "run", "hf", "--dtype", "bfloat16", "-q"); code != 0 {
		t.Fatal(errs)
	}
	// Eight λ vectors of 8 values stay in float32; the head norm's gain is folded into the output projection.
	if s := get("hf"); s.Parameters != 33632 || s.Bytes != 4*33632 || s.Stored != 2*(33632-64)+4*64 || s.Dir != "hf" ||
		s.Kind != kindHF || s.ModelType != "diffllama" || s.Run != nil || s.Step != 0 ||
		!slices.Equal(s.DTypes, []string{"BF16", "F32"}) {
		t.Errorf("%+v", s)
	}
}

// A λ that depends on the text is that of a pass over the first id, one for each layer.
func TestShownLambdaOfText(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, errs := ran(t, "train", "--size", "nano", "--arch", "diff2", "--steps", "1", "--dir", "run", "-q",
		"--device", "cpu"); code != 0 {
		t.Fatal(errs)
	}
	code, out, errs := ran(t, "show", "run", "--json", "--device", "cpu", "--precision", "fp32")
	var s shown
	if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil || s.LambdaOf != "the first id" ||
		len(s.Lambda) != 2 {
		t.Fatalf("exit %d, %v, %s%s", code, err, out, errs)
	}
	l := loadedRun(t)
	for id, same := range map[int32]bool{0: true, 97: false} {
		if err := l.Model.Logits(&model.Batch{B: 1, T: 1, IDs: []int32{id}}, make([]float32, 260)); err != nil {
			t.Fatal(err)
		}
		got := l.Model.Lambdas(nil)
		if equal := math.Abs(got[0]-s.Lambda[0]) < 1e-6 && math.Abs(got[1]-s.Lambda[1]) < 1e-6; equal != same {
			t.Errorf("id %d: λ %v, shown %v", id, got, s.Lambda)
		}
	}
}

// Embedded models can be validated, and one that is not there is named with those that are.
func TestValidateEmbedded(t *testing.T) {
	if own := checks(t, 0, "pair:diff"); own["folder"].Detail != "pair:diff (packed)" ||
		own["tensors"].Detail != "3444288 parameters in I8" || len(own) != 5 {
		t.Errorf("an embedded model: %+v", own)
	}
	if none := checks(t, 3, "pair:none"); !strings.Contains(none["folder"].Detail, "there are diff, transformer") {
		t.Errorf("%+v", none)
	}
}
