package task

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/ref"
	"antiphase/eval"
	"antiphase/layer"
	"antiphase/model/modeltest"
	"antiphase/tokenizer"
)

// subject is a tiny random model that reads bytes.
func subject(t testing.TB, d device.Device, arch string, context int) *eval.Subject {
	t.Helper()
	tok := tokenizer.Bytes()
	m := modeltest.New(t, d, modeltest.Tiny(arch, tok.Vocab(), context), layer.Memory{}, 11)
	return &eval.Subject{Name: arch, Model: m, Tokenizer: tok, Batch: 3}
}

// onArchs runs f for every architecture, in float64 and on the processor.
func onArchs(t *testing.T, context int, f func(t *testing.T, s *eval.Subject)) {
	d := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() { d.Close() })
	modeltest.EachArch(t, map[string]device.Device{"ref": ref.New(), "cpu": d},
		func(t *testing.T, d device.Device, arch string) {
			f(t, subject(t, d, arch, context))
		})
}

// plainLoss is a model's loss on a text, which nothing that was done to it before may change.
func plainLoss(t *testing.T, s *eval.Subject) float64 {
	t.Helper()
	x, err := meanLoss(t.Context(), s, "a text of some length")
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

func lookup(t testing.TB, name string) *eval.Task {
	t.Helper()
	all := All()
	i := slices.IndexFunc(all, func(x eval.Task) bool { return x.Name == name })
	if i < 0 {
		t.Fatalf("no task %s", name)
	}
	return &all[i]
}

// modelOf names a model whose context is known.
func modelOf(name string, lm eval.LM, context int) eval.Target {
	return eval.Target{Model: eval.Model{Name: name, Context: context}, LM: lm}
}

// prepared draws a task's questions for models without a tokenizer.
func prepared(t testing.TB, task *eval.Task, opt eval.Options, context int) *eval.Prepared {
	t.Helper()
	opt.Measure([]eval.Target{modelOf("stub", &knower{}, context)})
	j, err := opt.Prepare(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// run puts a task to models and gives their results by name.
func run(t testing.TB, task eval.Task, opt eval.Options, targets ...eval.Target) map[string]*eval.Result {
	t.Helper()
	ev, err := eval.Run(context.Background(), targets, []eval.Task{task}, opt)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*eval.Result{}
	for i := range ev.Models {
		out[ev.Models[i].Name] = &ev.Models[i].Results[0]
	}
	return out
}

// answer is a stub's result.
func answer(t testing.TB, task *eval.Task, opt eval.Options, lm eval.LM, context int) *eval.Result {
	t.Helper()
	return run(t, *task, opt, modelOf("stub", lm, context))["stub"]
}

func detail[T any](t testing.TB, r *eval.Result) T {
	t.Helper()
	var d T
	if err := json.Unmarshal(r.Detail, &d); err != nil {
		t.Fatal(err)
	}
	return d
}
