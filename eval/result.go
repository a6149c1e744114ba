package eval

import (
	"encoding/json"
	"slices"
)

// Result is a task's result for one model.
type Result struct {
	Question string          `json:"question"` // hash of all that was asked: results of the same question can be paired
	Task     string          `json:"task"`     // with a stand-in's prefix if its questions were generated, not read
	Kind     string          `json:"kind"`     // the task's own name
	Group    string          `json:"group,omitempty"`
	Beside   bool            `json:"beside,omitempty"` // not part of the group's mean
	Place    int             `json:"place,omitempty"`
	Version  int             `json:"version"`
	Shots    int             `json:"shots"`
	Context  int             `json:"context"`         // tokens that prompts were sized for
	Limit    int             `json:"limit,omitempty"` // most samples that were asked for; 0: all
	N        int             `json:"n"`
	Seconds  float64         `json:"seconds"` // spent asking, over all calls
	Metrics  []Metric        `json:"metrics"` // the headline first
	Config   map[string]any  `json:"config,omitempty"`
	Detail   json.RawMessage `json:"detail,omitempty"` // data of the task's figures, in the type that its Finish writes

	Seed      uint64   `json:"seed,omitempty"` // of the cell, as is Replicate; a store keeps them in the head
	Replicate string   `json:"replicate,omitempty"`
	Answers   []Answer `json:"-"`
}

// Metric is a named number with its standard error and 95 % interval.
type Metric struct {
	Name  string `json:"name"`
	Label string `json:"label,omitempty"`
	Mean
	Low    float64            `json:"low,omitempty"` // 95 % interval; both ends 0: none
	High   float64            `json:"high,omitempty"`
	Better Better             `json:"better"`
	Floors map[string]float64 `json:"floors,omitempty"`
}

// Metric finds a metric by name.
func (r *Result) Metric(name string) (Metric, bool) {
	i := slices.IndexFunc(r.Metrics, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return r.Metrics[i], true
}

// StandIn is the source of a generated set. Its results have their own name (see Result.Task), so that their numbers
// are not mistaken for the set's.
const StandIn = "stand-in"

const standInPrefix = "standin_"

// publicName is the name of a task's results.
func publicName(name string, config map[string]any) string {
	if config["source"] == StandIn {
		return standInPrefix + name
	}
	return name
}

// StandIn reports whether the questions were generated instead of read from the set the task is named after.
func (r *Result) StandIn() bool { return r.Task != r.Kind }

// Add appends a metric that is not a plain mean over samples.
func (r *Result) Add(name, label string, better Better, m Mean) {
	x := Metric{Name: name, Label: label, Mean: m, Better: better}
	x.Low, x.High = interval(m)
	r.Metrics = append(r.Metrics, x)
}

// SetDetail stores the data of the task's figures.
func (r *Result) SetDetail(v any) error {
	b, err := marshal(v)
	r.Detail = b
	return err
}

// Where returns the answers whose index passes keep.
func (r *Result) Where(keep func(i int) bool) []Answer {
	var out []Answer
	for i := range r.Answers {
		if keep(i) {
			out = append(out, r.Answers[i])
		}
	}
	return out
}
