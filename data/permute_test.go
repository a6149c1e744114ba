package data

import (
	"slices"
	"testing"
)

func image(n, seed, epoch uint64) []uint64 {
	p := newPermutation(n, seed, epoch)
	out := make([]uint64, n)
	for i := range out {
		out[i] = p.at(uint64(i))
	}
	return out
}

func TestPermutationIsBijective(t *testing.T) {
	sizes := []uint64{1000, 1023, 1024, 1025, 40000}
	for n := uint64(1); n <= 130; n++ {
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		for epoch := range uint64(3) {
			got := image(n, 7, epoch)
			slices.Sort(got)
			for i, x := range got {
				if x != uint64(i) {
					t.Fatalf("n=%d epoch=%d: image lacks %d", n, epoch, i)
				}
			}
		}
	}
}

func TestPermutationDiffersByEpochAndSeed(t *testing.T) {
	base := image(100, 1, 0)
	for _, other := range [][]uint64{image(100, 1, 1), image(100, 1, 2), image(100, 2, 0), image(100, 0, 1)} {
		same := 0
		for i := range base {
			if base[i] == other[i] {
				same++
			}
		}
		if same > 10 { // 1 is expected by chance
			t.Errorf("%d of 100 places are the same", same)
		}
	}
	if !slices.Equal(base, image(100, 1, 0)) {
		t.Error("not a function of seed and epoch")
	}
}

// Every value should come to every place about equally often: 5 places, 4000 epochs, 800 expected, sd 25.
func TestPermutationIsUniform(t *testing.T) {
	const n, epochs = 5, 4000
	var count [n][n]int
	for e := range uint64(epochs) {
		for i, x := range image(n, 3, e) {
			count[i][x]++
		}
	}
	for i := range count {
		for x, c := range count[i] {
			if c < 650 || c > 950 {
				t.Errorf("value %d came to place %d in %d of %d epochs", x, i, c, epochs)
			}
		}
	}
}
