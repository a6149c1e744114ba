package bench

import (
	"cmp"
	"fmt"
	"slices"

	"antiphase/device"
	"antiphase/tensor"
)

// Ops is a device that times every op of another one by name and shape. Each op is waited for, so that the sum of the
// ops is slightly more than an undisturbed step.
type Ops struct {
	*opTimer
	timedElements
	timedProducts
	timedAttention
}

// opTimer measures ops of a device.
type opTimer struct {
	device.Device
	times map[opKey]*OpTime
	err   error // first error of timing, reported by Sync
}

// The groups of timed ops: elementwise and on rows, matrix products, attention.
type (
	timedElements  struct{ *opTimer }
	timedProducts  struct{ *opTimer }
	timedAttention struct{ *opTimer }
)

// OpTime is the time of one op with one shape.
type OpTime struct {
	Op      string  `json:"op"`
	Shape   string  `json:"shape,omitempty"`
	Calls   float64 `json:"calls"` // per step
	Seconds float64 `json:"seconds"`
	FLOPs   float64 `json:"flops,omitempty"` // multiply-adds of matrices count 2, all else 0
	Bytes   float64 `json:"bytes"`           // of the operands, each counted once
}

// opKey identifies ops; m, n and k are those of a product.
type opKey struct {
	name    string
	m, n, k int
}

// NewOps wraps d.
func NewOps(d device.Device) *Ops {
	t := &opTimer{Device: d, times: map[opKey]*OpTime{}}
	return &Ops{t, timedElements{t}, timedProducts{t}, timedAttention{t}}
}

// chunked is the same device, with the chunking of the wrapped one.
func (o *Ops) chunked() device.Device {
	if c, ok := o.Device.(device.Pager); ok {
		return &pagedOps{o, c}
	}
	if c, ok := o.Device.(device.Chunker); ok {
		return struct {
			*Ops
			device.Chunker
		}{o, c}
	}
	return o
}

// Reset clears the times.
func (o *opTimer) Reset() { clear(o.times) }

// Times lists the ops by time, each divided by the number of steps they were taken over.
func (o *opTimer) Times(steps int) []OpTime {
	var list []OpTime
	n := float64(steps)
	for k, t := range o.times {
		e := OpTime{Op: k.name, Calls: t.Calls / n, Seconds: t.Seconds / n, FLOPs: t.FLOPs / n, Bytes: t.Bytes / n}
		if k.m+k.n+k.k > 0 {
			e.Shape = fmt.Sprintf("%d×%d×%d", k.m, k.n, k.k)
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b OpTime) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Shape, b.Shape))
	})
	return list
}

// Sync returns the first error of the device or of timing it.
func (o *opTimer) Sync() error {
	err := o.err
	o.err = nil
	return cmp.Or(err, o.Device.Sync())
}

// op runs and times one op.
func (o *opTimer) op(k opKey, flops float64, run func(), operands ...tensor.Tensor) {
	sec, err := elapsed(o.Device, run)
	if o.err == nil {
		o.err = err
	}
	t := o.times[k]
	if t == nil {
		t = &OpTime{}
		o.times[k] = t
	}
	t.Calls++
	t.Seconds += sec
	t.FLOPs += flops
	for _, x := range operands {
		if x.Ok() {
			t.Bytes += float64(tensor.Bytes(x.Type, x.Rows, x.Cols))
		}
	}
}

// cells are the (query, key) pairs of causal attention in all heads. Isolated documents have fewer.
func cells(s *device.AttnShape) float64 {
	return float64(s.B) * float64(s.Heads) * float64(s.T) * float64(s.T+1) / 2
}

// attnForward and attnBackward are the FLOPs of attention with q maps per head: forward q·(D+DV) multiply-adds per
// cell; backward the scores again (q·D), dP and dV once for all maps (2·DV), dQ and dK (2·q·D).
func attnForward(s *device.AttnShape, q int) float64 {
	return 2 * cells(s) * float64(q*(s.D+s.DV))
}

func attnBackward(s *device.AttnShape, q int) float64 {
	return 2 * cells(s) * float64(3*q*s.D+2*s.DV)
}
