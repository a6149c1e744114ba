package data

import (
	"math"
	"reflect"
	"testing"
)

// Which source a row is drawn from, by the definition in whole numbers: the one that lags most behind its share of the
// rows of the sources that still give some. Rounding may decide between equals.
func TestMixturePicks(t *testing.T) {
	const T = 5
	for _, weights := range [][]int{{1, 1}, {5, 3, 2}, {1, 10, 1}, {7, 2}, {3, 3, 3}} {
		var shares []Share
		var sizes []int
		for i, w := range weights {
			shares, sizes = append(shares, Share{Weight: float64(w), Epochs: float64(i % 2 * 3)}),
				append(sizes, 100+50*i)
		}
		set := mixedSet(t, shares, sizes...)
		sp := mix(t, set)
		l := NewLoader(sp, 1, T, 1)
		drawn, limit := make([]int, len(weights)), make([]int, len(weights))
		for i, p := range sp.Parts() {
			if limit[i] = 1 << 30; shares[i].Epochs > 0 {
				limit[i] = 3 * int(p.Tokens) / T
			}
		}
		for row := range 400 {
			rows, sum, most := 0, 0, math.MinInt
			for i, w := range weights {
				if drawn[i] < limit[i] {
					rows, sum = rows+drawn[i], sum+w
				}
			}
			lag := func(i int) int { return weights[i]*(rows+1) - sum*drawn[i] }
			for i := range weights {
				if drawn[i] < limit[i] {
					most = max(most, lag(i))
				}
			}
			got := letterOf(t, next(l).inputs)
			if drawn[got] >= limit[got] || lag(got) != most {
				t.Fatalf("weights %v: row %d is of source %d after %v of at most %v", weights, row, got, drawn, limit)
			}
			drawn[got]++
		}
	}
}

// Skipping past the last row ends there, in one source and in several.
func TestSkipPastTheEnd(t *testing.T) {
	for _, shares := range [][]Share{{{Weight: 1, Epochs: 1.5}}, {{Weight: 1, Epochs: 1.5}, {Weight: 2, Epochs: 2}}} {
		sizes := []int{300, 200}[:len(shares)]
		set := mixedSet(t, shares, sizes...)
		all := NewLoader(mix(t, set), 1, 7, 1).Left()
		for _, n := range []uint64{0, 1, all - 1, all, all + 1, 10 * all} {
			l := NewLoader(mix(t, set), 1, 7, 1)
			l.Skip(n)
			if got := l.Left(); all < 10 || got != all-min(n, all) {
				t.Errorf("%d sources of %d rows: %d are left after skipping %d", len(shares), all, got, n)
			}
		}
	}
}

// A stream skips to every token, among documents of a single token too.
func TestStreamSkipsEveryToken(t *testing.T) {
	for _, enc := range []byteEncoder{noEOS, narrow} {
		sp := split(t, buildSet(t, texts{docs: []string{"a", "bc", "d", "e", "fghi", "j"}}, enc, BuildOptions{}), Train)
		for _, T := range []int{1, 2, 3, 4} {
			taken := NewStream(sp, 1, T, 3)
			for n := range uint64(40) {
				skipped := NewStream(sp, 1, T, 3)
				skipped.Skip(n)
				if !reflect.DeepEqual(skipped.Position(), taken.Position()) || !next(skipped).equal(next(taken)) {
					t.Fatalf("rows of %d tokens: skipping %d ends at %+v, taking them at %+v", T, n, skipped.Position(),
						taken.Position())
				}
			}
		}
	}
}
