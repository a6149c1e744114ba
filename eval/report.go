package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
)

// Report is everything one comparison measured: data, from which Table and HTML are rendered.
type Report struct {
	Title   string          `json:"title"`
	Machine string          `json:"machine"`
	Commit  string          `json:"commit"`
	Date    string          `json:"date"`
	Seconds float64         `json:"seconds"` // from start to end
	Recipe  json.RawMessage `json:"recipe,omitempty"`
	Notes   []string        `json:"notes,omitempty"` // choices and caveats, for readers
	Sides   []Side          `json:"sides"`           // the models compared, the baseline first
}

// Side is one model's part. Fields that were not measured are left zero and are not shown.
type Side struct {
	Name            string          `json:"name"`
	Arch            string          `json:"arch"`
	Parameters      int             `json:"parameters"`
	TrainTokens     int64           `json:"train_tokens"`
	TokensPerSecond float64         `json:"tokens_per_second"` // in training
	Loss            LossResult      `json:"loss"`
	Needles         []NeedleResult  `json:"needles,omitempty"`
	Attention       AttentionResult `json:"attention"`
	Outliers        OutlierResult   `json:"outliers"`
	Lambda          []float64       `json:"lambda,omitempty"` // mean by layer; empty without λ
	Curve           []CurvePoint    `json:"curve,omitempty"`
	Maps            []MapExample    `json:"maps,omitempty"`
	Samples         []Sample        `json:"samples,omitempty"`
}

// CurvePoint is the training loss at a step, smoothed or not as the caller likes; Valid is the held-out loss where it
// was measured, else NaN. Values that are no numbers are left out of JSON and read back as NaN.
type CurvePoint struct {
	Step  int
	Loss  float64
	Valid float64
}

// Sample is a prompt and what the model made of it.
type Sample struct {
	Prompt string `json:"prompt"`
	Text   string `json:"text"`
}

type curveJSON struct {
	Step  int      `json:"step"`
	Loss  *float64 `json:"loss,omitempty"`
	Valid *float64 `json:"valid,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (p CurvePoint) MarshalJSON() ([]byte, error) {
	j := curveJSON{Step: p.Step}
	if finite(p.Loss) {
		j.Loss = &p.Loss
	}
	if finite(p.Valid) {
		j.Valid = &p.Valid
	}
	return json.Marshal(j)
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *CurvePoint) UnmarshalJSON(b []byte) error {
	var j curveJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*p = CurvePoint{j.Step, math.NaN(), math.NaN()}
	if j.Loss != nil {
		p.Loss = *j.Loss
	}
	if j.Valid != nil {
		p.Valid = *j.Valid
	}
	return nil
}

// JSON writes the report. A value that is no number cannot be written: the error names it.
func (r *Report) JSON(w io.Writer) error {
	if path := nonFinite(reflect.ValueOf(r).Elem(), ""); path != "" {
		return fmt.Errorf("eval: report:%s is not a finite number: the model has diverged, or was given nothing to measure", path)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// nonFinite is the path of the first value that JSON cannot hold.
func nonFinite(v reflect.Value, path string) string {
	if v.Type() == reflect.TypeFor[CurvePoint]() { // has its own way
		return ""
	}
	switch v.Kind() {
	case reflect.Float64:
		if !finite(v.Float()) {
			return path
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
