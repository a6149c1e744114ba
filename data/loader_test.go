package data

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// badPosition changes a good position into one that Seek refuses, with an error about want.
type badPosition struct {
	change func(p *Position)
	want   string
}

// seekRefuses checks that a loader of either order refuses each position and stays where it is.
func seekRefuses(t *testing.T, l *Loader, bad map[string]badPosition) {
	t.Helper()
	next(l)
	good := l.Position()
	for name, b := range bad {
		p := good
		b.change(&p)
		if err := l.Seek(p); err == nil || !strings.Contains(err.Error(), b.want) {
			t.Errorf("%s: error %v, want one about %q", name, err, b.want)
		}
		if !reflect.DeepEqual(l.Position(), good) {
			t.Fatalf("%s: a refused Seek moved the loader", name)
		}
	}
}

// Sizes that are not positive are a bug of the caller, each alone and in either order.
func TestLoaderSizes(t *testing.T) {
	s := buildSet(t, tens(3), narrow, BuildOptions{})
	sp := must(s.Split(Train))
	for name, make := range map[string]func(*Split, int, int, uint64) *Loader{OrderRandom: NewLoader,
		OrderStream: NewStream} {
		for _, size := range [][2]int{{1, 1}, {0, 1}, {1, 0}, {-1, 1}, {1, -1}, {-1, -1}} {
			func() {
				good := size == [2]int{1, 1}
				defer func() {
					if x := recover(); (x == nil) != good {
						t.Errorf("%s of B=%d, T=%d: %v", name, size[0], size[1], x)
					}
				}()
				next(make(sp, size[0], size[1], 1))
			}()
		}
	}
}

// Each slice of a batch has its own length checked: a row more or less is a bug of the caller.
func TestBatchSizes(t *testing.T) {
	l := NewLoader(must(buildSet(t, tens(3), narrow, BuildOptions{}).Split(Train)), 2, 3, 1)
	for which := range 3 {
		for _, n := range []int{0, 3, 5, 7, 9} {
			b := [3][]int32{make([]int32, 6), make([]int32, 6), make([]int32, 6)}
			b[which] = make([]int32, n)
			func() {
				defer func() {
					if x := fmt.Sprint(recover()); !strings.Contains(x, "want B*T = 2*3 = 6 each") {
						t.Errorf("slice %d of %d: %s", which, n, x)
					}
				}()
				l.Next(b[0], b[1], b[2])
			}()
		}
	}
}

// allocatesNothing checks a loader over a small set, whose epochs it crosses.
func allocatesNothing(t *testing.T, l *Loader) {
	t.Helper()
	b := next(l)
	if n := testing.AllocsPerRun(100, func() { l.Next(b.inputs, b.targets, b.starts) }); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
	if l.Epoch() < 2 {
		t.Errorf("the runs ended at epoch %v, want them to cross epochs", l.Epoch())
	}
}
