package devicetest_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/devicetest"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// broken is an oracle with one op that breaks one clause of the contract.
type broken struct {
	*ref.Device
	how   string
	calls int
}

// Add overwrites instead of accumulating.
func (b *broken) Add(dst, src tensor.Tensor) {
	if b.how == "overwrites" {
		device.CheckAdd(dst, src)
		b.Copy(dst, src)
		return
	}
	b.Device.Add(dst, src)
}

// SwiGLU leaves its last row as it was, or writes one element after it, or adds 0 times its last row to its first.
func (b *broken) SwiGLU(y, gu tensor.Tensor) {
	b.Device.SwiGLU(y, gu)
	last := y.RowRange(y.Rows-1, y.Rows)
	switch b.how {
	case "forgets":
		for i := range tensor.Host[float64](last) {
			tensor.Host[float64](last)[i] = poison
		}
	case "spills":
		last.Cols++
		tensor.Host[float64](last)[last.Cols-1] = 0
	case "leaks":
		if y.Rows > 1 && y.Cols > 0 {
			tensor.Host[float64](y)[0] += 0 * tensor.Host[float64](last)[0]
		}
	}
}

// MatMul gives rows in a batch other bits than rows alone, or changes a factor, or errs a little.
func (b *broken) MatMul(c, a, m tensor.Tensor, op device.MatMul) {
	b.Device.MatMul(c, a, m, op)
	switch {
	case c.Len() == 0 || a.Len() == 0:
	case b.how == "mixes" && c.Rows > 1:
		tensor.Host[float64](c)[0] *= 1 + 1e-14
	case b.how == "errs":
		tensor.Host[float64](c)[c.Cols-1] += 1e-9
	case b.how == "soils":
		tensor.Host[float64](a)[0]++
	}
}

// Sigmoid gives other bits each time.
func (b *broken) Sigmoid(y, x tensor.Tensor) {
	b.Device.Sigmoid(y, x)
	if b.calls++; b.how == "wavers" {
		tensor.Host[float64](y)[0] *= 1 + 1e-14*float64(b.calls)
	}
}

// Rope takes any shape without a word.
func (b *broken) Rope(x, table, pos tensor.Tensor, r device.Rope) {
	if b.how == "swallows" {
		defer func() { _ = recover() }()
	}
	b.Device.Rope(x, table, pos, r)
}

// Sync keeps faults to itself.
func (b *broken) Sync() error {
	err := b.Device.Sync()
	if b.how == "hushes" {
		return nil
	}
	return err
}

const poison = 12345

// TestBroken runs one broken device when it is told which, in a process that is expected to fail.
func TestBroken(t *testing.T) {
	how := os.Getenv("DEVICETEST_BROKEN")
	switch how {
	case "":
		t.Skip("run by TestBrokenDevicesFail")
	case "allocates":
		devicetest.RunAllocs(t, ref.New())
	case "counts":
		devicetest.RunThreads(t, func(threads int) device.Device {
			return &broken{Device: ref.New(), how: "wavers", calls: threads * 1000}
		})
	default:
		devicetest.RunAll(t, &broken{Device: ref.New(), how: how})
	}
}

// Each broken device must be caught, in its op and for its reason.
func TestBrokenDevicesFail(t *testing.T) {
	for _, c := range []struct{ how, run, say string }{
		{"overwrites", "/^add$", "dst F64"},
		{"forgets", "/^swiglu$", "y F64"},
		{"spills", "/^swiglu$", "of its buffer changed"},
		{"leaks", "/^swiglu$", "beside units of NaN"},
		{"mixes", "/^matmul$", "pieces: c differs in its bits"},
		{"errs", "/^matmul$", "off by 1e-09"},
		{"soils", "/^matmul$", "of its buffer changed"},
		{"wavers", "/^sigmoid$", "a second run"},
		{"swallows", "/^rope$", "no panic"},
		{"hushes", "/^embed$", "gave no fault"},
		{"allocates", "", "allocations a call, want 0"},
		{"counts", "", "sigmoid with more threads"},
	} {
		t.Run(c.how, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.short", "-test.run=^TestBroken$"+c.run)
			cmd.Env = append(os.Environ(), "DEVICETEST_BROKEN="+c.how)
			text, err := cmd.CombinedOutput()
			if exit := new(exec.ExitError); !errors.As(err, &exit) || !strings.Contains(string(text), c.say) {
				t.Errorf("ended with %v, want a failure that says %q:\n%.2000s", err, c.say, text)
			}
		})
	}
}
