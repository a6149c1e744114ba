package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/infer"
	"antiphase/internal/cu"
	"antiphase/tensor"
)

// advanceRight holds Advance to its contract and a fetch to what was there when it was started.
func advanceRight(t *testing.T, d *Device) {
	const n = 300
	var best, ids, pos [n]int32
	for i := range n {
		best[i], ids[i], pos[i] = int32(i*7%50-1), int32(i), int32(1000-i)
	}
	b, x, p := on(d, tensor.I32, 1, n, n), on(d, tensor.I32, 1, n, n), on(d, tensor.I32, 1, n, n)
	device.WriteI32(d, b, best[:])
	device.WriteI32(d, x, ids[:])
	device.WriteI32(d, p, pos[:])
	f := d.NewFetch(4 * n)
	d.Advance(x, p, b)
	f.Start(x)
	d.Zero(x)
	if err := device.WaitI32(f, ids[:]); err != nil {
		t.Fatal(err)
	}
	f.Free()
	was := pos
	device.ReadI32(d, pos[:], p)
	for i := range n {
		if ids[i] != max(best[i], 0) || pos[i] != was[i]+1 {
			t.Fatalf("row %d: best %d became id %d, position %d became %d", i, best[i], ids[i], was[i], pos[i])
		}
	}
}

// decodeAhead checks an engine that starts steps ahead against one on a device that cannot, through ends that nobody
// foresees, in pages of four.
func decodeAhead(t *testing.T, d *Device, arch string) {
	run := func(dev device.Device) (out [3][]int32) {
		m := small(t, dev, arch)
		e, err := infer.New(m, nil, infer.Options{Slots: 2, PageSize: 4, PrefillChunk: 8})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		reqs := []infer.Request{
			{IDs: []int32{1, 2, 3}, Sampling: infer.Sampling{MaxTokens: 16}},
			{IDs: []int32{4}, Sampling: infer.Sampling{MaxTokens: 24}},
			{IDs: []int32{5, 6}, Sampling: infer.Sampling{MaxTokens: 7}},
		}
		if err := e.Generate(context.Background(), reqs, func(i int, ev infer.Event) bool {
			out[i] = append(out[i], ev.ID)
			return i != 0 || len(out[0]) < 9
		}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	want, got := run(eager{d}), run(d)
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("%s: request %d is %v ahead, %v in step", arch, i, got[i], want[i])
		}
	}
	if err := d.Sync(); err != nil || d.graphs != 0 {
		t.Errorf("%s: %d graphs left, %v", arch, d.graphs, err)
	}
}

func TestAdvance(t *testing.T) {
	d := gpu(t, nil)
	advanceRight(t, d)
	for _, kind := range kinds() {
		decodeAhead(t, d, kind)
	}
}

// TestAheadOfTheHost: whenever the host waits for a step's tokens, the graph of the next one has been launched behind
// their fetch; a step is one graph and one fetch, with a copy of page tables now and then.
func TestAheadOfTheHost(t *testing.T) {
	d, drv := fakeDevice(t)
	drv.Order = make([]string, 0, 1000)
	m := small(t, d, "diff")
	e, err := infer.New(m, nil, infer.Options{Slots: 2, PageSize: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	drv.Reset()
	const steps = 24 // the prompts' of two tokens, which cannot be followed, then one that is not recorded yet
	reqs := slices.Repeat([]infer.Request{{IDs: []int32{1, 2}, Sampling: infer.Sampling{MaxTokens: steps}}}, 2)
	if err := e.Generate(context.Background(), reqs, func(int, infer.Event) bool { return true }); err != nil {
		t.Fatal(err)
	}
	order := strings.Join(slices.DeleteFunc(drv.Order, func(s string) bool { return s == "upload" }), " ")
	want := "download sync mark " + strings.Repeat("graph mark wait ", steps-2) + "wait sync"
	if order != want || e.Stats().Steps != steps || drv.Graphs != steps-2 {
		t.Errorf("%d steps of %d graphs:\n%s\nwant\n%s", e.Stats().Steps, drv.Graphs, order, want)
	}
}

// refusing is a driver whose graphs fail from some launch on.
type refusing struct {
	cu.Driver
	left int
	err  error
}

type refused struct {
	r *refusing
	cu.Graph
}

func (r *refusing) Record(f func()) (cu.Graph, error) {
	g, err := r.Driver.Record(f)
	return refused{r, g}, err
}

func (g refused) Launch() error {
	if g.r.left--; g.r.left < 0 {
		return g.r.err
	}
	return g.Graph.Launch()
}

// TestAheadFault: what the driver refuses of a step ahead is that step's error, not the one's whose tokens are waited
// for meanwhile; a kernel's report is told by the wait that sees it.
func TestAheadFault(t *testing.T) {
	d, drv := fakeDevice(t)
	gone := errors.New("the graph is gone")
	d.drv = &refusing{drv, 5, gone}
	e, err := infer.New(small(t, d, "diff"), nil, infer.Options{Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	tokens := 0
	run := func() error {
		tokens = 0
		return e.Generate(context.Background(),
			[]infer.Request{{IDs: []int32{1, 2}, Sampling: infer.Sampling{MaxTokens: 20}}},
			func(_ int, ev infer.Event) bool {
				tokens += min(1, int(ev.ID)+1)
				return true
			})
	}
	// A prompt, a step before the recording, five graphs.
	if err := run(); !errors.Is(err, gone) || tokens != 7 || !strings.Contains(fmt.Sprint(err), "step 7:") {
		t.Errorf("after %d tokens: %v", tokens, err)
	}
	f := d.NewFetch(4)
	defer f.Free()
	x := ints(d, 1)
	f.Start(x)
	copy(d.told, []byte{3, 0, 0, 0, 9, 0, 0, 0, 8})
	if err := f.Wait(make([]byte, 4)); err == nil || err.Error() != "cuda: Rope: position 9 outside a table of 8" ||
		d.told[0] != 0 {
		t.Errorf("a kernel's report came as %v", err)
	}
}
