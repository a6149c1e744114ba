package main

import (
	"fmt"
	"math"
	"sync"

	"antiphase/experiment"
)

// workLine shows the progress of an experiment: the current run, and the total. Several runs may report at once.
type workLine struct {
	mu   sync.Mutex
	a    *app
	line *line
}

func newWorkLine(a *app) *workLine { return &workLine{a: a, line: a.newLine()} }

func (w *workLine) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line.end()
	w.a.note(format, args...)
}

func (w *workLine) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line.end()
}

func (w *workLine) progress(p experiment.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.Stage != "" {
		w.line.show(prepareLine(p.Stage, p.Done, p.Total), false)
		return
	}
	s := fmt.Sprintf("[%d/%d] %s", min(p.Finished+1, p.Runs), p.Runs, p.Run)
	switch {
	case p.Row != nil:
		s += fmt.Sprintf(" | step %d/%d | loss %.4f | %s tok/s", p.Row.Step, p.Row.Total, p.Row.LossEMA,
			count(p.Row.TokS))
	case p.Task != "":
		s += " | asking " + p.Task
	}
	s += fmt.Sprintf(" | all %.1f %%", 100*p.Share)
	if !math.IsNaN(p.Left) {
		s += " | eta " + seconds(p.Left)
	}
	w.line.show(s, false)
}
