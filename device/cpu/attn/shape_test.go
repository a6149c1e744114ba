package attn

import (
	"fmt"
	"testing"

	"antiphase/device"
)

// The columns of a key tile that a row attends to, by counting: those at or after its document's first key and not
// after itself. What any of several rows attends to begins at a whole panel.
func TestWindows(t *testing.T) {
	const T = 40
	for name, start := range map[string]func(t int) int{"whole": nil, "two": func(t int) int { return t / 17 * 17 },
		"own": func(t int) int { return t }} {
		s := &shape{AttnShape: device.AttnShape{B: 1, T: T}, tall: 8}
		if start != nil {
			for t := range T {
				s.start = append(s.start, int32(start(t)))
			}
		}
		sees := func(q, k int) bool { return k <= q && (start == nil || k >= start(q)) }
		for _, nk := range []int{16, 5} {
			for k0 := 0; k0+nk <= T; k0++ {
				for q := range T {
					lo, hi := s.window(q, q, k0, nk)
					if lo < 0 || hi > nk || lo > hi {
						t.Fatalf("%s: %d … %d of %d", name, lo, hi, nk)
					}
					for k := range nk {
						if got, want := k >= lo && k < hi, sees(q, k0+k); got != want {
							t.Fatalf("%s: query %d, key %d: %v (%d … %d from %d)", name, q, k0+k, got, lo, hi, k0)
						}
					}
				}
				for q := 0; q+8 <= T; q += 3 {
					from, to := s.live(q, q, 8, k0, nk, 4)
					if from%4 != 0 {
						t.Fatalf("%s: begins at %d, inside a panel", name, from)
					}
					for row := q; row < q+8; row++ {
						for k := range nk {
							if sees(row, k0+k) && (k < from || k >= to) {
								t.Fatalf("%s: query %d attends to key %d, outside %d … %d of %d", name, row,
									k0+k, from, to, k0)
							}
						}
					}
				}
			}
		}
	}
}

// Tiles and groups divide what there is: sizes sum to T, heads to all of them, in order.
func TestTilesCover(t *testing.T) {
	for _, T := range []int{1, keyTile - 1, keyTile, keyTile + 1, 3*keyTile + 7} {
		s := &shape{AttnShape: device.AttnShape{T: T, Heads: 6, Groups: 3}, tall: queryTile}
		keys, queries := 0, 0
		for kt := range s.keyTiles() {
			keys += s.keysIn(kt)
		}
		for qt := range s.queryTiles() {
			queries += s.queriesIn(qt)
		}
		if keys != T || queries != T {
			t.Errorf("%d tokens: %d keys, %d queries", T, keys, queries)
		}
		next := 0
		for g := range s.Groups {
			from, end := s.headsOf(g)
			if from != next || end-from != s.perGroup() {
				t.Errorf("group %d has heads %d … %d", g, from, end)
			}
			next = end
		}
		if next != s.Heads {
			t.Errorf("%d heads of %d", next, s.Heads)
		}
	}
	for keys, want := range map[int]string{1: "[0 0]", 2: "[0 1]"} {
		s := &shape{keys: keys}
		if got := fmt.Sprint([]int{s.keyHead(0), s.keyHead(1)}); got != want {
			t.Errorf("%d keys: %s, want %s", keys, got, want)
		}
	}
}
