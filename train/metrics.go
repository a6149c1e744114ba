package train

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"time"

	"antiphase/device"
	"antiphase/recipe"
	"antiphase/tensor"
)

// Row is one step of metrics.jsonl.
type Row struct {
	Step, Total  int
	Loss         float64
	LossEMA      float64
	Valid        float64 // held-out loss where it was measured at this step, else NaN
	GradNorm, LR float64
	TokS, StepMS float64
	MFU          float64 // achieved FLOP/s over a matrix product's, measured at the start
	MemGB        float64
	Tokens       int64
	Epoch        float64
	DataPos      int64 // tokens consumed
	Skipped      int
	Lambda       []float64 // mean λ per layer
	ETA, Wall    float64   // seconds
}

// append renders the row as one JSON line without allocating.
func (r *Row) append(b []byte) []byte {
	b = append(b, `{"step":`...)
	b = strconv.AppendInt(b, int64(r.Step), 10)
	b = append(b, `,"total_steps":`...)
	b = strconv.AppendInt(b, int64(r.Total), 10)
	for _, f := range []struct {
		name string
		v    float64
	}{
		{"pct", 100 * float64(r.Step) / float64(r.Total)}, {"loss", r.Loss}, {"loss_ema", r.LossEMA}, {"valid_loss", r.Valid},
		{"grad_norm", r.GradNorm}, {"lr", r.LR}, {"tok_s", r.TokS}, {"step_ms", r.StepMS}, {"mfu", r.MFU}, {"mem_gb", r.MemGB},
		{"tokens_seen", float64(r.Tokens)}, {"epoch", r.Epoch}, {"data_pos", float64(r.DataPos)}, {"skipped", float64(r.Skipped)},
		{"eta_s", r.ETA}, {"wall_s", r.Wall},
	} {
		if math.IsNaN(f.v) || math.IsInf(f.v, 0) {
			continue
		}
		b = append(append(append(b, `,"`...), f.name...), `":`...)
		b = strconv.AppendFloat(b, f.v, 'g', 8, 64)
	}
	b = append(b, `,"lambda":[`...)
	for i, x := range r.Lambda {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, x, 'g', 6, 64)
	}
	return append(b, "]}\n"...)
}

// metrics is the open metrics.jsonl.
type metrics struct {
	f   *os.File
	end int64 // of the last whole row
	buf []byte
}

// openMetrics opens the file and cuts it behind the row of step: later rows belong to work that was lost.
func openMetrics(path string, step int) (*metrics, error) {
	keep, err := keptBytes(path, step)
	if err != nil {
		return nil, fmt.Errorf("train: metrics: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("train: metrics: %w", err)
	}
	if err := f.Truncate(keep); err != nil {
		return nil, errors.Join(fmt.Errorf("train: metrics: %w", err), f.Close())
	}
	return &metrics{f: f, end: keep}, nil
}

// keptBytes is the length of the rows up to step.
func keptBytes(path string, step int) (int64, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	keep := int64(0)
	s := bufio.NewScanner(bytes.NewReader(b))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var row struct {
			Step int `json:"step"`
		}
		next := keep + int64(len(s.Bytes())) + 1
		if json.Unmarshal(s.Bytes(), &row) != nil || row.Step > step || next > int64(len(b)) {
			break
		}
		keep = next
	}
	return keep, s.Err()
}

func (m *metrics) write(r *Row) error {
	m.buf = r.append(m.buf[:0])
	if _, err := m.f.WriteAt(m.buf, m.end); err != nil {
		_ = m.f.Truncate(m.end) // half a row; the next one is written over it in any case
		return fmt.Errorf("train: metrics: %w", err)
	}
	m.end += int64(len(m.buf))
	return nil
}

func (m *metrics) close() { _ = m.f.Close() } // every row was written with its own error checked

// clock turns wall time into rates.
type clock struct {
	begin, last time.Time
	flops       float64 // per token
	peak        float64 // FLOP/s of a matrix product
	from        int
	ms          float64 // smoothed
}

func (c *clock) start(r recipe.Recipe, d device.Device) {
	_, c.flops = r.Model.FLOPs(r.Train.SeqLen)
	c.peak = Peak(d)
	c.begin = time.Now()
	c.last = c.begin
	c.from = -1
}

// fill sets the row's times. The first step of a process is slower than the rest and does not count in the estimate.
func (c *clock) fill(r *Row, now time.Time, s State, rec recipe.Recipe) {
	step := now.Sub(c.last)
	c.last = now
	ms := float64(step) / float64(time.Millisecond)
	if c.from < 0 {
		c.from = s.Step
		c.ms = ms
	} else if s.Step == c.from+1 {
		c.ms = ms
	} else {
		c.ms = 0.9*c.ms + 0.1*ms
	}
	tokens := float64(rec.Train.Batch * rec.Train.SeqLen)
	r.Step, r.Total, r.Tokens = s.Step, rec.Train.Steps, s.Tokens
	r.StepMS, r.TokS = ms, tokens/(ms/1000)
	r.MFU = r.TokS * c.flops / c.peak
	r.ETA = c.ms / 1000 * float64(rec.Train.Steps-s.Step)
	r.Wall = now.Sub(c.begin).Seconds()
}

// Peak measures the device's rate on a square product of at least a millisecond, the best of a few: the yardstick of MFU
// and of time estimates.
func Peak(d device.Device) float64 {
	for n := 512; ; n *= 2 {
		if best := product(d, n); best > 1e-3 || n == 8192 {
			return 2 * float64(n) * float64(n) * float64(n) / best
		}
	}
}

// product is the shortest time in seconds of a few n³ products.
func product(d device.Device, n int) float64 {
	a, b, c := device.EmptyAct(d, n, n), device.Empty(d, d.Types().Act, n, n), device.EmptyAct(d, n, n)
	defer func() { d.Free(a.Buf); d.Free(b.Buf); d.Free(c.Buf) }()
	best := math.Inf(1)
	var one [1]float32
	for range 6 {
		t := time.Now()
		d.MatMul(c, a, b, device.MatMul{TransB: true})
		device.ReadFloats(d, one[:], tensor.Tensor(c.RowRange(0, 1).Columns(0, 1)))
		best = min(best, time.Since(t).Seconds())
	}
	return best
}
