package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/internal/half"
)

// anyBits are n floats of all kinds: any pattern of bits, ties, infinities, no subnormal numbers.
func anyBits(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		b := r.Uint32()
		switch i % 4 {
		case 0:
			b = b&^0xFFFF | 0x8000
		case 1:
			b = b&0x807FFFFF | 0x7F800000
		}
		if b&0x7F800000 == 0 {
			b &= 0x80000000
		}
		x[i] = math.Float32frombits(b)
	}
	return x
}

// Conversions give the bits of their definitions, at every length and wherever slices begin, and leave what lies
// behind.
func TestHalfKernels(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 1))
		for _, n := range lengths() {
			const behind = 0x1234
			at := r.IntN(17)
			src, low := anyBits(r, at+n)[at:], make([]uint16, at+n+1)[at:]
			up, round := make([]uint16, n+1), make([]uint16, at+n+1)[at:]
			up[n], low[n], round[n] = behind, behind, behind
			SplitBF16(up, low, src)
			NarrowBF16(round, src)
			if up[n] != behind || low[n] != behind || round[n] != behind {
				t.Fatalf("%d elements: something was written behind them", n)
			}
			whole, wide := append(make([]float32, n), 1), append(make([]float32, at+n), 1)[at:]
			JoinBF16(whole, up[:n], low)
			WidenBF16(wide, round[:n])
			for i, x := range src {
				u, l := half.Split(x)
				if up[i] != u || low[i] != l || math.Float32bits(whole[i]) != math.Float32bits(x) {
					t.Fatalf("element %d of %d, %x, is cut to %x %x and joined to %x", i, n, math.Float32bits(x), up[i],
						low[i], math.Float32bits(whole[i]))
				}
				if h := half.F32ToBF16(x); round[i] != h || math.Float32bits(wide[i]) != uint32(h)<<16 {
					t.Fatalf("element %d of %d, %x, is rounded to %x and widened to %x", i, n, math.Float32bits(x),
						round[i], math.Float32bits(wide[i]))
				}
			}
			if whole[n] != 1 || wide[n] != 1 {
				t.Fatalf("%d elements: something was written behind them", n)
			}
		}
	})
}

// A number is rounded to the same bits wherever a row is cut, subnormal ones too.
func TestNarrowAlike(t *testing.T) {
	each(t, func(t *testing.T) {
		const n = 40
		src, whole := make([]float32, n), make([]uint16, n)
		for i := range src {
			src[i] = math.Float32frombits(uint32(i) << 16)
		}
		NarrowBF16(whole, src)
		for cut := range n {
			got := make([]uint16, n)
			NarrowBF16(got[:cut], src[:cut])
			NarrowBF16(got[cut:], src[cut:])
			if !slices.Equal(got, whole) {
				t.Fatalf("cut at %d: %x, want %x", cut, got, whole)
			}
		}
	})
}

// Every bfloat16 value comes back, subnormal ones too where the processor does not convert.
func TestWidenNarrow(t *testing.T) {
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	each(t, func(t *testing.T) {
		wide, back := make([]float32, len(all)), make([]uint16, len(all))
		WidenBF16(wide, all)
		NarrowBF16(back, wide)
		for i, h := range all {
			want := h
			if h&0x7F80 == 0x7F80 && h&0x7F != 0 {
				want |= 0x40
			}
			zero := h&0x7F80 == 0 && back[i] == h&0x8000 // taken for 0
			if back[i] != want && !(zero && slices.Contains([]string{"amx", "avx512bf16"}, Name())) {
				t.Fatalf("%x comes back as %x", h, back[i])
			}
		}
	})
}
