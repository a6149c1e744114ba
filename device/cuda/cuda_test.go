package cuda

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"antiphase/device"
	"antiphase/device/devicetest"
	"antiphase/internal/cu/cutest"
	"antiphase/tensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gpu opens the first GPU, or skips. With ANTIPHASE_REQUIRE_CUDA=1 there must be one.
func gpu(t testing.TB, progress func(string)) *Device {
	t.Helper()
	d, err := Open(0, Options{Progress: progress})
	if err == nil {
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return d
	}
	if !errors.Is(err, ErrUnavailable) || os.Getenv("ANTIPHASE_REQUIRE_CUDA") == "1" {
		t.Fatal(err)
	}
	t.Skip(err)
	return nil
}

// TestSmoke opens the GPU and builds every kernel from nothing, shows what each costs, then finds all of them in the
// cache.
func TestSmoke(t *testing.T) {
	for _, name := range []string{"XDG_CACHE_HOME", "HOME"} {
		t.Setenv(name, t.TempDir())
	}
	d := gpu(t, func(line string) { t.Log(line) })
	t.Logf("%s: %+v", d.Name(), d.Info())
	if err := d.Build(); err != nil {
		t.Fatal(err)
	}
	for k, r := range registry {
		u := d.drv.Usage(d.funcs[k].fn)
		t.Logf("%-28s %-40s %3d registers %5d bytes local %6d shared", r.name, r.options, u.Registers,
			u.Local, u.Shared)
	}
	again := gpu(t, func(line string) {
		if strings.HasPrefix(line, "built") {
			t.Errorf("the second time: %s", line)
		}
	})
	if err := again.Build(); err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) { devicetest.RunAll(t, gpu(t, nil)) }

// TestLong is conformance at the longest sequences.
func TestLong(t *testing.T) { devicetest.RunLong(t, gpu(t, nil), 32768) }

func TestAllocs(t *testing.T) { allocs(t, gpu(t, nil)) }

// allocs builds all kernels first: an op that is held loads its own later than in its first call.
func allocs(t *testing.T, d *Device) {
	if err := d.Build(); err != nil {
		t.Fatal(err)
	}
	devicetest.RunAllocs(t, d)
}

// TestWide includes products that go to cuBLASLt.
func TestWide(t *testing.T) {
	d := gpu(t, nil)
	wide(t, d, 512, 384, 1024)
	wide(t, d, 300, 72, 520)
	rowsAlone(t, d)
}

// TestGraph: a recorded piece of work leaves the same bits as the work itself, each time.
func TestGraph(t *testing.T) {
	d := gpu(t, nil)
	b := newBeside(t, d)
	x, w := b.random(tensor.BF16, 512, 256, 0, 1)[0], b.random(tensor.BF16, 256, 256, 0, 1)[0]
	y, z, sum := act(d, 512, 256), act(d, 512, 128), stat(d, 1, 1)
	work := func() {
		d.Zero(sum)
		d.MatMul(y, x, w, device.MatMul{TransB: true})
		d.SwiGLU(z, y)
		d.SumSquares(sum, z)
	}
	work()
	want := read(d, z, sum)
	g, err := d.Record(work)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		d.Zero(y)
		d.Zero(z)
		g.Launch()
		if got := read(d, z, sum); !bytes.Equal(got, want) {
			t.Error("a replay differs in its bits")
		}
	}
	if err := errors.Join(g.Free(), d.Sync()); err != nil {
		t.Error(err)
	}
}

// read gives the bytes of tensors, one after the other.
func read(d *Device, all ...tensor.Tensor) (out []byte) {
	for _, x := range all {
		b := make([]byte, tensor.Bytes(x.Type, x.Rows, x.Cols))
		d.Read(b, x)
		out = append(out, b...)
	}
	return out
}

// TestLaunchers runs every launcher on the recorder, at every size of the conformance: no allocation, right geometry,
// and as many arguments as the kernel has parameters.
func TestLaunchers(t *testing.T) {
	drv := cutest.New()
	drv.Quiet, drv.Params = true, allParams(t)
	d, err := newDevice(drv)
	if err != nil {
		t.Fatal(err)
	}
	allocs(t, d)
}

func BenchmarkOps(b *testing.B) { devicetest.BenchAll(b, gpu(b, nil)) }
