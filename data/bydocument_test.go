package data

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Whole documents are held out by their hash alone: those below the share, and those with the smallest hash of all,
// unless nothing would be left to train on. Equal texts are together, sources are not mixed up, and no document is
// lost.
func TestByDocumentByDefinition(t *testing.T) {
	g := rand.New(rand.NewPCG(6, 1))
	for range 400 {
		share := []float64{0, 0.01, 0.3, 0.5, 0.9}[g.IntN(5)]
		type doc struct {
			source int
			hash   uint64
			id     int32
		}
		var docs []doc
		hashes := []uint64{g.Uint64(), g.Uint64(), g.Uint64(), g.Uint64() >> 8}
		hashes[g.IntN(4)] = 1 << 63 // half of all hashes are below it
		least := uint64(math.MaxUint64)
		for i := range 1 + g.IntN(7) {
			d := doc{min(i/3, 1), hashes[g.IntN(1+g.IntN(4))], int32(i)}
			docs, least = append(docs, d), min(least, d.hash)
		}
		got := map[string][]doc{}
		d := &byDocument{share: share, write: func(source int, split string, ids []int32) error {
			got[split] = append(got[split], doc{source, 0, ids[0]})
			return nil
		}}
		for i, x := range docs {
			if i > 0 && docs[i-1].source != x.source {
				if err := d.end(); err != nil {
					t.Fatal(err)
				}
			}
			buf := []int32{x.id}
			if err := d.add(buf, x.hash); err != nil {
				t.Fatal(err)
			}
			buf[0] = -1 // the caller's memory is used again
		}
		if err := d.finish(); err != nil {
			t.Fatal(err)
		}
		want := map[string][]doc{}
		others := slices.ContainsFunc(docs,
			func(x doc) bool { return x.hash != least && float64(x.hash) >= share*math.Exp2(64) })
		for _, x := range docs {
			split := Train
			if share > 0 && (float64(x.hash) < share*math.Exp2(64) || x.hash == least) && (others || x.hash != least) {
				split = Valid
			}
			want[split] = append(want[split], doc{x.source, 0, x.id})
		}
		for _, split := range []string{Train, Valid} {
			a, b := slices.Clone(got[split]), want[split]
			slices.SortFunc(a, func(x, y doc) int { return int(x.id - y.id) })
			if !slices.Equal(a, b) {
				t.Fatalf("share %g, %v: %s has %v, want %v", share, docs, split, a, b)
			}
		}
	}
}
