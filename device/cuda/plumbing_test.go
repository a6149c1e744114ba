package cuda

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"antiphase/device/devicetest"
	"antiphase/internal/cu"
	"antiphase/internal/cu/cutest"
	"antiphase/tensor"
)

// watched is a driver that notes what is asked of it, and refuses to load some units.
type watched struct {
	*cutest.Driver
	reserved []int
	early    int
	refused  string // prefix of units
	loads    int    // that were refused
	spare    int64
	spareErr error
}

func (w *watched) Reserve(f cu.Func, n int) error {
	w.reserved = append(w.reserved, n)
	return w.Driver.Reserve(f, n)
}

func (w *watched) Early(cu.Func) { w.early++ }

func (w *watched) Spare() (int64, error) { return w.spare, w.spareErr }

var errRefused = errors.New("does not compile")

func (w *watched) Load(s cu.Source) (uintptr, error) {
	if w.refused != "" && strings.HasPrefix(s.Name, w.refused) {
		w.loads++
		return 0, errRefused
	}
	return w.Driver.Load(s)
}

func watchedDevice(t *testing.T) (*Device, *watched) {
	t.Helper()
	w := &watched{Driver: cutest.New()}
	d, err := newDevice(w)
	if err != nil {
		t.Fatal(err)
	}
	return d, w
}

// GPUs from compute capability 8.0 on are taken.
func TestOldGPUs(t *testing.T) {
	for major, good := range map[int]bool{7: false, 8: true, 9: true, 10: true} {
		drv := cutest.New()
		drv.Device.Major = major
		if _, err := newDevice(drv); (err == nil) != good || err != nil && !errors.Is(err, ErrUnavailable) {
			t.Errorf("compute capability %d: %v", major, err)
		}
	}
}

// Shared memory is asked for where a kernel has not had as much, above 48 KiB; kernels that start early say so once,
// and ask for any.
func TestSharedIsReserved(t *testing.T) {
	d, w := watchedDevice(t)
	plain, early := kernelOf("copy", "copy_a"), earlyOf("copy", "copy_b")
	d.funcs = append(d.funcs, make([]loaded, len(registry)-len(d.funcs))...)
	defer func() { registry = registry[:len(registry)-2] }()
	for _, n := range []int{0, 48 << 10, 48<<10 + 1, 50 << 10, 50 << 10, 49 << 10, 60 << 10} {
		d.start(plain, dim1(1), dim1(32), n)
	}
	if want := []int{48<<10 + 1, 50 << 10, 60 << 10}; !slices.Equal(w.reserved, want) || w.early != 0 {
		t.Errorf("reserved %d, want %d; %d start early", w.reserved, want, w.early)
	}
	w.reserved = nil
	for _, n := range []int{0, 1, 1, 4096, 100} {
		d.start(early, dim1(1), dim1(32), n)
	}
	if want := []int{1, 4096}; !slices.Equal(w.reserved, want) || w.early != 1 || len(w.Launches) != 12 {
		t.Errorf("reserved %d, want %d; %d start early, %d launches", w.reserved, want, w.early, len(w.Launches))
	}
	if loads := slices.DeleteFunc(w.Loaded, func(s string) bool { return s != "copy" }); len(loads) != 1 {
		t.Errorf("a unit of two kernels was loaded %d times", len(loads))
	}
}

// After a fault nothing is launched until Sync has told it; a unit that does not compile is tried once.
func TestNothingAfterAFault(t *testing.T) {
	d, w := watchedDevice(t)
	x, y := act(d, 64, 64), stat(d, 64, 64)
	a, _ := attnOn(d, 2, 1000, 16, 4, 128, 128, 0, false)
	d.wgmma = true
	broken := errors.New("broken")
	d.fail(nil)
	d.fail(broken)
	d.fail(errRefused)
	d.Copy(x, y)
	d.Attention(a)
	if err := d.Sync(); err != broken || len(w.Launches) != 0 {
		t.Errorf("%v, launched %v", err, w.Launches)
	}
	d.Copy(x, y)
	d.Attention(a)
	if err := d.Sync(); err != nil || len(w.Launches) != 2 {
		t.Errorf("%v, launched %v", err, w.Launches)
	}
	w.refused = "add"
	for range 2 {
		d.Add(x, y)
		if err := d.Sync(); !errors.Is(err, errRefused) || w.loads != 1 {
			t.Errorf("%v after %d loads", err, w.loads)
		}
	}
}

// Build loads every unit once, those of Hopper only there, and tells each failure once.
func TestBuild(t *testing.T) {
	hopper := func(name string) bool { return strings.HasPrefix(name, "attn_hopper") }
	for _, major := range []int{8, 9, 10} {
		d, w := watchedDevice(t)
		d.info.Major = major
		if err := d.Build(); err != nil || slices.ContainsFunc(w.Loaded, hopper) != (major == 9) {
			t.Errorf("compute capability %d: %v, of Hopper's %v", major, err, major != 9)
		}
		n := len(w.Loaded)
		if slices.Sort(w.Loaded); len(slices.Compact(w.Loaded)) != n || !slices.Contains(w.Loaded, "rmsnorm") {
			t.Errorf("%d loads of other units: %q", n, w.Loaded)
		}
		if err := d.Build(); err != nil || len(w.Loaded) != n {
			t.Errorf("built again: %d units, %v", len(w.Loaded), err)
		}
	}
	d, w := watchedDevice(t)
	w.refused = "rope" // several units of several kernels
	if err := d.Build(); err == nil || err.Error() != errRefused.Error() || w.loads < 2 {
		t.Errorf("%d units refused: %v", w.loads, err)
	}
}

// Bytes of another length than the tensor's are refused; of an empty tensor none are moved.
func TestBytesMustFit(t *testing.T) {
	d, drv := fakeDevice(t)
	devicetest.BytesMustFit(t, d, "cuda")
	empty := stat(d, 0, 3)
	drv.Order = make([]string, 0, 9)
	if d.Write(empty, nil); len(drv.Order) > 0 {
		t.Errorf("an empty tensor: %v", drv.Order)
	}
	if d.Read(nil, empty); len(drv.Order) > 0 || d.Sync() != nil {
		t.Errorf("an empty tensor: %v", drv.Order)
	}
}

// The free memory is what the driver says, unbounded where it does not know.
func TestSpare(t *testing.T) {
	d, w := watchedDevice(t)
	if w.spare = 77; d.Spare() != 77 {
		t.Errorf("%d bytes", d.Spare())
	}
	if w.spareErr = errRefused; d.Spare() != math.MaxInt64 {
		t.Errorf("%d bytes where it fails", d.Spare())
	}
	if d, _ := fakeDevice(t); d.Spare() != math.MaxInt64 {
		t.Errorf("%d bytes where it cannot say", d.Spare())
	}
}

// A fetch takes one row of words as long as its room, and tells the fault of its start before one that came later.
func TestFetchBounds(t *testing.T) {
	d, drv := fakeDevice(t)
	f := d.NewFetch(16)
	for _, c := range []struct {
		x    tensor.Tensor
		good bool
	}{{ints(d, 4), true}, {stat(d, 1, 4), true}, {ints(d, 5), false}, {act(d, 1, 4), false}, {stat(d, 2, 2), false},
		{on(d, tensor.F64, 1, 2, 2), false}} {
		func() {
			defer func() {
				if r := recover(); (r == nil) != c.good {
					t.Errorf("%v: %v", c.x, r)
				}
			}()
			f.Start(c.x)
		}()
	}
	if err := f.Wait(make([]byte, 16)); err != nil || len(drv.Launches) != 2 {
		t.Errorf("%v, launched %v", err, drv.Launches)
	}
	d.fail(errRefused)
	f.Start(ints(d, 4))
	copy(d.told, []byte{1, 0, 0, 0, 7, 0, 0, 0, 4, 0, 0, 0})
	if err := f.Wait(make([]byte, 16)); err != errRefused {
		t.Errorf("%v, want the fault known at the start", err)
	}
	if err := d.Sync(); err == nil || !strings.Contains(err.Error(), "Embed: id 7") {
		t.Errorf("%v, want the later one", err)
	}
}

// unrecorded is a driver that cannot record.
type unrecorded struct{ *failing }

func (u unrecorded) Record(f func()) (cu.Graph, error) { f(); return nil, errRefused }

// A driver that cannot record is believed, whatever else failed meanwhile.
func TestRefusedRecording(t *testing.T) {
	drv := unrecorded{&failing{Driver: cutest.New()}}
	d, err := newDevice(drv)
	if err != nil {
		t.Fatal(err)
	}
	drv.err = errors.New("no launch")
	if g, err := d.Record(func() { d.Copy(act(d, 8, 8), stat(d, 8, 8)) }); g != nil || !errors.Is(err, errRefused) ||
		d.graphs != 0 {
		t.Errorf("%v, %v", g, err)
	}
}

// Memory as a rectangle: one row where the tensor is dense. Tensors become one row each, or none of them.
func TestViews(t *testing.T) {
	d, _ := fakeDevice(t)
	x, wide := act(d, 3, 8), on(d, tensor.BF16, 3, 8, 16)
	part := wide.Columns(4, 8).RowRange(1, 3)
	for _, c := range []struct {
		x    tensor.Tensor
		want cu.Block
	}{
		{x, cu.Block{Addr: x.Buf.Addr, Rows: 1, Width: 48, Pitch: 48}},
		{wide, cu.Block{Addr: wide.Buf.Addr, Rows: 3, Width: 16, Pitch: 32}},
		{part, cu.Block{Addr: wide.Buf.Addr + 40, Rows: 2, Width: 8, Pitch: 32}},
	} {
		if got := block(c.x); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.x, got, c.want)
		}
	}
	a, b, none := x, act(d, 3, 8), tensor.Tensor{}
	if flat(&a, &none, &b); a.Rows != 1 || a.Cols != 24 || a.Ld != 24 || b.Rows != 1 || none.Ok() {
		t.Errorf("%v, %v, %v", a, b, none)
	}
	a = x
	if flat(&a, &wide); a != x || wide.Rows != 3 {
		t.Errorf("%v and %v", a, wide)
	}
}

// Threads for elements and for rows: whole warps, within what a GPU takes, at least one of each.
func TestGeometryOfElements(t *testing.T) {
	for _, c := range []struct{ rows, cols, x, y, threads, own int }{
		{1, 1, 1, 1, 32, 32}, {7, 256, 1, 7, 32, 32}, {7, 257, 1, 7, 64, 64}, {1, 2048, 1, 1, 256, 256},
		{1, 2049, 2, 1, 256, 288}, {65535, 8, 1, 65535, 32, 32},
		{65536, 8, 1, 65535, 32, 32}, {1, 8192, 4, 1, 256, 1024}, {1, 8193, 5, 1, 256, 1024},
		{1, 1 << 32, 1 << 20, 1, 256, 1024},
	} {
		grid, block := each(c.rows, c.cols)
		if grid != dim2(c.x, c.y) || block != dim1(c.threads) || rowThreads(c.cols) != c.own {
			t.Errorf("%d × %d: %v of %v, rows of %d", c.rows, c.cols, grid, block, rowThreads(c.cols))
		}
	}
	if rowThreads(0) != 32 {
		t.Errorf("an empty row has %d threads", rowThreads(0))
	}
}

// A unit's text is the prelude and its file with each include once, lines counted as in their files.
func TestSourceText(t *testing.T) {
	files := map[string]string{"prelude.cuh": "P\n",
		"u.cu":  "#include \"x.cuh\"\nB\n  #include \"y.cuh\"\n#include \"x.cuh\"\nC\n",
		"x.cuh": "#include \"y.cuh\"\nX\n", "y.cuh": "Y\n"}
	want := "#line 1 \"prelude.cuh\"\nP\n\n#line 1 \"u.cu\"\n#line 1 \"x.cuh\"\n#line 1 \"y.cuh\"\nY\n\n" +
		"#line 2 \"x.cuh\"\nX\n\n#line 2 \"u.cu\"\nB\n#line 4 \"u.cu\"\n#line 5 \"u.cu\"\nC\n\n"
	for options, name := range map[string]string{"": "u", "-DA=1 -DB=2": "u -DA=1 -DB=2"} {
		s, err := source("u", options, files)
		if err != nil || s.Text != want || s.Name != name || len(s.Options) != len(strings.Fields(options)) {
			t.Errorf("%v, %q of %q:\n%s", err, s.Name, s.Options, s.Text)
		}
	}
	if _, err := source("nowhere", "", nil); err == nil || !strings.Contains(err.Error(), "nowhere.cu") {
		t.Errorf("%v", err)
	}
	if s, err := source("zz", "", map[string]string{"zz.cu": "#include \"early.cuh\"\n"}); err != nil ||
		!strings.Contains(s.Text, "waitEarlier") {
		t.Errorf("a file of the program beside a replaced one: %v", err)
	}
}

// What is written is one span each, however often; spans that share an end are two. Nothing is no span.
func TestSpansOfWrites(t *testing.T) {
	d, _ := fakeDevice(t)
	x := tensor.Tensor{Buf: &tensor.Buffer{Addr: 256, Size: 256}, Type: tensor.F32, Rows: 1, Cols: 64, Ld: 64}
	for _, spans := range [][]span{{{from: 600, to: 1024}, {from: 400, to: 1024}},
		{{from: 16, to: 100}, {from: 16, to: 300}}} {
		var f fresh
		for i, s := range spans {
			if f.note(s); f.settled(x, kept{}) != (i == 0) {
				t.Errorf("after %v: settled %v", spans[:i+1], i != 0)
			}
		}
	}
	var f fresh
	for range 2 * maxSpans {
		f.note(span{from: 1024, to: 2048})
	}
	f.wrote(tensor.Tensor{}, act(d, 0, 8), act(d, 8, 0))
	if len(f.spans) != 1 || !f.settled(x, kept{}) {
		t.Errorf("%d spans, settled %v", len(f.spans), f.settled(x, kept{}))
	}
	c := carver{1024}
	for _, p := range []struct {
		bytes int
		at    uint64
	}{{1, 1024}, {256, 1280}, {0, 1536}, {257, 1536}, {8, 2048}} {
		if got := c.take(p.bytes); got != p.at {
			t.Errorf("%d bytes lie at %d, want %d", p.bytes, got, p.at)
		}
	}
}
