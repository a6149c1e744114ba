// Package bench measures products, attention, training steps and decoding on any device.
//
// A benchmark (one file each: gemm.go, attention.go, train.go, decode.go) builds real layers or a real model with
// random weights, runs it a few times to warm up and then some repetitions, and makes a Row: the median, the quartiles,
// and the rate next to the device's ceiling, which is measured in turn with every repetition, because a machine's speed
// drifts. Ops wraps a device and reports the time of a step op by op. Rows are printed as a table or as JSON, or
// appended to results/bench with the commit and the machine they came from.
package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"antiphase/device"
)

// Config is what all benchmarks share.
type Config struct {
	Device device.Device
	// Product and Bandwidth are the ceilings. The defaults are the device's own large product and large copy.
	Product, Bandwidth Ceiling
	WeightBytes        float64                          // of a weight that decoding reads; 0: as the activations' dtype
	Warmup, Reps       int                              // repetitions before measuring, and measured; 0 means 3 and 10
	Say                func(format string, args ...any) // reports progress; may be nil
}

// Row is one figure with everything needed to judge it.
type Row struct {
	Kind  string         `json:"kind"`
	Name  string         `json:"name"`
	Shape map[string]any `json:"shape"` // what was measured, for programs: a peer is given the same

	Value  float64 `json:"value"` // median
	Unit   string  `json:"unit"`
	Low    float64 `json:"low"` // quartiles
	High   float64 `json:"high"`
	Reps   int     `json:"reps"`
	Warmup int     `json:"warmup"`

	Rate        float64 `json:"rate"` // work done per second, of the median
	RateUnit    string  `json:"rate_unit"`
	Ceiling     string  `json:"ceiling"` // what the rate is compared to
	CeilingRate float64 `json:"ceiling_rate"`
	Share       float64 `json:"share"` // median of the ratios of neighbours in time

	Memory int      `json:"memory_bytes,omitempty"` // most device memory that was held at once
	Loss   float64  `json:"loss,omitempty"`         // of the last step, as evidence that the work was real
	Ops    []OpTime `json:"ops,omitempty"`
	Stamp
}

func (c *Config) defaults() {
	if c.Warmup == 0 {
		c.Warmup = 3
	}
	if c.Reps == 0 {
		c.Reps = 10
	}
	if c.Say == nil {
		c.Say = func(string, ...any) {}
	}
}

// samples are the repetitions of one measurement: seconds, and the ceiling's rate right after each.
type samples struct {
	seconds, ceiling []float64
}

// measure runs f, which returns its seconds, alternating with the ceiling.
func (c *Config) measure(ctx context.Context, f func() (float64, error), ceiling *Ceiling) (s samples, err error) {
	for i := range c.Warmup + c.Reps {
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		sec, err := f()
		if err != nil {
			return s, err
		}
		top, err := ceiling.Run()
		if err != nil {
			return s, fmt.Errorf("bench: ceiling %s: %w", ceiling.Name, err)
		}
		if i >= c.Warmup {
			s.seconds, s.ceiling = append(s.seconds, sec), append(s.ceiling, top)
		}
	}
	return s, nil
}

// fill completes a row from its samples: value converts seconds to the row's unit, work is the FLOPs or bytes of a
// repetition.
func (r *Row) fill(s samples, c *Config, ceiling *Ceiling, work float64, value func(seconds float64) float64) {
	var values, shares []float64
	for i, sec := range s.seconds {
		values = append(values, value(sec))
		shares = append(shares, work/sec/ceiling.scale()/s.ceiling[i])
	}
	r.Low, r.Value, r.High = quartiles(values)
	_, sec, _ := quartiles(s.seconds)
	r.Rate, r.RateUnit = work/sec/ceiling.scale(), ceiling.Unit
	r.Ceiling = ceiling.Name
	_, r.CeilingRate, _ = quartiles(s.ceiling)
	_, r.Share, _ = quartiles(shares)
	r.Reps, r.Warmup = c.Reps, c.Warmup
}

// quartiles are the 25th, 50th and 75th percentiles, interpolated linearly.
func quartiles(x []float64) (low, median, high float64) {
	s := slices.Sorted(slices.Values(x))
	at := func(p float64) float64 {
		if len(s) == 0 {
			return 0
		}
		pos := p * float64(len(s)-1)
		i := int(pos)
		if i+1 == len(s) {
			return s[i]
		}
		return s[i] + (pos-float64(i))*(s[i+1]-s[i])
	}
	return at(0.25), at(0.5), at(0.75)
}

// timer is a device that times its own work, without the latency of the host.
type timer interface {
	// Time runs f and returns the milliseconds it took on the device.
	Time(f func()) (float64, error)
}

// elapsed is the seconds that the device spends on the work that f starts.
func elapsed(d device.Device, f func()) (float64, error) {
	if err := d.Sync(); err != nil {
		return 0, err
	}
	if t, ok := d.(timer); ok {
		ms, err := t.Time(f)
		return ms / 1e3, err
	}
	begin := time.Now()
	f()
	err := d.Sync()
	return time.Since(begin).Seconds(), err
}

// wall is the wall-clock seconds of f, until the device has finished.
func wall(d device.Device, f func() error) (float64, error) {
	if err := d.Sync(); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := f(); err != nil {
		return 0, err
	}
	err := d.Sync()
	return time.Since(begin).Seconds(), err
}
