// Package report renders evaluations: a table for the terminal, one HTML page with figures, rows for documents, results
// under lm-evaluation-harness's keys, and the paper's numbers with the differences between its protocol and ours.
//
// A [Page] holds what is shown. [Page.Table] and [Page.HTML] use the same rows (rows.go). Each figure is a file that
// registers a section (see register); chart_*.go and svg.go draw.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"antiphase/eval"
	"antiphase/metrics"
)

// Page is everything on one page or in one table; any part may be missing.
type Page struct {
	Title      string               `json:"title,omitempty"`
	Command    string               `json:"command,omitempty"` // that makes it again
	Seconds    float64              `json:"seconds,omitempty"` // from start to end
	Recipe     json.RawMessage      `json:"recipe,omitempty"`
	Training   []Training           `json:"training,omitempty"`
	Evaluation *eval.Evaluation     `json:"evaluation,omitempty"`
	Scaling    []eval.ScalingResult `json:"scaling,omitempty"` // by parameters, by tokens
	Ablation   *Ablation            `json:"ablation,omitempty"`
	Experiment *Experiment          `json:"experiment,omitempty"`
	Brief      map[string][]string  `json:"brief,omitempty"` // metrics of a task that the table shows; not there: all
}

// Training is the training record of a model.
type Training struct {
	Model           string       `json:"model"` // its name in the evaluation
	Tokens          int64        `json:"tokens"`
	TokensPerSecond float64      `json:"tokens_per_second"`
	Shared          bool         `json:"shared,omitempty"` // other runs used the device at the same time
	Curve           []CurvePoint `json:"curve,omitempty"`

	Steady *metrics.Steadiness `json:"steady,omitempty"`
	Groups []GroupCurve        `json:"groups,omitempty"` // gradient norms by kind of parameter
}

// CurvePoint is the loss at a step.
type CurvePoint struct {
	Step  int      `json:"step"`
	Loss  float64  `json:"loss"`            // of training batches
	Valid *float64 `json:"valid,omitempty"` // held-out, where it was measured
	Grad  float64  `json:"grad,omitempty"`  // gradient norm before clipping, the largest since the previous point
}

// GroupCurve is the gradient norm of one kind of parameter during training.
type GroupCurve struct {
	Name   string       `json:"name"`
	Points [][2]float64 `json:"points"` // step, norm
}

// JSON writes the page's data. A value that is not finite cannot be written: the error names it.
func (p *Page) JSON(w io.Writer) error {
	if path := nonFinite(reflect.ValueOf(p).Elem(), ""); path != "" {
		return fmt.Errorf("report:%s is not a finite number: the model has diverged, or was given nothing to measure",
			path)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(p)
}

// nonFinite is the path of the first value that JSON cannot hold.
func nonFinite(v reflect.Value, path string) string {
	switch v.Kind() {
	case reflect.Float64:
		if !eval.Finite(v.Float()) {
			return path
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return nonFinite(v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			if p := nonFinite(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); p != "" {
				return p
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if p := nonFinite(v.Field(i), path+" "+name); p != "" {
				return p
			}
		}
	}
	return ""
}

// evaluation is never nil.
func (p *Page) evaluation() *eval.Evaluation {
	if p.Evaluation == nil {
		return &eval.Evaluation{}
	}
	return p.Evaluation
}
