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
		row, err := dryOf(t.Context(), a, roomy{d, left}, &experiment.Run{Size: "nano", Arch: "diff", Recipe: r})
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
	}
}
