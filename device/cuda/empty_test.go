package cuda

import (
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// Ops on nothing launch nothing: no GPU takes a grid without blocks.
func TestNothingToDo(t *testing.T) {
	none := tensor.Tensor{}
	for name, call := range map[string]func(d *Device){
		"zero":           func(d *Device) { d.Zero(act(d, 0, 8)) },
		"copy":           func(d *Device) { d.Copy(act(d, 0, 8), stat(d, 0, 8)) },
		"add":            func(d *Device) { d.Add(act(d, 3, 0), stat(d, 3, 0)) },
		"bias":           func(d *Device) { d.AddBias(act(d, 0, 8), act(d, 1, 8)) },
		"bias backward":  func(d *Device) { d.BiasBackward(stat(d, 1, 8), act(d, 0, 8)) },
		"embed":          func(d *Device) { d.Embed(act(d, 0, 8), act(d, 5, 8), ints(d, 0)) },
		"embed backward": func(d *Device) { d.EmbedBackward(stat(d, 5, 8), act(d, 0, 8), ints(d, 0)) },
		"embed no table": func(d *Device) { d.EmbedBackward(stat(d, 0, 8), act(d, 3, 8), ints(d, 3)) },
		"norm": func(d *Device) {
			d.RMSNorm(act(d, 0, 8), none, none, act(d, 0, 8), none,
				act(d, 1, 8), 1e-5)
		},
		"norm backward": func(d *Device) {
			d.RMSNormBackward(act(d, 0, 8), stat(d, 1, 8), act(d, 0, 8), act(d, 0, 8), act(d, 1, 8), stat(d, 1, 0))
		},
		"rope": func(d *Device) {
			d.Rope(act(d, 0, 16), stat(d, 5, 16), ints(d, 0),
				device.Rope{Heads: 1, Dim: 16})
		},
		"swiglu": func(d *Device) { d.SwiGLU(act(d, 0, 8), act(d, 0, 16)) },
		"swiglu backward": func(d *Device) {
			d.SwiGLUBackward(act(d, 0, 16), act(d, 0, 8), act(d, 0, 8),
				act(d, 0, 16))
		},
		"sigmoid": func(d *Device) { d.Sigmoid(stat(d, 0, 8), stat(d, 0, 8)) },
		"argmax":  func(d *Device) { d.ArgMax(ints(d, 0), stat(d, 0, 8)) },
		"product": func(d *Device) { d.MatMul(act(d, 0, 8), act(d, 0, 8), act(d, 8, 8), device.MatMul{}) },
		"advance": func(d *Device) { d.Advance(ints(d, 0), ints(d, 0), ints(d, 0)) },
		"adamw": func(d *Device) {
			d.AdamW(&device.AdamW{W: act(d, 1, 0), M: stat(d, 1, 0), V: stat(d, 1, 0), G: stat(d, 1, 0),
				Rate: stat(d, 1, 3), GradSq: stat(d, 1, 1)})
		},
		"classify": func(d *Device) {
			d.Classify(&device.Classifier{X: act(d, 0, 8), W: act(d, 5, 8), Targets: ints(d, 0), Loss: stat(d, 1, 0)})
		},
		"probs": func(d *Device) {
			d.AttentionProbs(stat(d, 0, 4), act(d, 4, 8), act(d, 4, 8),
				device.Probs{T: 4, D: 8})
		},
		"attention": func(d *Device) {
			a, g := attnOn(d, 0, 10, 2, 1, 64, 64, 0, true)
			d.Attention(a)
			d.AttentionBackward(a, g)
			cache := &device.Cache{K: act(d, 64, 64), V: act(d, 64, 64),
				Table: on(d, tensor.I32, 2, 4, 4), PageSize: 16}
			d.AttentionCached(a, cache, ints(d, 0), ints(d, 0))
		},
	} {
		if got := launched(t, call); len(got) > 0 {
			t.Errorf("%s: launched %v", name, got)
		}
	}
}

// Kernels that read 16 bytes at a time take rows that are aligned, of whole pieces, each side of their bounds.
func TestAlignedChoices(t *testing.T) {
	norm := func(rows, cols int, askew string) func(d *Device) {
		return func(d *Device) {
			row := func(name string, rows int) tensor.Tensor {
				if name == askew {
					return off(d, rows, cols)
				}
				return act(d, rows, cols)
			}
			d.RMSNorm(row("y", rows), stat(d, 1, rows), row("sum", rows), row("x", rows), row("delta", rows),
				row("w", 1), 1e-5)
			d.RMSNormBackward(row("y", rows), stat(d, 1, cols), row("dy", rows), row("x", rows), row("w", 1),
				stat(d, 1, rows))
		}
	}
	product := func(rows, k int, w func(d *Device) tensor.Tensor) func(d *Device) {
		return func(d *Device) {
			d.MatMul(act(d, rows, 64), act(d, rows, k), w(d), device.MatMul{TransB: true})
		}
	}
	warps, plain := []string{"rmsnorm_warps", "rmsnorm_backward_warps", "rmsnorm_finish"},
		[]string{"rmsnorm", "rmsnorm_backward", "rmsnorm_finish"}
	rope := func(dim int, pairs, askew bool) func(d *Device) {
		return func(d *Device) {
			x := act(d, 300, 2*dim)
			if askew {
				x = off(d, 300, 2*dim)
			}
			d.Rope(x, stat(d, 9, dim), ints(d, 300), device.Rope{Heads: 2, Dim: dim, Interleaved: pairs})
		}
	}
	for name, c := range map[string]struct {
		call func(d *Device)
		want []string
	}{
		"norm": {norm(257, 768, ""), warps}, "norm of few rows": {norm(256, 768, ""), plain},
		"widest": {norm(257, 1536, ""), warps}, "wider": {norm(257, 1544, ""), plain},
		"odd": {norm(257, 764, ""), plain}, "x askew": {norm(257, 768, "x"), plain},
		"w askew": {norm(257, 768, "w"), plain}, "y askew": {norm(257, 768, "y"), plain},
		"sum askew":   {norm(257, 768, "sum"), []string{"rmsnorm", "rmsnorm_backward_warps", "rmsnorm_finish"}},
		"dy askew":    {norm(257, 768, "dy"), []string{"rmsnorm_warps", "rmsnorm_backward", "rmsnorm_finish"}},
		"rope":        {rope(16, false, false), []string{"rope_half_8"}},
		"rope askew":  {rope(16, false, true), []string{"rope_half_1"}},
		"rope of 8":   {rope(8, false, false), []string{"rope_half_1"}},
		"pairs":       {rope(8, true, false), []string{"rope_pairs_4"}},
		"pairs askew": {rope(8, true, true), []string{"rope_pairs_1"}},
		"pairs of 4":  {rope(4, true, false), []string{"rope_pairs_1"}},
		"product": {product(4, 768, func(d *Device) tensor.Tensor { return act(d, 64, 768) }),
			[]string{"matmul_rows8_half"}},
		"weights askew": {product(4, 768, func(d *Device) tensor.Tensor { return off(d, 64, 768) }),
			[]string{"matmul_nt_16", "matmul_reduce"}},
		"an odd k": {product(4, 764, func(d *Device) tensor.Tensor { return on(d, tensor.BF16, 64, 764, 768) }),
			[]string{"matmul_nt_16", "matmul_reduce"}},
	} {
		if got := launched(t, c.call); !slices.Equal(got, c.want) {
			t.Errorf("%s: launched %v, want %v", name, got, c.want)
		}
	}
}
