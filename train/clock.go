package train

import (
	"math"
	"time"

	"antiphase/metrics"
	"antiphase/recipe"
)

// Row is one step of metrics.jsonl.
type Row = metrics.Row

// rowWriter receives rows: a metrics.Writer.
type rowWriter interface {
	Write(*Row) error
	Sync() error
	Close()
}

// clock divides the time between two rows into the step, its evaluation and saving, and computes rates of the step
// only. Everything that is neither evaluation nor saving counts as the step: loading, computing, reporting.
type clock struct {
	now   func() time.Time
	flops float64 // per token
	peak  float64 // FLOP/s of a matrix product, the machine's own

	begin, mark      time.Time
	step, eval, save time.Duration // since the last row
	rows             int           // of this process
	ms               float64       // smoothed
}

func (c *clock) start(r recipe.Recipe) {
	_, c.flops = r.Model.FLOPs(r.Train.SeqLen)
	c.begin = c.now()
	c.mark, c.rows = c.begin, 0
}

// lap adds the time since the last call to one of the three accounts.
func (c *clock) lap(account *time.Duration) {
	now := c.now()
	*account += now.Sub(c.mark)
	c.mark = now
}

// fill sets the row's times and starts the next interval. The first step of a process is slower and does not count in
// the estimate of the remaining time.
func (c *clock) fill(r *Row, s State, rec recipe.Recipe) {
	c.lap(&c.step)
	ms := float64(c.step) / float64(time.Millisecond)
	switch c.rows++; {
	case c.rows <= 2:
		c.ms = ms
	default:
		c.ms = 0.9*c.ms + 0.1*ms
	}
	tokens := float64(rec.Train.Batch * rec.Train.SeqLen)
	r.Step, r.Total, r.Tokens = s.Step, rec.Train.Steps, s.Tokens
	r.Percent = 100 * float64(s.Step) / float64(rec.Train.Steps)
	r.StepMS, r.TokS = ms, tokens/(ms/1000)
	r.MFU = r.TokS * c.flops / c.peak
	r.ETA = c.ms / 1000 * float64(rec.Train.Steps-s.Step)
	r.Wall = c.mark.Sub(c.begin).Seconds()
	r.Time = float64(c.mark.UnixMilli()) / 1000
	r.EvalS, r.SaveS = spent(c.eval), spent(c.save)
	c.step, c.eval, c.save = 0, 0, 0
}

// spent is a duration in seconds, NaN for none.
func spent(d time.Duration) float64 {
	if d == 0 {
		return math.NaN()
	}
	return d.Seconds()
}
