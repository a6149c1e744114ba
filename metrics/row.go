// Package metrics is metrics.jsonl, the record of a training run: one JSON object per step, one per line.
//
// The trainer appends with a [Writer]; all others read with [Rows] or [Read]. Each line ends with its checksum, so that
// a damaged line is skipped and reported without affecting the rest of the file. Lines of older versions have no
// checksum and remain readable. docs/format/metrics.md lists the fields.
package metrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strconv"
)

// FileName is the name of the file in a run folder.
const FileName = "metrics.jsonl"

// Row is one step. A number that was not measured is NaN and not written.
type Row struct {
	Step      int       `json:"step"`
	Total     int       `json:"total_steps"`
	Percent   float64   `json:"pct"`
	Loss      float64   `json:"loss"`
	LossEMA   float64   `json:"loss_ema"`
	Valid     float64   `json:"valid_loss"` // held-out loss where it was measured at this step
	GradNorm  float64   `json:"grad_norm"`
	LR        float64   `json:"lr"`
	TokS      float64   `json:"tok_s"`   // of the step only
	StepMS    float64   `json:"step_ms"` // of the step alone, evaluation and saving excluded
	EvalS     float64   `json:"eval_s"`  // seconds of this step's evaluation
	SaveS     float64   `json:"save_s"`  // seconds of saving since the previous row
	MFU       float64   `json:"mfu"`     // FLOP/s of the step relative to a bare matrix product on the machine
	MemGB     float64   `json:"mem_gb"`
	Tokens    int64     `json:"tokens_seen"`
	Epoch     float64   `json:"epoch"`
	Epochs    []float64 `json:"epochs"`   // per source of a mixture
	DataPos   int64     `json:"data_pos"` // tokens consumed
	Skipped   int       `json:"skipped"`
	ETA       float64   `json:"eta_s"`  // seconds of training left
	Wall      float64   `json:"wall_s"` // seconds since this process began to train
	Time      float64   `json:"time"`   // seconds since 1970
	LambdaMin float64   `json:"lambda_min"`
	LambdaMax float64   `json:"lambda_max"`  // over layers and heads
	Lambda    []float64 `json:"lambda"`      // mean per layer
	Warn      Warning   `json:"warn"`        // anomalies of this step
	Warnings  int       `json:"warnings"`    // steps of the run so far with a warning
	Groups    Groups    `json:"grad_groups"` // gradient norm by kind of parameter, at the steps where it was measured
}

// Groups are gradient norms by kind of parameter, in order.
type Groups []Group

// Group is the norm of the gradients of one kind of parameter, before clipping.
type Group struct {
	Name string
	Norm float64
}

// UnmarshalJSON reads an object and keeps its order.
func (g *Groups) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); t != json.Delim('{') {
		return errors.Join(errors.New("grad_groups: want an object"), err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		x := Group{Name: name.(string)} // keys of an object are strings
		if err := d.Decode(&x.Norm); err != nil {
			return err
		}
		*g = append(*g, x)
	}
	return nil
}

// append writes the object; norms that are not finite are omitted.
func (g Groups) append(b []byte) []byte {
	b = append(b, `,"grad_groups":{`...)
	first := true
	for _, x := range g {
		if math.IsNaN(x.Norm) || math.IsInf(x.Norm, 0) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(append(append(b, '"'), x.Name...), `":`...)
		b = strconv.AppendFloat(b, x.Norm, 'g', 6, 64)
	}
	return append(b, '}')
}

// Warning is a set of anomalies of a step.
type Warning uint8

// The warnings.
const (
	LambdaRange   Warning = 1 << iota // a λ outside [0, 1.5]
	GradientSpike                     // gradient norm ten times its running median
	LossSpike                         // loss far above its running median
	numWarnings   = iota
)

var warningNames = [numWarnings]string{"lambda", "grad_norm", "loss"}

// Names returns the names of the set.
func (w Warning) Names() []string {
	var out []string
	for i, name := range warningNames {
		if w&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}

// UnmarshalJSON reads a list of names. Unknown names of newer versions are skipped.
func (w *Warning) UnmarshalJSON(b []byte) error {
	var names []string
	if err := json.Unmarshal(b, &names); err != nil {
		return err
	}
	for _, n := range names {
		for i, name := range warningNames {
			if n == name {
				*w |= 1 << i
			}
		}
	}
	return nil
}

// Append renders the row as one line without allocating.
func (r *Row) Append(b []byte) []byte {
	begin := len(b)
	b = append(b, `{"step":`...)
	b = strconv.AppendInt(b, int64(r.Step), 10)
	b = append(b, `,"total_steps":`...)
	b = strconv.AppendInt(b, int64(r.Total), 10)
	for _, f := range [...]struct {
		name string
		v    float64
	}{
		{"pct", r.Percent}, {"loss", r.Loss}, {"loss_ema", r.LossEMA}, {"valid_loss", r.Valid},
		{"grad_norm", r.GradNorm}, {"lr", r.LR}, {"tok_s", r.TokS}, {"step_ms", r.StepMS}, {"eval_s", r.EvalS},
		{"save_s", r.SaveS},
		{"mfu", r.MFU}, {"mem_gb", r.MemGB}, {"epoch", r.Epoch}, {"eta_s", r.ETA}, {"wall_s", r.Wall},
		{"lambda_min", r.LambdaMin}, {"lambda_max", r.LambdaMax},
	} {
		if math.IsNaN(f.v) || math.IsInf(f.v, 0) {
			continue
		}
		b = append(append(append(b, `,"`...), f.name...), `":`...)
		b = strconv.AppendFloat(b, f.v, 'g', 8, 64)
	}
	for _, f := range [...]struct {
		name string
		v    int64
	}{{"tokens_seen", r.Tokens}, {"data_pos", r.DataPos}, {"skipped", int64(r.Skipped)},
		{"warnings", int64(r.Warnings)}} {
		b = append(append(append(b, `,"`...), f.name...), `":`...)
		b = strconv.AppendInt(b, f.v, 10)
	}
	if r.Time > 0 {
		b = strconv.AppendFloat(append(b, `,"time":`...), r.Time, 'f', 3, 64)
	}
	b = r.appendWarn(b)
	if len(r.Epochs) > 0 {
		b = appendList(b, "epochs", r.Epochs)
	}
	if len(r.Groups) > 0 {
		b = r.Groups.append(b)
	}
	return seal(appendList(b, "lambda", r.Lambda), begin)
}

// appendList writes a list, empty if any of its numbers is not finite: JSON has no such numbers, and one would make the
// whole row unreadable.
func appendList(b []byte, name string, list []float64) []byte {
	b = append(append(append(b, `,"`...), name...), `":[`...)
	for _, x := range list {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return append(b, ']')
		}
	}
	for i, x := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, x, 'g', 6, 64)
	}
	return append(b, ']')
}

func (r *Row) appendWarn(b []byte) []byte {
	if r.Warn == 0 {
		return b
	}
	b = append(b, `,"warn":[`...)
	first := true
	for i, name := range warningNames {
		if r.Warn&(1<<i) == 0 {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(append(append(b, '"'), name...), '"')
	}
	return append(b, ']')
}

// The checksum is CRC-32C of the line up to the comma before its key, as eight hexadecimal digits.
const (
	sumKey   = `,"crc":"`
	sumBytes = len(sumKey) + 8 + len(`"}`)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal ends the line that starts at begin with its checksum.
func seal(b []byte, begin int) []byte {
	sum := crc32.Checksum(b[begin:], castagnoli)
	b = append(b, sumKey...)
	const digits = "0123456789abcdef"
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, digits[sum>>shift&15])
	}
	return append(b, "\"}\n"...)
}

// parse reads one line without its newline. sealed reports whether the line has a checksum, which was then correct.
func parse(line []byte) (r Row, sealed bool, err error) {
	r = Row{Valid: math.NaN(), EvalS: math.NaN(), SaveS: math.NaN(), LambdaMin: math.NaN(), LambdaMax: math.NaN()}
	at := len(line) - sumBytes
	if sealed = at > 0 && string(line[at:at+len(sumKey)]) == sumKey; sealed {
		want := seal(append([]byte(nil), line[:at]...), 0)
		if string(want[:len(want)-1]) != string(line) {
			return r, true, errors.New("the checksum does not match")
		}
	}
	if err := decode(line, &r, !sealed); err != nil {
		return r, sealed, fmt.Errorf("not a row: %w", err)
	}
	if r.Step < 1 {
		return r, sealed, fmt.Errorf("step %d cannot be right", r.Step)
	}
	return r, sealed, nil
}

// decode reads the fields that are present. Older versions wrote counts as floating point, 1.5e+08. A strict decode
// rejects keys that no version wrote.
func decode(line []byte, r *Row, strict bool) error {
	x := struct {
		*Row
		Tokens  float64 `json:"tokens_seen"`
		DataPos float64 `json:"data_pos"`
	}{Row: r}
	d := json.NewDecoder(bytes.NewReader(line))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(&x); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one value")
	}
	r.Tokens, r.DataPos = int64(x.Tokens), int64(x.DataPos)
	return nil
}
