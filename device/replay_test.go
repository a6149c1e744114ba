package device

import (
	"errors"
	"testing"
)

// recorder counts what is asked of it; work that it records does not run.
type recorder struct {
	Device
	records, launches, frees int
	refuse                   error
}

func (r *recorder) Record(f func()) (Replay, error) {
	r.records++
	f()
	if r.refuse != nil {
		return nil, r.refuse
	}
	return replayed{r}, nil
}

type replayed struct{ r *recorder }

func (p replayed) Launch()     { p.r.launches++ }
func (p replayed) Free() error { p.r.frees++; return nil }

func TestRepeat(t *testing.T) {
	d, ran := &recorder{}, 0
	work := func() { ran++ }
	var r Repeat
	for range 5 {
		r.Run(d, work)
	}
	if ran != 2 || d.records != 1 || d.launches != 4 {
		t.Errorf("five times: ran %d, recorded %d, launched %d; want once as it is, once recorded, four launches", ran,
			d.records, d.launches)
	}
	if ok, err := r.Recorded(); !ok || err != nil {
		t.Errorf("recorded: %v, %v", ok, err)
	}
	r.Forget()
	r.Forget()
	r.Run(d, work)
	if ok, _ := r.Recorded(); ok || d.frees != 1 || ran != 3 || d.launches != 4 {
		t.Errorf("other work: recorded %v, %d freed, ran %d, launched %d", ok, d.frees, ran, d.launches)
	}
}

// Work that cannot be recorded runs as it is, and the reason is kept; it is tried once.
func TestRepeatRefused(t *testing.T) {
	d, ran := &recorder{refuse: errors.New("no graphs")}, 0
	var r Repeat
	for range 4 {
		r.Run(d, func() { ran++ })
	}
	if ok, err := r.Recorded(); ok || !errors.Is(err, d.refuse) || d.records != 1 || ran != 5 {
		t.Errorf("recorded %v (%v) in %d tries, ran %d times, want 4 and the try", ok, err, d.records, ran)
	}
	ran = 0
	var plain Repeat
	for range 3 {
		plain.Run(nil, func() { ran++ }) // a device that does not record
	}
	if ran != 3 {
		t.Errorf("a plain device ran the work %d times of 3", ran)
	}
}
