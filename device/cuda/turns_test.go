package cuda

import (
	"fmt"
	"slices"
	"testing"
)

// timed is one of several ways to do the same: its passes, such as forward and backward, and the milliseconds of each
// visit.
type timed struct {
	name string
	pass []func()
	ms   [][]float64
}

// timeInTurns times all ways in turns by a device's clock, at least three rounds, and sorts the times. A kernel has
// taken 20 % more or less by what ran before it, probably by the power that took and the clock it left. So each way
// comes behind each other equally often, and the first visit, of the way that comes last, does not count.
func timeInTurns(t testing.TB, clock func(f func()) (float64, error), all []*timed) {
	if len(all) == 0 {
		return
	}
	order := turns(len(all))
	for _, x := range all {
		x.ms = make([][]float64, len(x.pass))
	}
	visit := func(x *timed, counts bool) {
		for i, f := range x.pass {
			if ms := milliseconds(t, clock, f); counts {
				x.ms[i] = append(x.ms[i], ms)
			}
		}
	}
	visit(all[order[len(order)-1]], false)
	for rounds := 0; rounds < 3; rounds += len(order) / len(all) {
		for _, i := range order {
			visit(all[i], true)
		}
	}
	for _, x := range all {
		for _, ms := range x.ms {
			slices.Sort(ms)
		}
	}
}

// milliseconds is the median of three runs of f, each the mean of a few, after one that does not count.
func milliseconds(t testing.TB, clock func(f func()) (float64, error), f func()) float64 {
	const few = 5
	var all []float64
	for range 4 {
		ms, err := clock(func() {
			for range few {
				f()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ms/few)
	}
	all = all[1:]
	slices.Sort(all)
	return all[len(all)/2]
}

// turns is the order in which n ways take turns: n-1 rounds in which each comes once, such that each comes behind each
// other exactly once, if the first of all comes behind the last. It is found step by step: of the ways left in a round
// the nearest that has not yet followed this one, and back again where that leads nowhere.
func turns(n int) []int {
	if n == 1 {
		return []int{0}
	}
	followed := make([][]bool, n) // [i][j]: j comes behind i
	for i := range followed {
		followed[i] = make([]bool, n)
		followed[i][i] = true
	}
	order := []int{0}
	var complete func() bool
	complete = func() bool {
		last := order[len(order)-1]
		if len(order) == n*(n-1) {
			return !followed[last][0]
		}
		round := order[len(order)/n*n:]
		for step := 1; step < n; step++ {
			next := (last + step) % n
			if followed[last][next] || slices.Contains(round, next) {
				continue
			}
			followed[last][next], order = true, append(order, next)
			if complete() {
				return true
			}
			followed[last][next], order = false, order[:len(order)-1]
		}
		return false
	}
	if !complete() {
		panic(fmt.Sprintf("no order of turns for %d ways", n))
	}
	return order
}

// TestTurns: in each round each way comes once, and over all of them each comes behind each other once.
func TestTurns(t *testing.T) {
	for n := 1; n <= 16; n++ {
		order := turns(n)
		if want := n * max(1, n-1); len(order) != want {
			t.Fatalf("%d ways take %d turns, want %d", n, len(order), want)
		}
		for round := range slices.Chunk(order, n) {
			sorted := slices.Sorted(slices.Values(round))
			for i, x := range sorted {
				if x != i {
					t.Errorf("%d ways: a round of %v", n, round)
					break
				}
			}
		}
		seen := map[[2]int]int{}
		for i, x := range order {
			seen[[2]int{order[(i+len(order)-1)%len(order)], x}]++
		}
		for i := range n {
			for j := range n {
				if got := seen[[2]int{i, j}]; i != j && got != 1 {
					t.Errorf("%d ways: %d comes %d times behind %d", n, j, got, i)
				}
			}
		}
	}
}

// TestInTurns times ways that take 100 ms, and i ms more behind way i: all have the same times but for those behind
// themselves.
func TestInTurns(t *testing.T) {
	for n, cycles := range map[int]int{2: 3, 3: 2, 4: 1, 5: 1} { // of n-1 rounds: at least three rounds
		var all []*timed
		now, before := n, n
		for i := range n {
			all = append(all, &timed{pass: []func(){func() {
				if i != now {
					now, before = i, now
				}
			}}})
		}
		timeInTurns(t, func(f func()) (float64, error) {
			f()
			return 5 * float64(100+before), nil // of the five calls in f
		}, all)
		for i, x := range all {
			var want []float64
			for before := range n {
				for range cycles {
					if before != i {
						want = append(want, float64(100+before))
					}
				}
			}
			if !slices.Equal(x.ms[0], want) {
				t.Errorf("%d ways: times of %d are %v, want %v", n, i, x.ms[0], want)
			}
		}
	}
}
