package main

import (
	"encoding/json"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"antiphase/bench"
	"antiphase/device/cpu"
	"antiphase/infer"
	"antiphase/model"
)

// A row of bench says where, when and from which program it comes.
func TestStampOfRows(t *testing.T) {
	turn, read := ceilingTime, ceilingBytes
	defer func() { ceilingTime, ceilingBytes = turn, read }()
	ceilingTime, ceilingBytes = time.Millisecond, 4<<20
	begin := time.Now().Truncate(time.Second)
	code, out, errs := ran(t, "bench", "gemm", "--shape", "2x3x4", "--reps", "1", "--warmup", "1", "--json", "--device",
		"cpu", "--threads", "1", "--precision", "fp32", "-q")
	var rows []bench.Row
	if err := json.Unmarshal([]byte(out), &rows); code != 0 || err != nil || len(rows) != 4 {
		t.Fatalf("exit %d, %v, %d rows\n%s", code, err, len(rows), errs)
	}
	d := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
	defer d.Close()
	want := bench.Machine{Device: d.Name(), OS: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU()}
	for _, r := range rows {
		if r.Machine != want || r.Commit != version() || r.Time.Before(begin) || r.Time.After(time.Now()) ||
			r.Command == "" {
			t.Errorf("%+v, want %+v", r.Stamp, want)
		}
	}
	if b := built(); b.Go != runtime.Version() || b.Platform != want.OS || b.Version == "" {
		t.Errorf("%+v", b)
	}
}

// A served model is known by its name and has the folder's facts; scaling names the folder that is no run.
func TestFactsOfServedModels(t *testing.T) {
	nanoRun(t)
	l := loadedRun(t)
	begin := time.Now()
	a := &app{quiet: true}
	f := &serveFlags{options: infer.Options{Slots: 3, Lock: &sync.Mutex{}}}
	m, err := a.serveModel(l.Model.Device(), f, "name=run")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c := l.Model.Config
	if m.ID != "name" || m.Slots != 3 || m.Context != c.Context || m.Params != model.Table(c).Count() ||
		m.Arch != c.Arch || m.Template != nil || m.Tokenizer == nil ||
		!reflect.DeepEqual(m.Defaults, infer.Sampling{Temperature: 1}) || m.Print != fingerprint(l.Model.Device(), l) ||
		m.Created.Before(begin) || m.Created.After(time.Now()) {
		t.Errorf("%+v", m)
	}
	if _, err := a.serveModel(l.Model.Device(), f, "a b=run"); exitCode(err) != exitUsage ||
		!strings.HasSuffix(err.Error(), "; NAME=FOLDER gives another") {
		t.Error(err)
	}
	for dir, want := range map[string]string{"none": "none is not a run folder: ", "run": ""} {
		curves, err := readCurves(a, []string{dir}, "parameters")
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
		if err == nil && (len(curves) != 1 || curves[0].Name != c.Arch || curves[0].Points[0].X != float64(m.Params)) {
			t.Errorf("%+v", curves)
		}
	}
	if _, err := readCurves(a, []string{"run", "run"}, "tokens"); err == nil ||
		err.Error() != "run: a second run of diff; by tokens there is one of each architecture" {
		t.Error(err)
	}
}
