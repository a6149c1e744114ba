package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/data"
)

// A plan is forecast in proportion to its steps and seeds, and its steps are what README says.
func TestForecast(t *testing.T) {
	f := &speedrunFlags{jobs: 1}
	step := 75 * time.Millisecond // of three architectures together: two quiet cores with AMX
	short, standard := f.forecast(plans[0], step), f.forecast(plans[1], step)
	if standard < 4*time.Minute || standard > 6*time.Minute || short >= standard {
		t.Errorf("short %s, standard %s; standard is to take about five minutes", short, standard)
	}
	many := &speedrunFlags{jobs: 2, seeds: 10}
	if got := many.forecast(plans[0], step); got != 5*short {
		t.Errorf("10 seeds, 2 at once: %s, one is %s", got, short)
	}
}

// Own text is half of the mixture, and what is generated suffices for the other half.
func TestOwnText(t *testing.T) {
	list, err := ownText([]string{"a.txt", "b.txt"}, plans[1])
	if err != nil || len(list) != 4 || !slices.Equal(list[2:], []string{"a.txt@0.25", "b.txt@0.25"}) {
		t.Fatalf("%v (%v)", list, err)
	}
	for i, perDocument := range []int{80, 160} {
		path, weight, _ := strings.Cut(list[i], "@")
		src, err := data.Open(path)
		if err != nil || weight != "0.25" {
			t.Fatalf("%s (%v)", list[i], err)
		}
		if want := plans[1].steps * 8 * 256 / 4 / perDocument; src.(*data.Synthetic).Docs != want {
			t.Errorf("%s: %d documents, want %d", path, src.(*data.Synthetic).Docs, want)
		}
	}
	if _, err := ownText([]string{"a.txt@0.5"}, plans[1]); err == nil {
		t.Error("a weight of its own was taken")
	}
}

// A finished speedrun that is run again keeps the time of the call that did the work.
func TestFinishedSeconds(t *testing.T) {
	dir := t.TempDir()
	if got := finishedSeconds(dir); got != 0 {
		t.Errorf("an empty folder took %g seconds", got)
	}
	for text, want := range map[string]float64{`{"seconds": 392.5, "table": []}`: 392.5, `{"seconds": `: 0} {
		if err := os.WriteFile(filepath.Join(dir, "report.json"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if got := finishedSeconds(dir); got != want {
			t.Errorf("%s: %g seconds, want %g", text, got, want)
		}
	}
}

// A slow machine measures a step of each architecture once, and stops between two when interrupted; a fast one takes
// the better of two.
func TestStepTimes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls := 0
	took := func(list ...time.Duration) func(string) (time.Duration, error) {
		calls = 0
		return func(string) (time.Duration, error) { calls++; return list[(calls-1)%len(list)], nil }
	}
	if sum, err := stepTimes(ctx, took(3*time.Millisecond, 2*time.Millisecond)); err != nil ||
		sum != 6*time.Millisecond || calls != 6 {
		t.Errorf("fast: %v, %v after %d measurements", sum, err, calls)
	}
	if sum, err := stepTimes(ctx, took(time.Minute)); err != nil || sum != 3*time.Minute || calls != 3 {
		t.Errorf("slow: %v, %v after %d measurements", sum, err, calls)
	}
	measure := took(time.Minute)
	if _, err := stepTimes(ctx, func(arch string) (time.Duration,
		error) {
		cancel()
		return measure(arch)
	}); !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("interrupted: %v after %d measurements", err, calls)
	}
}
