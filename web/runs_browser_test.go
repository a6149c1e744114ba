package web_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"antiphase/metrics"
)

// train appends rows to a run as training does.
func (r *rig) train(name string, from, to int, bend float64) {
	r.t.Helper()
	dir := filepath.Join(r.runs, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "metrics.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	for i := from; i <= to; i++ {
		row := metrics.Row{
			Step:     i,
			Total:    400,
			Loss:     bend + 5/float64(i),
			LossEMA:  bend + 5/float64(i),
			Valid:    math.NaN(),
			GradNorm: 1 / float64(i),
			TokS:     1000 + float64(i),
			Lambda:   []float64{0.2, 0.5 + bend/10},
		}
		if i%20 == 0 {
			row.Valid = row.Loss + 0.1
		}
		if _, err := f.Write(row.Append(nil)); err != nil {
			r.t.Fatal(err)
		}
	}
}

func TestRunsInBrowser(t *testing.T) {
	r := newRig(t)
	r.train("first", 1, 100, 1)
	r.train("second", 1, 60, 2)
	p := r.page(looks[0], "/#runs")
	p.Wait(
		`document.querySelectorAll(".chart path.line").length >= 12`,
	) // five charts of two runs, λ in two layers each
	if n := p.Number(`[...document.querySelectorAll(".chart-box")].filter(e => !e.hidden).length`); n != 5 {
		t.Errorf("%v charts", n)
	}
	p.Wait(`/step 100 of 400, loss 1\.0500/.test(document.querySelector("#runs-list").textContent)`)

	// The curves follow the file, and a run that begins later appears.
	r.train("first", 101, 150, 1)
	r.train("third", 1, 30, 3)
	p.Wait(
		`/step 150 of 400/.test(document.querySelector("#runs-list").textContent) && document.querySelectorAll("#runs-list li").length === 3`,
	)
	const read = `/step \d+: first [\d.]+ · second [\d.]+/.test(document.querySelector(".chart-read").textContent)`
	// The new run's line in the list moves the chart from under the pointer.
	for i := 0; i < 20 && p.Number("+"+read) == 0; i++ {
		p.Hover(".chart", 0.5+0.01*float64(i), 0.5)
		p.Eval("new Promise(f => setTimeout(f, 250))", nil)
	}
	p.Wait(read)
	say := []byte(`{"step":150,"prompt":"Once","text":" <b>upon</b> a time"}` + "\n")
	if err := os.WriteFile(filepath.Join(r.runs, "first", "samples.jsonl"), say, 0o644); err != nil {
		t.Fatal(err)
	}
	p.Wait(`/first, step 150: Once <b>upon<.b> a time/.test(document.querySelector("#runs-samples").textContent)`)
	audit(t, p, "runs")
	p.Click(`label[for="run-1"]`)
	p.Wait(`!/second/.test(document.querySelector(".chart-read").textContent)`)
	p.Click("#runs-pause")
	r.train("first", 151, 160, 1)
	p.Eval("new Promise(f => setTimeout(f, 2500))", nil)
	if p.Number(`/step 160/.test(document.querySelector("#runs-list").textContent) ? 1 : 0`) != 0 {
		t.Error("a paused view goes on")
	}
}
