package cuda

import (
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/internal/cu"
	"antiphase/tensor"
)

// Each fault of a kernel names the op, the wrong value and its bound, in this order.
func TestFaultTexts(t *testing.T) {
	for code, want := range []string{1: "cuda: Embed: id 7 outside a table of 4 rows", 2: "cuda: EmbedBackward: id 7 outside a table of 4 rows",
		3: "cuda: Rope: position 7 outside a table of 4", 4: "cuda: Classify: target 7 outside 4 classes", 5: "cuda: cache: position 7 outside 4",
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

// What a GPU is called and what its bits depend on: the model, the libraries, the number of multiprocessors, by which sums
// are cut, and the precision of its cache. What its speed depends on is the model.
func TestIdentity(t *testing.T) {
	d, _ := fakeDevice(t)
	d.info = cu.Info{Name: "H9", Ordinal: 3, Major: 9, SMs: 40, CublasLt: 120801, NVRTC: 12080}
	for cache, precision := range map[tensor.DType]string{tensor.BF16: "bf16", tensor.I8: "bf16, int8 cache"} {
		d.types.Cache = cache
		want := device.Identity{Device: "H9", Precision: precision, Kernels: "sm_90a, 40 SMs, cuBLASLt 120801, NVRTC 12080"}
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

// The kernels for few rows, by the number of rows, columns and k, on both sides of every bound: 132 multiprocessors with
// 227 KiB of shared memory, and fewer.
func TestPickRows(t *testing.T) {
	for _, c := range []struct {
		sms, shared, m, n, k int
		want                 string
	}{
		{132, 227 << 10, 1, 131 * 16, 64, "matmul_rows8_half"}, {132, 227 << 10, 8, 131*16 + 1, 64, "matmul_rows8_short"},
		{132, 227 << 10, 8, 8192, 1024, "matmul_rows8_short"}, {132, 227 << 10, 8, 8192, 1032, "matmul_rows8_long"},
		{132, 227 << 10, 8, 8192, 7040, "matmul_rows8_long"}, {132, 227 << 10, 8, 8192, 7048, "matmul_rows8_any"},
		{132, 16 << 10, 8, 64, 1024, "matmul_rows8_short"}, {132, 227 << 10, 9, 64, 64, "matmul_rows16"}, {132, 227 << 10, 16, 8192, 9000, "matmul_rows16"},
		{132, 227 << 10, 17, 132 * 16, 64, "matmul_rows32_1"}, {132, 227 << 10, 17, 132*16 + 1, 64, "matmul_rows32_2"}, {132, 227 << 10, 32, 132*32 + 1, 64, "matmul_rows32_3"},
		{132, 227 << 10, 32, 1 << 20, 64, "matmul_rows32_4"}, {132, 227 << 10, 33, 64, 64, "matmul_rows64_1"}, {132, 227 << 10, 65, 67 * 16, 64, "matmul_rows64_2"},
		{132, 100 << 10, 33, 64, 64, "matmul_rows32_1"}, {132, 100 << 10, 33, 1 << 20, 64, "matmul_rows32_2"},
	} {
		d, _ := fakeDevice(t)
		d.info.SMs, d.info.Shared = c.sms, c.shared
		if got := d.pickRows(c.m, c.n, c.k); got.name() != c.want || got.shared(c.k) > c.shared {
			t.Errorf("%d rows, %d columns, k = %d with %d bytes: %s of %d bytes, want %s", c.m, c.n, c.k, c.shared, got.name(), got.shared(c.k), c.want)
		}
	}
}

// How a sum over k is cut: to two blocks for each multiprocessor, parts of 256 or more in whole pieces of 64, at most 16.
func TestCutOfProducts(t *testing.T) {
	d, _ := fakeDevice(t)
	d.info.SMs = 132
	for _, c := range [][5]int{ // rows, columns, k; numbers of a part, parts
		{1, 64, 100, 128, 1}, {1, 64, 511, 512, 1}, {1, 64, 512, 256, 2}, {1, 64, 1 << 14, 1024, 16}, {256, 64 * 132, 4096, 2048, 2}, {256, 64 * 133, 4096, 4096, 1},
		{257, 64, 4096, 4096, 1}, {1, 64, 0, 1, 1}, {1, 1, 1000, 384, 3},
	} {
		per, parts := d.cut(c[0], c[1], c[2])
		if per != c[3] || parts != c[4] {
			t.Errorf("%v: %d parts of %d, want %d of %d", c[:3], parts, per, c[4], c[3])
		}
	}
}
