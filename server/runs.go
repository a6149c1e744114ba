package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"

	record "antiphase/metrics" // the server has metrics of its own
)

// Limits of the runs' routes: the maximum size of one response, whatever the folder holds.
const (
	maxRuns     = 1000
	maxLooks    = 1 << 13 // entries of folders looked at for the list
	maxRunBytes = 2 << 20 // of metrics.jsonl read for one answer
	runDepth    = 3       // folders below the root in which runs are looked for

	maxSamples     = 5
	maxSampleBytes = 64 << 10 // of samples.jsonl read for one answer
)

// runPattern is the form of run names: folder names separated by slashes, none of which begins with a dot.
var runPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+=-]{0,127}(/[A-Za-z0-9_][A-Za-z0-9._+=-]{0,127}){0,2}$`)

// Files of a run that are read.
const (
	metricsFile = record.FileName
	samplesFile = "samples.jsonl"
)

// runRoutes show the runs of a folder.
type runRoutes struct{ *core }

// listRuns lists the runs below the folder: those that have a metrics.jsonl. more says that there may be others.
func (t *runRoutes) listRuns(w http.ResponseWriter, _ *http.Request) {
	l := runList{root: t.cfg.Runs, most: maxLooks}
	l.find(runDepth)
	slices.Sort(l.names)
	list := []any{}
	for _, name := range l.names {
		list = append(list, map[string]string{"id": name, "object": "run"})
	}
	t.json(w, http.StatusOK, map[string]any{"object": "list", "data": list, "more": l.more})
}

// runList is a walk over a folder of runs. The folder may be any, so the number of entries looked at is bounded.
type runList struct {
	root   *os.Root
	most   int // entries to look at
	names  []string
	looked int
	more   bool // a bound was reached
}

// find walks the folder level by level, so that the bound cuts off what is deepest.
func (l *runList) find(depth int) {
	for level := []string{"."}; depth > 0; depth-- {
		var next []string
		for _, dir := range level {
			next = append(next, l.look(dir)...)
		}
		level = next
	}
}

// look takes the runs of one folder and returns its other folders. What cannot be read is skipped: a run may be being
// created or deleted.
func (l *runList) look(dir string) (folders []string) {
	f, err := l.root.Open(dir)
	if err != nil {
		return nil
	}
	entries, err := f.ReadDir(l.most + 1) // one more shows that the bound was reached
	f.Close()
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if l.looked++; l.looked > l.most || len(l.names) >= maxRuns {
			l.more = true
			return nil
		}
		name := path.Join(dir, e.Name())
		if !e.IsDir() || !runPattern.MatchString(name) {
			continue
		}
		if info, err := l.root.Lstat(path.Join(name, metricsFile)); err == nil && info.Mode().IsRegular() {
			l.names = append(l.names, name)
		} else {
			folders = append(folders, name)
		}
	}
	return folders
}

// getRun returns the rows of a run after a cursor, which is 0 at first and then comes from the previous response.
func (t *runRoutes) getRun(w http.ResponseWriter, r *http.Request) {
	id, q := r.PathValue("id"), r.URL.Query().Get("cursor")
	cursor := int64(0)
	if q != "" {
		var err error
		if cursor, err = strconv.ParseInt(q, 10, 64); err != nil || cursor < 0 {
			t.fail(w, r, invalid("cursor", "is %s, must be what an earlier answer said", excerpt([]byte(q))))
			return
		}
	}
	f, err := t.openRun(id)
	if err != nil {
		t.fail(w, r, err)
		return
	}
	defer f.Close()
	rows, next, reset, err := record.Tail(f, cursor, maxRunBytes)
	if err != nil {
		t.fail(w, r, err)
		return
	}
	out := []any{}
	for i := range rows {
		out = append(out, rowFields(&rows[i]))
	}
	if reset {
		cursor = 0
	}
	t.json(w, http.StatusOK, map[string]any{
		"object": "run", "id": id, "cursor": next, "reset": reset, "more": next-cursor >= maxRunBytes,
		"rows": out, "samples": t.samples(id),
	})
}

// runSample is a generated sample of a model in training.
type runSample struct {
	Step   int    `json:"step"`
	Prompt string `json:"prompt"`
	Text   string `json:"text"`
}

// samples are the last that a run has written, newest first; none if it writes none.
func (t *runRoutes) samples(id string) []runSample {
	out := []runSample{}
	f, err := t.openIn(id, samplesFile)
	if err != nil {
		return out
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return out
	}
	b := make([]byte, min(info.Size(), maxSampleBytes))
	n, err := f.ReadAt(b, info.Size()-int64(len(b)))
	if err != nil && err != io.EOF {
		return out
	}
	lines := bytes.Split(b[:n], []byte("\n"))
	for i := len(lines) - 1; i >= 0 && len(out) < maxSamples; i-- {
		var v runSample
		if json.Unmarshal(lines[i], &v) != nil || v.Step < 1 ||
			slices.ContainsFunc(out, func(o runSample) bool { return o.Step == v.Step }) {
			continue // part of a line, or a step that was repeated after a resume
		}
		out = append(out, v)
	}
	return out
}

// openRun opens a run's metrics.
func (t *runRoutes) openRun(id string) (*os.File, error) { return t.openIn(id, metricsFile) }

// openIn opens a file of a run. The name is checked, and the root prevents links from leading outside.
func (t *runRoutes) openIn(id, file string) (*os.File, error) {
	missing := &apiError{
		Status:  http.StatusNotFound,
		Type:    typeInvalid,
		Param:   "id",
		Code:    "run_not_found",
		Message: "there is no such run; GET /v1/runs lists them",
	}
	if !runPattern.MatchString(id) {
		return nil, missing
	}
	name := path.Join(id, file)
	info, err := t.cfg.Runs.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, missing
	}
	f, err := t.cfg.Runs.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing
	}
	return f, err
}

// rowFields are the fields that curves use; a number that was not measured is omitted.
func rowFields(r *record.Row) map[string]any {
	m := map[string]any{"step": r.Step, "total_steps": r.Total}
	for name, v := range map[string]float64{
		"loss": r.Loss, "loss_ema": r.LossEMA, "valid_loss": r.Valid, "grad_norm": r.GradNorm,
		"lr": r.LR, "tok_s": r.TokS, "time": r.Time,
	} {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			m[name] = v
		}
	}
	if len(r.Lambda) > 0 &&
		!slices.ContainsFunc(r.Lambda, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
		m["lambda"] = r.Lambda
	}
	if names := r.Warn.Names(); len(names) > 0 {
		m["warn"] = names
	}
	return m
}
