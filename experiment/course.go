package experiment

import (
	"math"
	"time"

	"antiphase/train"
)

// course measures a run for the forecast.
type course struct {
	prospect
	mark   time.Time // when the run, or its judging, began
	points []point   // of this call, a thirty-second of the run apart
}

// point says when a run had trained on so many tokens.
type point struct {
	at     time.Time
	tokens int64
}

// The speed of a run is that of its last quarter: long enough to have held-out losses and probes in it.
const (
	pointsOfRun = 32
	window      = pointsOfRun / 4
)

func (c *course) begin(now time.Time) { c.stage, c.mark = training, now }

// step adds a step's row.
func (c *course) step(now time.Time, row *train.Row) {
	if c.steps++; c.steps == 1 {
		c.start = now.Sub(c.mark).Seconds()
	}
	c.trained = row.Tokens
	if c.steps > 2 && row.TokS > 0 && !math.IsInf(row.TokS, 0) && (c.quick == 0 || 1/row.TokS < c.quick) {
		c.quick = 1 / row.TokS // a device measures and records in its first two steps
	}
	if n := len(c.points); n == 0 || c.trained-c.points[n-1].tokens >= c.tokens/pointsOfRun {
		c.points = append(c.points, point{now, c.trained})
	}
	from := c.points[max(len(c.points)-1-window, 0)]
	if did := c.trained - from.tokens; did > 0 && did >= c.tokens/pointsOfRun {
		c.perToken = now.Sub(from.at).Seconds() / float64(did)
	}
	if c.trained >= c.tokens {
		c.judged(now)
	}
}

// judged begins the judging of the run, or what comes before it after the last step.
func (c *course) judged(now time.Time) {
	if c.stage != judging {
		c.stage, c.mark, c.trained = judging, now, c.tokens
	}
}

// end ends the run.
func (c *course) end(now time.Time) {
	if c.stage == judging {
		c.judge = now.Sub(c.mark).Seconds()
	}
	c.stage = finished
}

// at is the run as the forecast sees it.
func (c *course) at(now time.Time) prospect {
	p := c.prospect
	if p.stage == judging {
		p.judge = now.Sub(c.mark).Seconds()
	}
	return p
}

// survey is the courses of the runs of this process, in the order in which they begin.
type survey struct {
	courses []*course
	by      map[string]*course // the same, by the names of the runs
	tuning  int                // the first ones select learning rates
	workers int
	warned  map[side]bool

	last   outlook
	looked time.Time
}

// lookEvery is the time between forecasts: steps may take less than one.
const lookEvery = time.Second / 10

// lay makes the courses of runs. Those of the last phase that are among them continue.
func (s *survey) lay(runs []Run) {
	last := s.by
	s.courses, s.by = nil, map[string]*course{}
	flops := map[side]float64{}
	for i := range runs {
		r := &runs[i]
		at := side{r.Size, r.Arch}
		if flops[at] == 0 {
			_, flops[at] = r.Recipe.Model.FLOPs(r.Recipe.Train.SeqLen)
		}
		c := last[r.Name()]
		if c == nil {
			c = &course{prospect: prospect{side: at, flops: flops[at], tokens: r.tokens()}}
		}
		s.courses = append(s.courses, c)
		s.by[r.Name()] = c
	}
}

// finished takes from rows which runs were finished, in this call or an earlier one, here or elsewhere. Speeds of this
// machine are used as long as there are none of this call.
func (s *survey) finished(rows []Row, machine string) {
	speed := trainSpeed
	if s.workers > 1 {
		speed = sharedSpeed
	}
	for i := range rows {
		r := &rows[i]
		c := s.by[r.Run]
		if c == nil {
			continue
		}
		switch {
		case r.Measure == speed && r.Machine == machine && r.Value > 0:
			c.past = 1 / r.Value
		case r.Measure == Failed && r.Steps > 0:
			c.stage, c.trained = finished, int64(r.Value*float64(c.tokens)/float64(r.Steps))
		case r.Measure == Finished:
			c.stage, c.trained = finished, c.tokens
		}
	}
}

// look is the forecast. warn is called once for every side that is slow.
func (s *survey) look(now time.Time, warn func(format string, args ...any)) outlook {
	if !s.looked.IsZero() && now.Sub(s.looked) < lookEvery {
		return s.last
	}
	runs := make([]prospect, len(s.courses))
	for i, c := range s.courses {
		runs[i] = c.at(now)
	}
	out := forecast(runs, s.tuning, s.workers)
	if out.share < s.last.share && s.last.share-out.share < 0.01 {
		out.share = s.last.share // measurements vary
	}
	s.last, s.looked = out, now
	for _, x := range slows(speeds(runs)) {
		if at := (side{x.Size, x.Arch}); !s.warned[at] {
			s.warned[at] = true
			usual := forecast(x.usually(runs), s.tuning, s.workers)
			warn("warning: %s; %s left, at the usual speed %s", x.String(), span(out.left), span(usual.left))
		}
	}
	return out
}

// span is a time in words.
func span(seconds float64) string {
	return time.Duration(max(seconds, 1) * float64(time.Second)).Round(time.Second).String()
}
