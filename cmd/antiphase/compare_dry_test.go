package main

import (
	"strings"
	"testing"

	"antiphase/device/cpu"
	"antiphase/experiment"
	"antiphase/recipe"
)

// The dry run of a model that does not fit says that its time is estimated, and measures nothing.
func TestForecastOfLargeModels(t *testing.T) {
	t.Setenv("ANTIPHASE_HOME", t.TempDir())
	d := cpu.New(cpu.Options{Threads: 1})
	defer d.Close()
	r, err := recipe.Nano("diff")
	if err != nil {
		t.Fatal(err)
	}
	const line = "nano diff is too large to be tried here; its time is estimated from its FLOPs\n"
	for left, expected := range map[int64]bool{1 << 40: false, 1 << 10: true} {
		var out, errs strings.Builder
		a := &app{out: &out, err: &errs}
		row := dryRow{Size: "nano", Arch: "diff", Runs: 1}
		err := row.measure(t.Context(), a, roomy{d, left}, &experiment.Run{Size: "nano", Arch: "diff", Recipe: r})
		if err != nil || row.Expected != expected || row.Seconds <= 0 {
			t.Errorf("%d bytes are left: %+v, %v", left, row, err)
		}
		if strings.Contains(errs.String(), "measuring") == expected {
			t.Errorf("%d bytes are left: %s", left, &errs)
		}
		f := &compareFlags{}
		err = f.presentForecast(a, d, []dryRow{row}, nil)
		if err != nil || strings.Contains(out.String(), line) != expected {
			t.Errorf("%d bytes are left: %s, %v", left, &out, err)
		}
		if strings.Contains(out.String(), "measured now") == expected ||
			strings.Contains(out.String(), ", estimated from FLOPs; judging") != expected {
			t.Errorf("%d bytes are left: %s", left, &out)
		}
	}
}

// Of runs that are finished nothing is measured, and the line about all times says what those of the others are.
func TestForecastOfTheRest(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 1})
	defer d.Close()
	r, err := recipe.Nano("diff")
	if err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	a := &app{out: &out, err: &errs}
	row := dryRow{Size: "nano", Arch: "diff", Runs: 2, Finished: 2}
	err = row.measure(t.Context(), a, d, &experiment.Run{Size: "nano", Arch: "diff", Recipe: r})
	if err != nil || row.Seconds != 0 || row.Parameters == 0 || row.Bytes == 0 || errs.Len() > 0 {
		t.Errorf("%+v, %v, %s", row, err, &errs)
	}
	measured, expected := dryRow{Runs: 1, Seconds: 2}, dryRow{Runs: 1, Seconds: 2, Expected: true}
	for _, x := range []struct {
		list        []dryRow
		says, lacks string
	}{
		{[]dryRow{row}, "\nall 2 runs are finished: nothing is left to train\n", "of training"},
		{[]dryRow{row, measured}, ", at the speed measured now; judging", "estimated"},
		{[]dryRow{row, expected}, ", estimated from FLOPs; judging", "measured"},
		{[]dryRow{expected, measured}, ", at the speeds measured now or estimated from FLOPs; judging", "finished"},
	} {
		out.Reset()
		f := &compareFlags{jobs: 1}
		err := f.presentForecast(a, d, x.list, nil)
		if text := out.String(); err != nil || !strings.Contains(text, x.says) || strings.Contains(text, x.lacks) {
			t.Errorf("%+v: %s, %v", x.list, text, err)
		}
	}
}
