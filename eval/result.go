package eval

import (
	"encoding/json"
	"fmt"
	"math"
)

// Result is what a task found out about one model.
type Result struct {
	Task    string          `json:"task"`
	Group   string          `json:"group,omitempty"`
	Version int             `json:"version"`
	Shots   int             `json:"shots"`
	N       int             `json:"n"`
	Seconds float64         `json:"seconds"` // spent asking, in this call and in those that it continued
	Metrics []Metric        `json:"metrics"` // the headline first
	Config  map[string]any  `json:"config,omitempty"`
	Detail  json.RawMessage `json:"detail,omitempty"` // the task's own figures; see the type that its Finish writes

	Answers []Answer `json:"-"`
}

// Metric is a named number with its standard error.
type Metric struct {
	Name string `json:"name"`
	Mean
	Better direction `json:"better"`
}

// Metric finds a metric by name.
func (r *Result) Metric(name string) (Metric, bool) {
	for _, m := range r.Metrics {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}

// standIn is the source of a set that was generated; see standIns.
const standIn = "stand-in"

// label is the task's name in tables, with a warning where the set of that name was not asked.
func (r *Result) label() string {
	if r.Config["source"] == standIn {
		return r.Task + " (" + standIn + ")"
	}
	return r.Task
}

// Add appends a metric that is no plain mean over samples.
func (r *Result) Add(name string, better direction, m Mean) {
	r.Metrics = append(r.Metrics, Metric{Name: name, Mean: m, Better: better})
}

// SetDetail keeps the data of the task's figures.
func (r *Result) SetDetail(v any) error {
	b, err := json.Marshal(v)
	r.Detail = b
	return err
}

// meanOf is the weighted mean of a value over the samples that have it: v = Σ w·x / Σ w, its error that of a ratio over clusters.
func meanOf(answers []Answer, name string) Mean {
	var sums clusters
	for i := range answers {
		s := &answers[i]
		if x, ok := s.Values[name]; ok {
			w := s.weight(name)
			sums.add(s.cluster(), w*x, w)
		}
	}
	m := sums.ratio().mean()
	m.N = sums.n
	return m
}

// clusters sums values and weights of samples that belong together, in the order in which they first come.
type clusters struct {
	n    int
	at   map[string]int
	x, w []float64
}

func (c *clusters) add(key string, x, w float64) {
	i, ok := c.at[key]
	if !ok {
		if c.at == nil {
			c.at = map[string]int{}
		}
		i = len(c.x)
		c.at[key] = i
		c.x, c.w = append(c.x, 0), append(c.w, 0)
	}
	c.n++
	c.x[i] += x
	c.w[i] += w
}

func (c *clusters) ratio() *ratio {
	var r ratio
	for i := range c.x {
		r.add(c.x[i], c.w[i])
	}
	return &r
}

// exp is the mean of a logarithm as the quantity itself: d exp(x) = exp(x) dx.
func (m Mean) exp() Mean {
	v := math.Exp(m.Value)
	return Mean{Value: v, StdErr: v * m.StdErr, N: m.N}
}

// scaled multiplies value and error.
func (m Mean) scaled(f float64) Mean {
	return Mean{Value: f * m.Value, StdErr: math.Abs(f) * m.StdErr, N: m.N}
}

// where are the samples that keep says yes to.
func where(samples []Answer, keep func(*Answer) bool) []Answer {
	var out []Answer
	for i := range samples {
		if keep(&samples[i]) {
			out = append(out, samples[i])
		}
	}
	return out
}

// MarshalText writes a direction as "higher", "lower" or nothing.
func (d direction) MarshalText() ([]byte, error) { return []byte(directions[d]), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *direction) UnmarshalText(b []byte) error {
	for k, name := range directions {
		if name == string(b) {
			*d = k
			return nil
		}
	}
	return fmt.Errorf("eval: %q is no direction; want higher, lower or nothing", b)
}

var directions = map[direction]string{neither: "", lower: "lower", higher: "higher"}
