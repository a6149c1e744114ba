package cuda

import (
	"errors"
	"testing"

	"antiphase/internal/cu/cutest"
	"antiphase/tensor"
)

// full is a driver whose GPU has no memory left.
type full struct{ *cutest.Driver }

var errFull = errors.New("the GPU is full")

func (full) Alloc(int) (uintptr, error) { return 0, errFull }

// Everything that allocates device memory reports its lack in the same way: by a panic with tensor.NoMemory, which
// callers turn into an error, and before a kernel is launched without its memory.
func TestNoMemory(t *testing.T) {
	for what, use := range map[string]func(d *Device) func(){
		"Alloc":   func(d *Device) func() { return func() { d.Alloc(64) } },
		"scratch": func(d *Device) func() { return func() { d.scratch(64) } },
		"a ticket": func(d *Device) func() {
			a, _ := attnOn(d, 2, 1000, 16, 4, 128, 128, 0, false)
			d.wgmma = true
			return func() { d.Attention(a) }
		},
	} {
		d, drv := fakeDevice(t)
		call := use(d)
		d.drv = full{drv}
		func() {
			defer func() {
				err, _ := recover().(error)
				if lack, ok := errors.AsType[*tensor.NoMemory](err); !ok || !errors.Is(lack, errFull) {
					t.Errorf("%s: %v", what, err)
				}
			}()
			call()
		}()
		if len(drv.Launches) > 0 {
			t.Errorf("%s: a kernel was launched", what)
		}
	}
}
