package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"antiphase/checkpoint"
	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/internal/simd"
	"antiphase/recipe"
)

// on gives options of a folder on a CPU of one precision; lines collects what is said.
func on(t *testing.T, dir string, p cpu.Precision) (opt Options, lines *strings.Builder) {
	d := cpu.New(cpu.Options{Threads: 1, Precision: p})
	t.Cleanup(func() { d.Close() })
	lines = &strings.Builder{}
	return Options{Dir: dir, Device: d, Say: func(f string, args ...any) { fmt.Fprintf(lines, f+"\n", args...) }}, lines
}

// A resume with another precision or other kernels is refused, names both, and continues when asked to; the state then
// tells.
func TestResumeElsewhere(t *testing.T) {
	dir := t.TempDir()
	r := nano(t, "diff", "train.steps=9")
	fp32, _ := on(t, dir, cpu.FP32)
	stopAt(t, r, fp32, 3)
	bf16, said := on(t, dir, cpu.BF16)
	_, err := Run(context.Background(), r, bf16)
	if !errors.Is(err, ErrElsewhere) || !strings.Contains(err.Error(), "fp32") ||
		!strings.Contains(err.Error(), "bf16") {
		t.Fatalf("another precision: %v", err)
	}
	bf16.Inexact = true
	stopAt(t, r, bf16, 5)
	if !strings.Contains(said.String(), "not be bit-identical") {
		t.Errorf("said %q", said)
	}
	c := newestState(t, dir).Computed
	if len(c) != 2 || c[0].From != 0 || c[0].Precision != "fp32" || c[1].From != 3 || c[1].Precision != "bf16" {
		t.Errorf("the state says %+v", c)
	}
	bf16.Inexact = false
	if res := mustRun(t, r, bf16); res.Resumed != 5 {
		t.Errorf("resumed from %d", res.Resumed)
	}
	if _, err := Run(context.Background(), r, fp32); err != nil {
		t.Errorf("a finished run opened elsewhere: %v", err)
	}
	otherKernels(t, nano(t, "diff", "train.steps=10"), bf16)
}

// otherKernels resumes with every other set of kernels, which those of other bits refuse, then with the run's own.
func otherKernels(t *testing.T, r recipe.Recipe, opt Options) {
	t.Helper()
	before, own := simd.Name(), device.IdentityOf(opt.Device)
	defer func() { _ = simd.Use(before) }()
	for _, name := range simd.Names() {
		if err := simd.Use(name); err != nil {
			t.Fatal(err)
		}
		if device.IdentityOf(opt.Device) == own {
			continue
		}
		if _, err := Run(context.Background(), r, opt); !errors.Is(err, ErrElsewhere) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("kernels %s after %s: %v", name, before, err)
		}
	}
	if err := simd.Use(before); err != nil {
		t.Fatal(err)
	}
	if res := mustRun(t, r, opt); res.Resumed != 9 {
		t.Errorf("resumed from %d", res.Resumed)
	}
}

// A state that does not say what computed it, as older programs wrote it, resumes with one line.
func TestResumeOfOldState(t *testing.T) {
	dir := t.TempDir()
	r := nano(t, "diff", "train.steps=6")
	opt, said := on(t, dir, cpu.FP32)
	stopAt(t, r, opt, 3)
	rewriteState(t, dir, func(s map[string]any) { delete(s, "computed") })
	if res := mustRun(t, r, opt); res.Resumed != 3 {
		t.Errorf("resumed from %d", res.Resumed)
	}
	if strings.Count(said.String(), "does not say what computed it") != 1 {
		t.Errorf("said %q", said)
	}
	if c := newestState(t, dir).Computed; len(c) != 1 || c[0].From != 3 {
		t.Errorf("the state says %+v", c)
	}
}

// rewriteState saves the newest checkpoint again with another state.json.
func rewriteState(t *testing.T, dir string, change func(map[string]any)) {
	t.Helper()
	store, c := newest(t, dir, checkpoint.Options{})
	var list []checkpoint.File
	for name, b := range files(t, c.Dir) {
		if name == "MANIFEST.json" {
			continue
		}
		if name == "state.json" {
			s := map[string]any{}
			d := json.NewDecoder(bytes.NewReader(b))
			d.UseNumber()
			if err := d.Decode(&s); err != nil {
				t.Fatal(err)
			}
			change(s)
			b, _ = json.Marshal(s)
		}
		list = append(list, checkpoint.File{Name: name, Write: bytesTo(b)})
	}
	if err := store.Save(c.Step, list); err != nil {
		t.Fatal(err)
	}
}
