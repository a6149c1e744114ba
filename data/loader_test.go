package data

import (
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
