package cuda

import (
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// trialLists are the values of ANTIPHASE_TRY that change the shape's kernels and are worth a comparison.
func (s attnShape) trialLists() []string {
	lists := []string{"none"}
	if _, made := hopperFixed[s]; made {
		lists = append(lists, "fixed")
	}
	return lists
}

// mustChoose parses a list for Hopper.
func mustChoose(list string) (t trials) {
	if err := t.choose(list, 9); err != nil {
		panic(err)
	}
	return t
}

// trialKernels are the shape's kernels for each list, or for those of ANTIPHASE_TEST_LISTS.
func (s attnShape) trialKernels(d *Device, c *attnCall) (names []string, all []hopperKernels) {
	only := strings.Fields(os.Getenv("ANTIPHASE_TEST_LISTS"))
	for _, list := range s.trialLists() {
		if len(only) > 0 && !slices.Contains(only, list) {
			continue
		}
		d.try = mustChoose(list)
		_, k, _ := c.hopper(d.machine)
		names, all = append(names, list), append(all, k)
	}
	return names, all
}

// TestTrialLaunches checks the launchers of kernels under trial against their geometry.
func TestTrialLaunches(t *testing.T) {
	for _, c := range []launchCase{
		{"V2", func(d *Device) {
			a, g := diffOn(d, 2, 2048, 12, 12, 64, 64, 1)
			d.DiffAttention(a)
			d.DiffAttentionBackward(a, g)
		}, []string{"attn_hopper_forward 132,1,1 × 384 + 98424", "attention_prepare 384,1,1 × 256 + 0",
			"attn_hopper_backward 384,1,1 × 384 + 215632", "attn_hopper_queries 32,12,2 × 256 + 0"}},
		{"V1, wide heads", func(d *Device) {
			a, g := diffOn(d, 4, 8192, 8, 8, 128, 256, 2)
			d.DiffAttentionBackward(a, g)
		}, []string{"attention_prepare 2048,1,1 × 256 + 0", "attn_hopper_backward 4096,1,1 × 384 + 232000", "attn_hopper_queries 128,8,4 × 256 + 0"}},
		{"bytes", func(d *Device) {
			a, _ := diffOn(d, 64, 1, 6, 6, 64, 128, 2)
			const rows, page, pages = 64 * 1056, 16, 66
			d.types.Cache = tensor.I8
			c := &device.Cache{K: on(d, tensor.I8, rows, 816, 816), V: on(d, tensor.I8, rows, 800, 800), Table: on(d, tensor.I32, 64, pages, pages), PageSize: page,
				KHeads: 12, VHeads: 6, D: 64, DV: 128}
			d.DiffAttentionCached(a, c, ints(d, 64), ints(d, 64))
		}, []string{"diffattention_splits 6,4,64 × 256 + 45408", "diffattention_join 6,64,1 × 384 + 6216"}},
		{"Rope and CacheWrite", func(d *Device) {
			qkv, at := act(d, 64, 2304), ints(d, 64)
			d.types.Cache = tensor.I8
			c := &device.Cache{K: on(d, tensor.I8, 1024, 816, 816), V: on(d, tensor.I8, 1024, 800, 800), Table: on(d, tensor.I32, 64, 1, 1), PageSize: 16,
				KHeads: 12, VHeads: 6, D: 64, DV: 128}
			d.Rope(qkv.Columns(0, 1536), stat(d, 64, 64), at, device.Rope{Heads: 24, Dim: 64, Interleaved: true})
			d.CacheWrite(c, qkv.Columns(768, 1536), qkv.Columns(1536, 2304), at, at)
		}, []string{"rope_bytes_pairs 240,1,1 × 128 + 0"}},
	} {
		d, drv := fakeDevice(t)
		d.wgmma, d.try = true, mustChoose("fixed,packed,joined")
		c.holds(t, d, drv)
	}
}

func (s attnShape) String() string { return fmt.Sprintf("%d%d_%d_%d", s.maps, s.keys, s.d, s.dv) }

// TestHopperTrials holds the kernels under trial to the general kernels, on a GPU: a line for each list.
func TestHopperTrials(t *testing.T) {
	d := gpu(t, func(line string) {
		if strings.Contains(line, "C75") {
			fmt.Println(line)
		}
	})
	if d.info.Major != 9 {
		t.Skipf("%s is no Hopper", d.Name())
	}
	for _, s := range hopperOrder() {
		t.Run(s.String(), func(t *testing.T) {
			for _, list := range s.trialLists() {
				d.try = mustChoose(list)
				right := t.Run(list, func(t *testing.T) {
					trialAgrees(t, d, s, list, 1000)
					hopperAgrees(t, d, s, 3, 130)
				})
				c := newTiledCase(d, s, 1, 64, 0)
				_, k, _ := c.hopper(d.machine)
				c.free()
				f, b := d.drv.Usage(d.funcs[k.forward].fn), d.drv.Usage(d.funcs[k.backward].fn)
				fmt.Printf("%v %-44s right: %v; local bytes %d, %d\n", s, list, right, f.Local, b.Local)
			}
		})
	}
}

// trialAgrees holds the kernels of a list to the general kernels, and the forward kernel to the table's bits.
func trialAgrees(t *testing.T, d *Device, s attnShape, list string, rows int) {
	t.Helper()
	d.try = trials{}
	if k, made := hopperFixed[s]; made && list == "fixed" {
		sameForward(t, d, s, &k, rows)
	}
	d.try = mustChoose(list)
	hopperAgrees(t, d, s, 2, rows)
}

// trialBits are hashes of what each of the kernels leaves in the last quarter of the rows, which must be close to what
// the first leaves.
func trialBits(t *testing.T, d *Device, c *attnCall, s attnShape, names []string, kernels []hopperKernels) (all [][sha256.Size]byte) {
	t.Helper()
	var want []float64
	for i := range kernels {
		d.forwardHopper(c, s, &kernels[i])
		d.backwardHopper(c, s, &kernels[i])
		quarter := func(x tensor.Tensor) tensor.Tensor { return x.RowRange(x.Rows/4*3, x.Rows) }
		all = append(all, sha256.Sum256(read(d, quarter(c.out), quarter(c.dq), quarter(c.dk))))
		var got []float64
		for _, x := range []tensor.Tensor{c.out, c.dq, c.dk, c.dv} {
			for _, at := range []int{x.Rows / 3, x.Rows - 256} {
				part := make([]float64, 256*x.Cols)
				device.ReadFloats(d, part, x.RowRange(at, at+256))
				got = append(got, part...)
			}
		}
		if want == nil {
			want = got
		}
		diff, size := 0.0, 0.0
		for j := range got {
			diff += (got[j] - want[j]) * (got[j] - want[j])
			size += want[j] * want[j]
		}
		if e := math.Sqrt(diff / size); !(e < 1e-2) {
			t.Errorf("%v: %s is off by %.2g of the table's results", s, names[i], e)
		}
	}
	return all
}

// TestHopperTrialTimes prints the medians of three rounds in turns, milliseconds forward and backward. It takes
// ANTIPHASE_TEST_TIMES=1, and a GPU.
func TestHopperTrialTimes(t *testing.T) {
	if os.Getenv("ANTIPHASE_TEST_TIMES") != "1" {
		t.Skip("a measurement: ANTIPHASE_TEST_TIMES=1 asks for it")
	}
	d := gpu(t, nil)
	for _, s := range hopperOrder() {
		width, length := 2048, 8192
		if s.d == 64 {
			width, length = 768, 2048
		}
		t.Run(s.String(), func(t *testing.T) {
			c := benchCall(t, d, s, 32768/length, length, width/s.d/s.keys)
			names, kernels := s.trialKernels(d, c)
			forward, backward := make([][]float64, len(names)), make([][]float64, len(names))
			before := trialBits(t, d, c, s, names, kernels)
			for range 3 {
				for i := range kernels {
					d.try = mustChoose(names[i])
					forward[i] = append(forward[i], milliseconds(t, d, func() { d.forwardHopper(c, s, &kernels[i]) }))
					backward[i] = append(backward[i], milliseconds(t, d, func() { d.backwardHopper(c, s, &kernels[i]) }))
				}
			}
			after := trialBits(t, d, c, s, names, kernels)
			for i, name := range names {
				if before[i] != after[i] {
					t.Errorf("%v: %s comes to other bits in a later run", s, name)
				}
				slices.Sort(forward[i])
				slices.Sort(backward[i])
				fmt.Printf("%v T%d %-44s forward %.3f (%.3f-%.3f) backward %.3f (%.3f-%.3f) sum %.3f ms\n", s, length, name, forward[i][1],
					forward[i][0], forward[i][2], backward[i][1], backward[i][0], backward[i][2], forward[i][1]+backward[i][1])
			}
			for _, x := range []tensor.Tensor{c.q, c.k, c.v, c.out, c.raw, c.out2, c.dout, c.dq, c.dk, c.dv} {
				if x.Ok() {
					d.Free(x.Buf)
				}
			}
		})
	}
}
