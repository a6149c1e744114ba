package train

import (
	"testing"
	"time"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/tensor"
)

// paced is a device on which a token of a pass takes a millisecond of a clock that the test owns, and every other step
// nine more, as where another process runs.
type paced struct {
	*cpu.Device
	at    *time.Time
	steps *int
}

func (d paced) Embed(out, table, ids tensor.Tensor) {
	*d.at = d.at.Add(time.Duration(out.Rows) * time.Millisecond)
	d.Device.Embed(out, table, ids)
}

func (d paced) Sync() error { // ends a step
	if *d.steps++; *d.steps%2 == 1 {
		*d.at = d.at.Add(9 * time.Millisecond)
	}
	return d.Device.Sync()
}

// The time of a step is the shortest of six, or extrapolated by operations from the first trial that takes long, less
// what the smallest one takes.
func TestMeasureByTheClock(t *testing.T) {
	host := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
	defer host.Close()
	for _, x := range []struct {
		batch, micro, seq int
		want              time.Duration
		steps             int
	}{
		{1, 1, 16, 16 * time.Millisecond, 6},              // the step is its own smallest trial
		{2, 2, 64, 128 * time.Millisecond, 2 + 2 + 6},     // rows of 32 tokens, 64, two of them
		{8, 2, 64, 512 * time.Millisecond, 2 + 2 + 2 + 6}, // 256 ms more than the first are not long
		// 16 rows of 64 tokens take 1024 ms, the smallest trial 32; a thousand rows are 62.5 times as many operations.
		{1000, 1, 64, 32*time.Millisecond + 992*62500*time.Microsecond, 2 + 2 + 2 + 2},
		// 16 rows of 33 tokens take 528 ms, of which 496 are the tokens': not long. 64 rows take 2112.
		{1000, 1, 33, 32*time.Millisecond + 2080*15625*time.Microsecond, 5 * 2},
	} {
		at, steps := time.Unix(1.7e9, 0), 0
		r := nano(t, "diff")
		r.Train.SeqLen, r.Train.Batch, r.Train.MicroBatch = x.seq, x.batch, x.micro
		got, err := measure(t.Context(), paced{host, &at, &steps}, r, func() time.Time { return at })
		if err != nil || got != x.want || steps != x.steps {
			t.Errorf("%d rows of %d, %d at a time: %v in %d steps, want %v in %d; %v", x.batch, x.seq, x.micro, got,
				steps, x.want, x.steps, err)
		}
	}
}

// scripted is a device whose products of a size take, one after the other, what a test says; the last is repeated.
type scripted struct {
	*cpu.Device
	at    *time.Time
	took  map[int][]time.Duration
	calls map[int]int
}

func (d scripted) MatMul(c, _, _ tensor.Tensor, _ device.MatMul) {
	list := d.took[c.Rows]
	*d.at = d.at.Add(list[min(d.calls[c.Rows], len(list)-1)])
	d.calls[c.Rows]++
}

// The peak is 2n³ operations in the shortest time of a product that takes more than a millisecond; nine more that are
// less than 2 % faster end the search, or half a second.
func TestPeakByTheClock(t *testing.T) {
	host := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
	defer host.Close()
	ms := func(x float64) time.Duration { return time.Duration(x * 1e6) }
	for _, x := range []struct {
		took  map[int][]time.Duration
		want  float64
		calls map[int]int
	}{
		{map[int][]time.Duration{512: {ms(2)}}, 2 * 512 * 512 * 512 / 2e-3, map[int]int{512: 10}},
		{map[int][]time.Duration{512: {ms(1)}, 1024: {ms(4)}}, 2 * 1024 * 1024 * 1024 / 4e-3,
			map[int]int{512: 10, 1024: 10}},
		{map[int][]time.Duration{512: {ms(5), ms(4), ms(3), ms(9)}}, 2 * 512 * 512 * 512 / 3e-3, map[int]int{512: 12}},
		{map[int][]time.Duration{512: {ms(5), ms(4.95)}}, 2 * 512 * 512 * 512 / 4.95e-3, map[int]int{512: 10}},
		{map[int][]time.Duration{512: {ms(120)}}, 2 * 512 * 512 * 512 / 120e-3, map[int]int{512: 5}},
	} {
		at, calls := time.Unix(1.7e9, 0), map[int]int{}
		got := peak(scripted{host, &at, x.took, calls}, func() time.Time { return at })
		if !(got >= 0.999999*x.want && got <= 1.000001*x.want) {
			t.Errorf("%v: %g, want %g", x.took, got, x.want)
		}
		for n, want := range x.calls {
			if calls[n] != want {
				t.Errorf("%v: %d products of %d, want %d", x.took, calls[n], n, want)
			}
		}
	}
}
