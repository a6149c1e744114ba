package task

import (
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/eval"
	"antiphase/tensor"
)

// held is a device that counts the buffers in use.
type held struct {
	device.Device
	n int
}

func (d *held) Alloc(bytes int) *tensor.Buffer { d.n++; return d.Device.Alloc(bytes) }

func (d *held) Free(b *tensor.Buffer) {
	if b != nil {
		d.n--
	}
	d.Device.Free(b)
}

// No task keeps memory of the device: what it took is back when the model is closed, for every task that looks inside
// and for one of each other kind.
func TestTasksReturnMemory(t *testing.T) {
	host := cpu.New(cpu.Options{Threads: 2})
	defer host.Close()
	groups := map[string]bool{}
	for _, task := range All() {
		if !task.Inside && groups[task.Group] || task.Timed {
			continue
		}
		groups[task.Group] = true
		d := &held{Device: host}
		s := subject(t, d, "diff", 420)
		opt := small(&task)
		opt.Limit = 1
		opt.Set = nil
		if _, err := eval.Run(t.Context(), []eval.Target{modelOf("diff", s, 420)}, []eval.Task{task}, opt); err != nil {
			t.Errorf("%s: %v", task.Name, err)
		}
		s.Close()
		s.Model.Free()
		if d.n != 0 {
			t.Errorf("%s: %d buffers are left", task.Name, d.n)
		}
	}
}
