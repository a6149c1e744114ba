package main

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"antiphase/eval/report"
	"antiphase/internal/vfs"
	"antiphase/metrics"
	"antiphase/recipe"
)

// metricsFile writes rows.
func metricsFile(t *testing.T, path string, rows ...metrics.Row) {
	t.Helper()
	w, err := metrics.Open(vfs.OS{}, path, 0, func(*metrics.Row) {}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i := range rows {
		if err := w.Write(&rows[i]); err != nil {
			t.Fatal(err)
		}
	}
}

// A run's curve for a report keeps every held-out loss, the last step, and the largest gradient norm since the point
// before.
func TestTrainingOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), metrics.FileName)
	var rows []metrics.Row
	for i := 1; i <= 900; i++ { // one row in three is a point
		r := metrics.Row{Step: i, LossEMA: float64(i), Valid: math.NaN(), GradNorm: 1, TokS: float64(1000 - i),
			Tokens: int64(10 * i)}
		if i == 3 {
			r.GradNorm = 7
		}
		if i == 6 {
			r.Valid = 2.5
		}
		rows = append(rows, r)
	}
	metricsFile(t, path, rows...)
	got, err := trainingOf(&app{}, "name", path)
	if err != nil || got.Model != "name" || got.Tokens != 9000 || got.TokensPerSecond != 550 || got.Steady == nil {
		t.Fatalf("%+v (%v)", got, err)
	}
	held := 2.5
	want := []report.CurvePoint{{Step: 1, Loss: 1, Grad: 1}, {Step: 4, Loss: 4, Grad: 7},
		{Step: 6, Loss: 6, Grad: 1, Valid: &held}, {Step: 7, Loss: 7, Grad: 1}}
	if !reflect.DeepEqual(got.Curve[:4], want) || len(got.Curve) != 302 || got.Curve[301].Step != 900 {
		t.Errorf("%d points: %+v … %+v", len(got.Curve), got.Curve[:4], got.Curve[len(got.Curve)-1])
	}
	points, err := heldOutLosses(&app{}, path)
	if err != nil || len(points) != 1 || points[0].X != 60 || points[0].Loss != 2.5 {
		t.Errorf("%+v (%v)", points, err)
	}
	none := filepath.Join(t.TempDir(), metrics.FileName)
	metricsFile(t, none, rows[0])
	if _, err := heldOutLosses(&app{}, none); err == nil || !strings.Contains(err.Error(), "no held-out loss") {
		t.Error(err)
	}
}

// The points of run folders by architecture, in order: by parameters the last loss of each, by tokens all of one.
func TestReadCurves(t *testing.T) {
	dir := t.TempDir()
	for name, arch := range map[string]string{"a": "diff", "b": "transformer", "c": "diff"} {
		r, err := recipe.Nano(arch)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(r)
		if err := errors.Join(err, os.MkdirAll(filepath.Join(dir, name), 0o755),
			os.WriteFile(filepath.Join(dir, name, "recipe.json"), b, 0o644)); err != nil {
			t.Fatal(err)
		}
		base := float64(name[0] - 'a')
		metricsFile(t, filepath.Join(dir, name, metrics.FileName), metrics.Row{Step: 1, Valid: base + 3, Tokens: 100},
			metrics.Row{Step: 2, Valid: base + 2, Tokens: 200})
	}
	at := func(names ...string) []string { return prefixed(dir+string(filepath.Separator), names) }
	curves, err := readCurves(&app{}, at("a", "b", "c"), "parameters")
	if err != nil || len(curves) != 2 || curves[0].Name != "diff" || curves[1].Name != "transformer" ||
		len(curves[0].Points) != 2 || curves[0].Points[1].Loss != 4 ||
		curves[0].Points[0].X != 33664 || curves[1].Points[0].Loss != 3 || curves[1].Points[0].X != 33568 {
		t.Errorf("%+v (%v)", curves, err)
	}
	curves, err = readCurves(&app{}, at("b", "a"), "tokens")
	if err != nil || curves[0].Name != "transformer" || len(curves[1].Points) != 2 || curves[1].Points[0].X != 100 ||
		curves[1].Points[0].Loss != 3 {
		t.Errorf("%+v (%v)", curves, err)
	}
	if _, err := readCurves(&app{}, at("a", "c"), "tokens"); err == nil ||
		!strings.Contains(err.Error(), "a second run of diff") {
		t.Error(err)
	}
	if _, err := readCurves(&app{}, at("none"), "tokens"); err == nil ||
		!strings.Contains(err.Error(), "is not a run folder") {
		t.Error(err)
	}
}
