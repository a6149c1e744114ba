package cuda

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/internal/cu"
	"antiphase/internal/cu/cutest"
	"antiphase/tensor"
)

// fakeDevice is a Device that only writes down what it launches.
func fakeDevice(t testing.TB) (*Device, *cutest.Driver) {
	t.Helper()
	drv := cutest.New()
	d, err := newDevice(drv)
	if err != nil {
		t.Fatal(err)
	}
	return d, drv
}

// on makes a tensor; a stride beyond cols makes it a view.
func on(d *Device, dt tensor.DType, rows, cols, ld int) tensor.Tensor {
	return tensor.Tensor{Buf: d.Alloc(tensor.Bytes(dt, rows, ld)), Type: dt, Rows: rows, Cols: cols, Ld: ld}
}

func act(d *Device, rows, cols int) tensor.Tensor  { return on(d, tensor.BF16, rows, cols, cols) }
func stat(d *Device, rows, cols int) tensor.Tensor { return on(d, tensor.F32, rows, cols, cols) }
func ints(d *Device, n int) tensor.Tensor          { return on(d, tensor.I32, 1, n, n) }

// geometry is a recorded launch as a line.
func geometry(l cutest.Launch) string {
	return fmt.Sprintf("%s %d,%d,%d × %d + %d", l.Kernel, l.Grid.X, l.Grid.Y, l.Grid.Z,
		l.Block.X*l.Block.Y*l.Block.Z, l.Shared)
}

// launchCase is a call and the geometry of its launches.
type launchCase struct {
	name string
	call func(d *Device)
	want []string
}

// holds makes the call on a device over a driver that records launches.
func (c *launchCase) holds(t *testing.T, d *Device, drv *cutest.Driver) {
	t.Helper()
	c.call(d)
	if err := d.Sync(); err != nil {
		t.Errorf("%s: %v", c.name, err)
	}
	var got []string
	for _, l := range drv.Launches {
		got = append(got, geometry(l))
	}
	if !slices.Equal(got, c.want) {
		t.Errorf("%s launched\n\t%s\nwant\n\t%s", c.name, strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
	}
}

// rowLaunches are the ops on rows and numbers.
var rowLaunches = []launchCase{
	{"copy", func(d *Device) { d.Copy(act(d, 100, 768), stat(d, 100, 768)) },
		[]string{"copy_bf16_f32 38,1,1 × 256 + 0"}},
	{"copy of a view", func(d *Device) { d.Copy(stat(d, 7, 100), on(d, tensor.BF16, 7, 100, 300)) },
		[]string{"copy_f32_bf16 1,7,1 × 32 + 0"}},
	{"copy alike", func(d *Device) { d.Copy(act(d, 7, 9), act(d, 7, 9)) }, nil},
	{"add", func(d *Device) { d.Add(stat(d, 3, 64), act(d, 3, 64)) }, []string{"add_f32_bf16 1,1,1 × 32 + 0"}},
	{"bias", func(d *Device) { d.AddBias(act(d, 100, 768), act(d, 1, 768)) }, []string{"bias_add 1,25,1 × 96 + 0"}},
	{"bias backward", func(d *Device) { d.BiasBackward(stat(d, 1, 768), act(d, 1000, 768)) },
		[]string{"bias_parts 3,16,1 × 256 + 0", "bias_finish 24,1,1 × 1024 + 0"}},
	{"advance", func(d *Device) { d.Advance(ints(d, 300), ints(d, 300), ints(d, 300)) },
		[]string{"advance 2,1,1 × 256 + 0"}},
	{"embed", func(d *Device) { d.Embed(act(d, 64, 768), act(d, 1000, 768), ints(d, 64)) },
		[]string{"embed 1,64,1 × 96 + 0"}},
	{"embed backward", func(d *Device) { d.EmbedBackward(stat(d, 1000, 768), act(d, 3000, 768), ints(d, 3000)) },
		[]string{"embed_rank 3,1,1 × 1024 + 0", "embed_offsets 4,1,1 × 256 + 0", "embed_place 12,1,1 × 256 + 0",
			"embed_gather 1000,1,1 × 128 + 0"}},
	{"rmsnorm", func(d *Device) {
		d.RMSNorm(act(d, 50, 768), stat(d, 1, 50), tensor.Tensor{}, act(d, 50, 768), tensor.Tensor{},
			act(d, 1, 768), 1e-5)
	}, []string{"rmsnorm 50,1,1 × 96 + 0"}},
	{"rmsnorm of wide rows", func(d *Device) {
		d.RMSNorm(act(d, 5, 9000), stat(d, 1, 5), tensor.Tensor{}, act(d, 5, 9000), tensor.Tensor{},
			act(d, 1, 9000), 1e-5)
	}, []string{"rmsnorm_wide 5,1,1 × 1024 + 0"}},
	{"rmsnorm backward", func(d *Device) {
		d.RMSNormBackward(act(d, 4096, 2048), stat(d, 1, 2048), act(d, 4096, 2048), act(d, 4096, 2048),
			act(d, 1, 2048), stat(d, 1, 4096))
	}, []string{"rmsnorm_backward 2048,1,1 × 256 + 0", "rmsnorm_finish 64,1,1 × 1024 + 0"}},
	{"rope", func(d *Device) {
		d.Rope(act(d, 100, 12*64), stat(d, 128, 64), ints(d, 100), device.Rope{Heads: 12, Dim: 64})
	}, []string{"rope_half_8 19,1,1 × 256 + 0"}},
	{"rope narrow", func(d *Device) {
		d.Rope(act(d, 100, 2*24), stat(d, 128, 24), ints(d, 100), device.Rope{Heads: 2, Dim: 24})
	}, []string{"rope_half_1 10,1,1 × 256 + 0"}},
	{"rope pairs", func(d *Device) {
		d.Rope(act(d, 100, 2*24), stat(d, 128, 24), ints(d, 100),
			device.Rope{Heads: 2, Dim: 24, Interleaved: true, Inverse: true})
	}, []string{"rope_pairs_4 3,1,1 × 256 + 0"}},
	{"swiglu", func(d *Device) { d.SwiGLU(act(d, 100, 2048), act(d, 100, 4096)) },
		[]string{"swiglu 1,100,1 × 256 + 0"}},
	{"swiglu backward", func(d *Device) {
		d.SwiGLUBackward(act(d, 9, 4096), act(d, 9, 2048), act(d, 9, 2048), act(d, 9, 4096))
	}, []string{"swiglu_backward 1,9,1 × 256 + 0"}},
	{"sigmoid", func(d *Device) { d.Sigmoid(stat(d, 64, 12), stat(d, 64, 12)) },
		[]string{"sigmoid_f32 1,1,1 × 96 + 0"}},
	{"subtract heads", func(d *Device) {
		d.SubtractHeads(act(d, 100, 6*32), act(d, 100, 12*32), stat(d, 100, 6), 6)
	}, []string{"subtractheads 10,1,1 × 256 + 0"}},
	{"subtract heads backward", func(d *Device) {
		d.SubtractHeadsBackward(act(d, 100, 4*24), stat(d, 100, 2), act(d, 100, 2*24), act(d, 100, 4*24),
			stat(d, 1, 1), 2)
	}, []string{"subtractheads_backward 4,1,1 × 256 + 0"}},
	{"subtract no heads", func(d *Device) {
		d.SubtractHeads(act(d, 0, 8), act(d, 0, 16), stat(d, 1, 1), 2)
		d.SubtractHeadsBackward(act(d, 0, 16), stat(d, 0, 2), act(d, 0, 8), act(d, 0, 16), stat(d, 1, 1), 2)
	}, nil},
	{"sumsquares", func(d *Device) { d.SumSquares(stat(d, 1, 1), stat(d, 1, 1<<20)) },
		[]string{"sumsquares_f32 512,1,1 × 256 + 0", "sumsquares_finish 1,1,1 × 256 + 0"}},
	{"adamw", func(d *Device) {
		n := 5000
		d.AdamW(&device.AdamW{W: act(d, 1, n), Master: stat(d, 1, n), M: stat(d, 1, n), V: stat(d, 1, n),
			G: stat(d, 1, n), Rate: stat(d, 1, 3), GradSq: stat(d, 1, 1)})
	}, []string{"adamw_bf16 3,1,1 × 256 + 0"}},
}

// productLaunches are the products.
var productLaunches = []launchCase{
	{"matmul of one row", func(d *Device) {
		d.MatMul(act(d, 1, 2304), act(d, 1, 768), act(d, 2304, 768), device.MatMul{TransB: true})
	}, []string{"matmul_rows8_short 144,1,1 × 256 + 5120"}},
	{"matmul of one longer row", func(d *Device) {
		d.MatMul(act(d, 1, 4608), act(d, 1, 1536), act(d, 4608, 1536), device.MatMul{TransB: true})
	}, []string{"matmul_rows8_long 288,1,1 × 256 + 55296"}},
	{"matmul of one longer row to many columns", func(d *Device) {
		d.MatMul(act(d, 1, 8192), act(d, 1, 1536), act(d, 8192, 1536), device.MatMul{TransB: true})
	}, []string{"matmul_rows8_long 512,1,1 × 256 + 55296"}},
	{"matmul of one long row to few columns", func(d *Device) {
		d.MatMul(act(d, 1, 1536), act(d, 1, 4096), act(d, 1536, 4096), device.MatMul{TransB: true})
	}, []string{"matmul_rows8_half 192,1,1 × 256 + 71168"}},
	{"matmul of 64 rows", func(d *Device) {
		d.MatMul(act(d, 64, 1536), act(d, 64, 4096), act(d, 1536, 4096), device.MatMul{TransB: true})
	}, []string{"matmul_rows32_2 48,2,1 × 256 + 229376"}},
	{"matmul of 200 rows", func(d *Device) {
		d.MatMul(act(d, 200, 4608), on(d, tensor.BF16, 200, 1536, 1539), act(d, 4608, 1536),
			device.MatMul{TransB: true})
	}, []string{"matmul_rows64_4 72,4,1 × 256 + 229376"}},
	{"matmul of one row by odd weights", func(d *Device) {
		d.MatMul(act(d, 1, 2048), act(d, 1, 2047), act(d, 2048, 2047), device.MatMul{TransB: true})
	}, []string{"matmul_nt_16 32,1,7 × 128 + 46080", "matmul_reduce 8,1,1 × 256 + 0"}},
	{"matmul of 100 rows", func(d *Device) {
		d.MatMul(stat(d, 100, 768), act(d, 100, 2048), act(d, 2048, 768), device.MatMul{})
	}, []string{"matmul_nn_64 12,2,8 × 128 + 55296", "matmul_reduce 300,1,1 × 256 + 0"}},
	{"matmul of an odd width", func(d *Device) {
		d.MatMul(act(d, 1000, 77), act(d, 1000, 64), act(d, 64, 77), device.MatMul{})
	}, nil},
	{"matmul of many rows", func(d *Device) {
		d.MatMul(act(d, 4096, 768), act(d, 4096, 768), act(d, 768, 768), device.MatMul{})
	}, nil},
}

// TestLaunches holds each launcher to its geometry: kernel, grid × threads + shared bytes.
func TestLaunches(t *testing.T) {
	for _, c := range slices.Concat(rowLaunches, productLaunches) {
		d, drv := fakeDevice(t)
		c.holds(t, d, drv)
	}
}

// A large product goes to cuBLASLt with its shape, strides and addresses.
func TestLargeProduct(t *testing.T) {
	d, drv := fakeDevice(t)
	dw, dy, x := stat(d, 768, 2048), on(d, tensor.BF16, 4096, 768, 2304), act(d, 4096, 2048)
	d.MatMul(dw, dy, x, device.MatMul{TransA: true, Accumulate: true})
	want := cu.Product{M: 768, N: 2048, K: 4096, LdA: 2304, LdB: 2048, LdC: 2048, TransA: true, Float: true,
		Accumulate: true, Split: true, A: dy.Buf.Addr, B: x.Buf.Addr, C: dw.Buf.Addr}
	if len(drv.Products) != 1 || drv.Products[0] != want {
		t.Errorf("products %+v, want %+v", drv.Products, want)
	}
	drv.NoLt = true
	d.MatMul(dw, dy, x, device.MatMul{TransA: true, Accumulate: true})
	if len(drv.Launches) != 1 || drv.Launches[0].Kernel != "matmul_tn_64" {
		t.Errorf("without cuBLASLt: %v", drv.Launches)
	}
}

// Classify takes a large vocabulary in chunks of whole tiles that fit the room, and every row once.
func TestClassifyChunks(t *testing.T) {
	d, drv := fakeDevice(t)
	n, classes, c := 10000, 60001, 768 // rows that do not fit a ring
	cl := &device.Classifier{X: act(d, n, c), W: act(d, classes, c), Targets: ints(d, n), Loss: stat(d, 1, n),
		DX: act(d, n, c), DW: stat(d, classes, c), Scale: 1}
	d.Classify(cl)
	rows := 0
	for i, l := range drv.Launches {
		if l.Kernel != "classify" {
			t.Fatalf("launched %s", l.Kernel)
		}
		if l.Args[0] != ptr(cl.Loss)+uint64(4*rows) || l.Args[3] != ptr(cl.Targets)+uint64(4*rows) {
			t.Errorf("chunk %d does not begin at row %d", i, rows)
		}
		if rows += l.Grid.X; rows < n && rows%128 != 0 {
			t.Errorf("chunk %d of %d rows is not of whole tiles", i, l.Grid.X)
		}
	}
	if rows != n || len(drv.Products) != 3*len(drv.Launches) {
		t.Errorf("%d rows and %d products in %d chunks", rows, len(drv.Products), len(drv.Launches))
	}
	if size := d.logits.size; size > maxLogits*9/8 {
		t.Errorf("logits take %d bytes, at most %d", size, maxLogits)
	}
}

// The first fault is told by the next Sync, once.
func TestFaultsAreTold(t *testing.T) {
	d, drv := fakeDevice(t)
	broken := errors.New("broken")
	drv.Fail(broken)
	if err := d.Sync(); !errors.Is(err, broken) {
		t.Errorf("sync: %v, want %v", err, broken)
	}
	if err := d.Sync(); err != nil {
		t.Errorf("told again: %v", err)
	}
	if err := fault(1, 7, 4); err.Error() != "cuda: Embed: id 7 outside a table of 4 rows" {
		t.Error(err)
	}
	if err := fault(99, 7, 4); err == nil {
		t.Error("an unknown code is no fault")
	}
}

// Scratch memory grows once, and what it outgrew is freed when nothing can use it any more.
func TestScratch(t *testing.T) {
	d, drv := fakeDevice(t)
	base := drv.Live
	first := d.scratch(1000)
	if d.scratch(900) != first || d.scratch(1125) != first { // with an eighth more
		t.Error("a smaller need moved the room")
	}
	g, err := d.Record(func() {})
	if err != nil {
		t.Fatal(err)
	}
	d.scratch(5000)
	if err := d.Sync(); err != nil || drv.Live-base != 1125+5625 {
		t.Errorf("%d bytes live while a graph may use the old room (%v)", drv.Live-base, err)
	}
	if err := errors.Join(g.Free(), d.Sync()); err != nil || drv.Live-base != 5625 {
		t.Errorf("%d bytes live after the graph is gone (%v)", drv.Live-base, err)
	}
}

func TestArguments(t *testing.T) {
	if got := f32(0.5); got != uint64(math.Float32bits(0.5)) {
		t.Errorf("f32 of 0.5 is %#x", got)
	}
	if got := uint32(i32(-1)); got != math.MaxUint32 {
		t.Errorf("i32 of -1 is %#x", got)
	}
	d, _ := fakeDevice(t)
	x := act(d, 4, 24)
	for _, c := range []struct {
		x    tensor.Tensor
		want bool
	}{{x, true}, {x.Columns(8, 16), true}, {x.Columns(4, 12), false}, {act(d, 2, 9), false}, {act(d, 1, 9), true},
		{tensor.Tensor{}, true}} {
		if got := vec(c.x); got != c.want {
			t.Errorf("16-byte accesses to %v at %d: %v", c.x, c.x.Off, got)
		}
	}
}
