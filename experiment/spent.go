package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"antiphase/data"
	"antiphase/eval"
	"antiphase/internal/vfs"
	"antiphase/train"
)

const timeName = "time.json"

// Spent is the time of one call by purpose, in seconds of all its devices: a waiting device counts too.
type Spent struct {
	Began      time.Time `json:"began"`
	Total      float64   `json:"total"`
	Training   float64   `json:"training"`   // steps, including loading and reporting
	Evaluating float64   `json:"evaluating"` // held-out losses, probes and tasks
	Data       float64   `json:"data"`       // tokenizer and token set
	Saving     float64   `json:"saving"`     // checkpoints, as far as training waits for them
	Starting   float64   `json:"starting"`   // runs: memory, weights, files, up to the first step
	Idle       float64   `json:"idle"`       // devices without a run: none is left, or others must end first
	Runs       int       `json:"runs"`       // finished in this call
}

// String is one sentence.
func (s *Spent) String() string {
	share := func(x float64) float64 { return 100 * x / s.Total }
	return fmt.Sprintf("%.1f %% of the time went to training, %.1f %% to evaluating, %.1f %% to data, %.1f %% to "+
		"checkpoints, %.1f %% to starting runs, %.1f %% to anything else; %.1f %% passed without a run",
		share(s.Training), share(s.Evaluating), share(s.Data), share(s.Saving), share(s.Starting),
		share(s.Total-s.Training-s.Evaluating-s.Data-s.Saving-s.Starting-s.Idle), share(s.Idle))
}

// stopwatch accounts for the time of a call.
type stopwatch struct {
	mu      sync.Mutex
	spent   Spent
	devices int
	busy    float64              // seconds of all runs
	probed  map[string]float64   // seconds of probes that are not yet in a step's row
	mark    map[string]time.Time // when a run began, or reported its last step
	begun   map[string]bool      // runs that have reported a step
	before  []Spent              // earlier calls
}

// start begins the account of a call.
func (w *stopwatch) start(devices int) {
	w.spent.Began, w.devices, w.probed = time.Now(), devices, map[string]float64{}
	w.mark, w.begun = map[string]time.Time{}, map[string]bool{}
}

// readSpent reads the record of earlier calls. A damaged one is an error, because the next write would replace it.
func readSpent(dir string) (calls []Spent, err error) {
	path := filepath.Join(dir, timeName)
	b, err := vfs.ReadFile(vfs.OS{}, path, maxSpec)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("--dir: %w", err)
	}
	if err := json.Unmarshal(b, &calls); err != nil {
		return nil, &data.CorruptError{File: path, Fault: fmt.Sprintf("want a list of the times of earlier calls (%v)"+
			": restore it, or delete it, no result depends on it", err)}
	}
	return calls, nil
}

// prepared adds the time since begin to the data, which all devices wait for.
func (w *stopwatch) prepared(begin time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spent.Data += time.Since(begin).Seconds() * float64(w.devices)
}

// step adds a step's row. Probes since the last one are part of its evaluation.
func (w *stopwatch) step(run string, r *train.Row) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := r.StepMS / 1000
	w.spent.Training += known
	if eval.Finite(r.EvalS) {
		w.spent.Evaluating += r.EvalS
		known += r.EvalS
	}
	if eval.Finite(r.SaveS) {
		w.spent.Saving += r.SaveS
		known += r.SaveS
	}
	if since, ok := w.mark[run]; ok && !w.begun[run] {
		w.spent.Starting += max(time.Since(since).Seconds()-known, 0)
	}
	w.mark[run], w.begun[run] = time.Now(), true
	delete(w.probed, run)
}

// over adds the time of a run since it was taken up.
func (w *stopwatch) over(begin time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy += time.Since(begin).Seconds()
}

// begin starts the clock of a run.
func (w *stopwatch) begin(run string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mark[run], w.begun[run] = time.Now(), false
}

// trained adds the time since the last step, less that of its probe: the last checkpoint. A run without a step in this
// call has only been started.
func (w *stopwatch) trained(run string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	since := max(time.Since(w.mark[run]).Seconds()-w.probed[run], 0)
	if w.begun[run] {
		w.spent.Saving += since
	} else {
		w.spent.Starting += since
	}
}

// probe records the time of a probe; only that of the last step is in no row.
func (w *stopwatch) probe(run string, begin time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.probed[run] += time.Since(begin).Seconds()
}

// judged adds the time of a run's tasks, and of the probe after its last step.
func (w *stopwatch) judged(run string, begin time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spent.Evaluating += time.Since(begin).Seconds() + w.probed[run]
	delete(w.probed, run)
	w.spent.Runs++
}

// read returns the current totals.
func (w *stopwatch) read() Spent {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.spent
	s.Total = time.Since(s.Began).Seconds() * float64(w.devices)
	s.Idle = max(s.Total-s.Data-w.busy, 0)
	return s
}

// write adds this call to the folder's record.
func (w *stopwatch) write(dir string) error {
	b, err := json.MarshalIndent(append(slices.Clone(w.before), w.read()), "", " ")
	if err != nil {
		return err
	}
	return vfs.WriteFile(vfs.OS{}, filepath.Join(dir, timeName), append(b, '\n'))
}
