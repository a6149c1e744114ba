package cpu

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/internal/half"
	"antiphase/tensor"
)

// An op on bfloat16 is the one on float32 of the same values, its results rounded: also where rows are longer than the
// pieces they are taken by, dense and with gaps.
func TestPiecesBF16(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, cols := range []int{384, pieceLen, pieceLen + 2, 2*pieceLen + 450} {
			for _, gap := range []int{0, 14} {
				testPieces(t, 5, cols, gap)
			}
		}
		testPieces(t, 17, 2*pieceLen+6, 0) // several tiles, and several shares of a norm's gradient
	})
}

// testPieces runs every op on rows × cols activations, gap elements apart, on a device of each kind.
func testPieces(t *testing.T, rows, cols, gap int) {
	t.Helper()
	floats, shorts := New(Options{Threads: 2}), New(Options{Threads: 2, Precision: BF16})
	defer floats.Close()
	defer shorts.Close()
	for name, op := range pieceOps {
		want, got := pieceRun(floats, op, rows, cols, gap), pieceRun(shorts, op, rows, cols, gap)
		for i := range want {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("%s of %d×%d, %d apart: result %d is not the rounded one of float32", name, rows, cols, gap, i)
			}
		}
	}
}

// pieceArgs are tensors of one device: activations x, vectors w and ids of rows, and sums in float32.
type pieceArgs struct {
	x    [4]tensor.Tensor // [N,C] in Act
	wide [2]tensor.Tensor // [N,2C] in Act
	w    tensor.Tensor    // [1,C] in Act
	sum  tensor.Tensor    // [1,C] in Stat
	rows tensor.Tensor    // [1,N] in Stat
	big  tensor.Tensor    // [N,C] in Stat
	ids  tensor.Tensor    // I32 [1,N]
}

var pieceOps = map[string]func(d *Device, a *pieceArgs){
	"add":             func(d *Device, a *pieceArgs) { d.Add(a.x[0], a.x[1]) },
	"add act to stat": func(d *Device, a *pieceArgs) { d.Add(a.big, a.x[1]) },
	"add stat to act": func(d *Device, a *pieceArgs) { d.Add(a.x[0], a.big) },
	"copy to act":     func(d *Device, a *pieceArgs) { d.Copy(a.x[0], a.big) },
	"copy to stat":    func(d *Device, a *pieceArgs) { d.Copy(a.big, a.x[0]) },
	"bias":            func(d *Device, a *pieceArgs) { d.AddBias(a.x[0], a.w) },
	"bias backward":   func(d *Device, a *pieceArgs) { d.BiasBackward(a.sum, a.x[0]) },
	"embed":           func(d *Device, a *pieceArgs) { d.Embed(a.x[0], a.x[1], a.ids) },
	"embed backward":  func(d *Device, a *pieceArgs) { d.EmbedBackward(a.big, a.x[0], a.ids) },
	"norm": func(d *Device, a *pieceArgs) {
		d.RMSNorm(a.x[0], a.rows, tensor.Tensor{}, a.x[1], tensor.Tensor{}, a.w, 1e-5)
	},
	"norm backward": func(d *Device, a *pieceArgs) { d.RMSNormBackward(a.x[0], a.sum, a.x[1], a.x[2], a.w, a.rows) },
	"rope": func(d *Device,
		a *pieceArgs) {
		d.Rope(a.x[0], a.big, a.ids, device.Rope{Heads: 1, Dim: a.big.Cols})
	},
	"rope heads": func(d *Device, a *pieceArgs) { a.ropeHeads(d, device.Rope{Dim: 64}) },
	"rope pairs": func(d *Device,
		a *pieceArgs) {
		a.ropeHeads(d, device.Rope{Dim: 64, Interleaved: true, Inverse: true})
	},
	"swiglu":          func(d *Device, a *pieceArgs) { d.SwiGLU(a.x[0], a.wide[0]) },
	"swiglu backward": func(d *Device, a *pieceArgs) { d.SwiGLUBackward(a.wide[1], a.x[0], a.x[1], a.wide[0]) },
	"swiglu in place": func(d *Device, a *pieceArgs) { d.SwiGLUBackward(a.wide[0], a.x[0], a.x[0], a.wide[0]) },
	"subtract heads":  func(d *Device, a *pieceArgs) { d.SubtractHeads(a.x[0], a.wide[0], a.big.Columns(0, 2), 2) },
	"subtract heads backward": func(d *Device, a *pieceArgs) {
		d.SubtractHeadsBackward(a.wide[1], a.big.Columns(0, 2), a.x[1], a.wide[0], a.big.Columns(2, 4), 2)
	},
	"sigmoid":          func(d *Device, a *pieceArgs) { d.Sigmoid(a.x[0], a.x[1]) },
	"sigmoid backward": func(d *Device, a *pieceArgs) { d.SigmoidBackward(a.x[0], a.x[0], a.x[1]) },
	"sum of squares":   func(d *Device, a *pieceArgs) { d.SumSquares(a.sum.Columns(0, 1), a.x[0]) },
}

// ropeHeads rotates as many heads as fit.
func (a *pieceArgs) ropeHeads(d *Device, r device.Rope) {
	r.Heads = a.x[0].Cols / r.Dim
	d.Rope(a.x[0].Columns(0, r.Heads*r.Dim), a.big.Columns(0, r.Dim), a.ids, r)
}

// fill makes the tensors, their rows gap elements apart, with values that both kinds of device can hold; acts are those
// of Act.
func (a *pieceArgs) fill(d *Device, rows, cols, gap int) (acts, stats []tensor.Tensor) {
	r, types := rand.New(rand.NewPCG(7, uint64(cols))), d.Types()
	values := make([]float32, 4099) // a prime, so that no two rows are alike
	for i := range values {
		values[i] = half.BF16ToF32(half.F32ToBF16(float32(r.NormFloat64())))
	}
	fresh := func(t tensor.DType, rows, cols int) tensor.Tensor {
		x := device.Empty(d, t, rows, cols+gap).Columns(0, cols)
		all := make([]float32, x.Len())
		for i, at := 0, r.IntN(len(values)); i < len(all); at = 0 {
			i += copy(all[i:], values[at:])
		}
		device.WriteFloats(d, x, all)
		return x
	}
	for i := range a.x {
		a.x[i] = fresh(types.Act, rows, cols)
	}
	for i := range a.wide {
		a.wide[i] = fresh(types.Act, rows, 2*cols)
	}
	a.w, a.sum = fresh(types.Act, 1, cols), fresh(types.Stat, 1, cols)
	a.big, a.rows = fresh(types.Stat, rows, cols), fresh(types.Stat, 1, rows)
	a.ids = device.Empty(d, tensor.I32, 1, rows)
	ids := make([]int32, rows)
	for i := range ids {
		ids[i] = int32(r.IntN(rows))
	}
	device.WriteI32(d, a.ids, ids)
	return append(append(a.x[:], a.wide[:]...), a.w), []tensor.Tensor{a.sum, a.big, a.rows}
}

// pieceRun runs op on the same values on any device and gives all tensors afterwards, those of Act rounded to bfloat16.
func pieceRun(d *Device, op func(d *Device, a *pieceArgs), rows, cols, gap int) (all [][]float32) {
	var a pieceArgs
	acts, stats := a.fill(d, rows, cols, gap)
	op(d, &a)
	for i, x := range append(acts, stats...) {
		values := make([]float32, x.Len())
		device.ReadFloats(d, values, x)
		for j, v := range values {
			if i < len(acts) {
				values[j] = half.BF16ToF32(half.F32ToBF16(v))
			}
		}
		all = append(all, values)
	}
	return all
}

// BenchmarkElementwise is every op on 4096 rows of activations in float32 and in bfloat16, in turns on so many of them
// that they come from memory.
func BenchmarkElementwise(b *testing.B) {
	for _, cols := range []int{384, 1024, 2048} {
		sets := map[tensor.DType][]pieceArgs{tensor.F32: make([]pieceArgs, 1+2048/cols),
			tensor.BF16: make([]pieceArgs, 1+2048/cols)}
		for _, name := range slices.Sorted(maps.Keys(pieceOps)) {
			for act, set := range sets {
				b.Run(fmt.Sprintf("%s/%d/%v", name, cols, act), func(b *testing.B) {
					d := New(Options{Precision: BF16})
					d.act = act
					defer d.Close()
					for i := range set {
						if !set[i].w.Ok() {
							set[i].fill(d, 4096, cols, 0)
						}
					}
					for i := 0; b.Loop(); i++ {
						pieceOps[name](d, &set[i%len(set)])
					}
				})
			}
		}
	}
}
