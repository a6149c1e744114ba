package cuda

import (
	"errors"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/internal/cu"
	"antiphase/internal/cu/cutest"
	"antiphase/tensor"
)

// Each fault of a kernel names the op, the wrong value and its bound, in this order.
func TestFaultTexts(t *testing.T) {
	for code, want := range []string{1: "cuda: Embed: id 7 outside a table of 4 rows",
		2: "cuda: EmbedBackward: id 7 outside a table of 4 rows", 3: "cuda: Rope: position 7 outside a table of 4",
		4: "cuda: Classify: target 7 outside 4 classes", 5: "cuda: cache: position 7 outside 4",
		6: "cuda: fault 6 with 7 and 4"} {
		if code == 0 {
			continue
		}
		d, _ := fakeDevice(t)
		copy(d.told, []byte{byte(code), 0, 0, 0, 7, 0, 0, 0, 4, 0, 0, 0})
		if err := d.Sync(); err == nil || err.Error() != want {
			t.Errorf("code %d: %v, want %s", code, err, want)
		}
		if err := d.Sync(); err != nil {
			t.Errorf("code %d is told twice: %v", code, err)
		}
	}
	d, _ := fakeDevice(t)
	copy(d.told, []byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 4, 0, 0, 0})
	if err := d.Sync(); err == nil || !strings.Contains(err.Error(), "id -1 ") {
		t.Errorf("%v", err)
	}
}

// What a GPU is called and what its bits depend on: the model, the libraries, the number of multiprocessors, by which
// sums are cut, and the precision of its cache. What its speed depends on is the model.
func TestIdentity(t *testing.T) {
	d, _ := fakeDevice(t)
	d.info = cu.Info{Name: "H9", Ordinal: 3, Major: 9, SMs: 40, CublasLt: 120801, NVRTC: 12080}
	for cache, precision := range map[tensor.DType]string{tensor.BF16: "bf16", tensor.I8: "bf16, int8 cache"} {
		d.types.Cache = cache
		want := device.Identity{Device: "H9", Precision: precision,
			Kernels: "sm_90a, 40 SMs, cuBLASLt 120801, NVRTC 12080"}
		if got := d.Identity(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if name := "cuda:3: H9, sm_90a, 40 SMs, " + precision; d.Name() != name {
			t.Errorf("%q, want %q", d.Name(), name)
		}
	}
	if d.Machine() != "H9" || d.ChunkRows() != 32 {
		t.Errorf("%q, chunks of %d rows", d.Machine(), d.ChunkRows())
	}
}

// The kernels for few rows, by the number of rows, columns and k, on both sides of every bound: 132 multiprocessors
// with 227 KiB of shared memory, and fewer.
func TestPickRows(t *testing.T) {
	for _, c := range []struct {
		sms, shared, m, n, k int
		want                 string
	}{
		{132, 227 << 10, 1, 131 * 16, 64, "matmul_rows8_half"},
		{132, 227 << 10, 8, 131*16 + 1, 64, "matmul_rows8_short"},
		{132, 227 << 10, 8, 8192, 1024, "matmul_rows8_short"}, {132, 227 << 10, 8, 8192, 1032, "matmul_rows8_long"},
		{132, 227 << 10, 8, 8192, 7040, "matmul_rows8_long"}, {132, 227 << 10, 8, 8192, 7048, "matmul_rows8_any"},
		{132, 16 << 10, 8, 64, 1024, "matmul_rows8_short"}, {132, 227 << 10, 9, 64, 64, "matmul_rows16"},
		{132, 227 << 10, 16, 8192, 9000, "matmul_rows16"},
		{132, 227 << 10, 17, 132 * 16, 64, "matmul_rows32_1"}, {132, 227 << 10, 17, 132*16 + 1, 64, "matmul_rows32_2"},
		{132, 227 << 10, 32, 132*32 + 1, 64, "matmul_rows32_3"},
		{132, 227 << 10, 32, 1 << 20, 64, "matmul_rows32_4"}, {132, 227 << 10, 33, 66 * 16, 64, "matmul_rows32_1"},
		{132, 227 << 10, 33, 66*16 + 1, 64, "matmul_rows32_2"}, {132, 227 << 10, 64, 66*32 + 1, 64, "matmul_rows32_3"},
		{132, 227 << 10, 64, 66*48 + 1, 64, "matmul_rows64_2"}, {132, 227 << 10, 64, 132*32 + 1, 64, "matmul_rows64_3"},
		{132, 227 << 10, 65, 44 * 16, 64, "matmul_rows32_1"}, {132, 227 << 10, 65, 44*64 + 1, 64, "matmul_rows64_3"},
		{132, 100 << 10, 33, 64, 64, "matmul_rows32_1"}, {132, 100 << 10, 33, 1 << 20, 64, "matmul_rows64_2"},
		{132, 79 << 10, 33, 64, 64, "matmul_rows32_1"}, {132, 88 << 10, 33, 1 << 20, 1024, "matmul_rows64_1"},
		{132, 87 << 10, 33, 1 << 20, 1024, "matmul_rows32_2"},
	} {
		d, _ := fakeDevice(t)
		d.info.SMs, d.info.Shared = c.sms, c.shared
		if got := d.pickRows(c.m, c.n, c.k); got.name() != c.want || !got.fits(c.k, c.shared) {
			t.Errorf("%d rows, %d columns, k = %d with %d bytes: %s of %d bytes, want %s", c.m, c.n, c.k, c.shared,
				got.name(), got.shared(c.k, c.shared), c.want)
		}
	}
}

// How many half pieces of weights and of x a warp holds: on a GPU with 227 KiB of shared memory for a block three of x,
// or four of 32 rows, and all weights of the products of 160m and 830m at batch 64 but for 830m's q, k, v (five of
// six), gate and up (four) and down (ten of 16); on one with less, three of weights and two of x.
func TestHeldWeights(t *testing.T) {
	for _, c := range []struct {
		m, n, k, most, held, inputs, shared int
	}{
		{64, 2304, 768, 227 << 10, 4, 4, 160 << 10}, {64, 768, 768, 227 << 10, 4, 4, 96 << 10},
		{64, 4096, 768, 227 << 10, 4, 3, 160 << 10}, {64, 768, 2048, 227 << 10, 8, 4, 128 << 10},
		{64, 4608, 1536, 227 << 10, 5, 3, 216 << 10}, {64, 1536, 1536, 227 << 10, 6, 4, 160 << 10},
		{64, 8192, 1536, 227 << 10, 4, 3, 224 << 10}, {64, 1536, 4096, 227 << 10, 10, 4, 224 << 10},
		{32, 8192, 1536, 227 << 10, 5, 4, 224 << 10}, {64, 64, 8, 227 << 10, 2, 2, 48 << 10},
		{64, 4096, 4096, 113 << 10, 3, 2, 112 << 10}, {64, 4096, 4096, 144 << 10, 3, 3, 144 << 10},
		{64, 1536, 4096, 90 << 10, 3, 2, 80 << 10}, {64, 1536, 4096, 127 << 10, 4, 3, 112 << 10},
		{64, 1536, 4096, 128 << 10, 4, 4, 128 << 10}, {64, 8192, 64, 227 << 10, 2, 2, 136 << 10},
	} {
		d, _ := fakeDevice(t)
		d.info.SMs, d.info.Shared = 132, c.most
		s := d.pickRows(c.m, c.n, c.k)
		held, inputs := s.rings(c.k, c.most)
		if shared := s.shared(c.k, c.most); held != c.held || inputs != c.inputs || shared != c.shared {
			t.Errorf("%+v: %d and %d half pieces of %s in %d bytes", c, held, inputs, s.name(), shared)
		}
	}
}

// How a sum over k is cut: to two blocks for each multiprocessor, parts of 256 or more in whole pieces of 64, at most
// 16.
func TestCutOfProducts(t *testing.T) {
	d, _ := fakeDevice(t)
	d.info.SMs = 132
	for _, c := range [][5]int{ // rows, columns, k; numbers of a part, parts
		{1, 64, 100, 128, 1}, {1, 64, 511, 512, 1}, {1, 64, 512, 256, 2}, {1, 64, 1 << 14, 1024, 16},
		{256, 64 * 132, 4096, 2048, 2}, {256, 64 * 133, 4096, 4096, 1},
		{257, 64, 4096, 4096, 1}, {1, 64, 0, 1, 1}, {1, 1, 1000, 384, 3},
	} {
		per, parts := d.cut(c[0], c[1], c[2])
		if per != c[3] || parts != c[4] {
			t.Errorf("%v: %d parts of %d, want %d of %d", c[:3], parts, per, c[4], c[3])
		}
	}
}

// Which products go to the library: more than 256 rows, or a sum over more than 256 for a weight, of k from 8 up. Up to
// there a row's bits do not depend on its batch.
func TestWhoMultiplies(t *testing.T) {
	for _, c := range []struct {
		m, n, k int
		op      device.MatMul
		library bool
	}{
		{256, 64, 64, device.MatMul{TransB: true}, false}, {257, 64, 64, device.MatMul{TransB: true}, true},
		{256, 64, 64, device.MatMul{}, false}, {257, 64, 64, device.MatMul{}, true},
		{64, 64, 256, device.MatMul{TransA: true}, false}, {64, 64, 257, device.MatMul{TransA: true}, true},
		{64, 64, 257, device.MatMul{}, false},
		{257, 64, 8, device.MatMul{}, true}, {257, 64, 7, device.MatMul{}, false},
	} {
		d, drv := fakeDevice(t)
		a, b := act(d, c.m, c.k), act(d, c.k, c.n)
		if c.op.TransA {
			a = act(d, c.k, c.m)
		}
		if c.op.TransB {
			b = act(d, c.n, c.k)
		}
		d.MatMul(stat(d, c.m, c.n), a, b, c.op)
		if err := d.Sync(); err != nil || (len(drv.Products) == 1) != c.library ||
			(len(drv.Launches) > 0) == c.library {
			t.Errorf("%+v: %d products, %d launches, %v", c, len(drv.Products), len(drv.Launches), err)
		}
	}
}

// What is in flight: rows of a cache count as such only while every write to that memory was of these slots and
// positions.
func TestFreshRows(t *testing.T) {
	rows := func(slot, pos uint64) kept {
		if slot == 0 {
			return kept{}
		}
		return kept{slot, pos, 3}
	}
	s := func(slot, pos uint64) span { return span{from: 256, to: 512, kept: rows(slot, pos)} }
	d, _ := fakeDevice(t)
	x := act(d, 1, 128)
	x.Buf.Addr = 256
	for _, c := range []struct {
		notes     []span
		slot, pos uint64
		settled   bool
	}{
		{nil, 0, 0, true}, {[]span{s(1, 2)}, 1, 2, true}, {[]span{s(1, 2)}, 1, 3, false},
		{[]span{s(1, 2)}, 3, 2, false}, {[]span{s(0, 0)}, 0, 0, false},
		{[]span{s(1, 2), s(1, 2)}, 1, 2, true}, {[]span{s(1, 2), s(1, 3)}, 1, 2, false},
		{[]span{s(1, 2), s(3, 2)}, 1, 2, false}, {[]span{s(1, 2), s(0, 0)}, 1, 2, false},
		{[]span{{from: 0, to: 256}, {from: 512, to: 1024}}, 0, 0, true}, {[]span{{from: 0, to: 257}}, 0, 0, false},
		{[]span{{from: 511, to: 1024}}, 0, 0, false},
	} {
		var f fresh
		for _, n := range c.notes {
			f.note(n)
		}
		if got := f.settled(x, rows(c.slot, c.pos)); got != c.settled {
			t.Errorf("after %v, slot %d, position %d: settled %v", c.notes, c.slot, c.pos, got)
		}
	}
	var f fresh
	if f.note(s(1, 2)); f.settled(x, kept{1, 2, 2}) {
		t.Error("some of the rows in flight are settled, and none of the others is")
	}
	f.clear()
	for i := range uint64(maxSpans + 1) {
		if f.note(span{from: 4096 + 2*i, to: 4097 + 2*i}); f.settled(x, kept{}) != (i < maxSpans) {
			t.Fatalf("after %d spans elsewhere: settled %v", i+1, i >= maxSpans)
		}
	}
	if f.clear(); !f.settled(x, kept{}) {
		t.Error("cleared, and not settled")
	}
}

// failing is a driver whose launches fail, and which counts the graphs that are not freed.
type failing struct {
	*cutest.Driver
	err    error
	graphs int
}

type counting struct {
	cu.Graph
	d *failing
}

func (g counting) Free() error { g.d.graphs--; return g.Graph.Free() }

func (d *failing) Launch(f cu.Func, grid, block cu.Dim, shared int, args []uint64) error {
	if d.err != nil {
		return d.err
	}
	return d.Driver.Launch(f, grid, block, shared, args)
}

func (d *failing) Record(f func()) (cu.Graph, error) {
	g, err := d.Driver.Record(f)
	d.graphs++
	return counting{g, d}, err
}

// A recording in which a launch failed is freed and refused; the error is that of the recording alone, and an earlier
// fault is still told.
func TestFailedRecording(t *testing.T) {
	drv := &failing{Driver: cutest.New()}
	d, err := newDevice(drv)
	if err != nil {
		t.Fatal(err)
	}
	x, y := act(d, 64, 64), stat(d, 64, 64)
	drv.err = errors.New("no launch")
	g, err := d.Record(func() { d.Copy(x, y) })
	if g != nil || !errors.Is(err, drv.err) || drv.graphs != 0 || d.graphs != 0 {
		t.Errorf("%v, %v, %d graphs of the driver, %d of the device", g, err, drv.graphs, d.graphs)
	}
	if err := d.Sync(); err != nil {
		t.Errorf("told again: %v", err)
	}
	d.Copy(x, y)
	drv.err = nil
	if g, err = d.Record(func() { d.Copy(x, y) }); err != nil || drv.graphs != 1 || d.graphs != 1 {
		t.Fatalf("a recording after a fault: %v, %d graphs", err, drv.graphs)
	}
	if err := d.Sync(); err == nil || err.Error() != "cuda: kernel copy_bf16_f32: no launch" {
		t.Errorf("the fault before the recording: %v", err)
	}
	if err := g.Free(); err != nil || drv.graphs != 0 || d.graphs != 0 {
		t.Errorf("%v, %d and %d graphs", err, drv.graphs, d.graphs)
	}
}
