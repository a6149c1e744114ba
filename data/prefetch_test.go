package data

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
)

func prefetch(t *testing.T, l *Loader) *Prefetcher {
	p := Prefetch(l)
	t.Cleanup(p.Close)
	return p
}

func nextOf(t *testing.T, p *Prefetcher) batchOf {
	t.Helper()
	n := p.loader.b * p.loader.t
	b := batchOf{make([]int32, n), make([]int32, n), make([]int32, n)}
	if err := p.Next(b.inputs, b.targets, b.starts); err != nil {
		t.Fatal(err)
	}
	return b
}

// A prefetcher gives the loader's batches and positions, whatever is in flight.
func TestPrefetchIsTheLoader(t *testing.T) {
	sp := split(t, buildSet(t, randomTexts(30, 50, 4), narrow, BuildOptions{}), Train)
	for _, load := range []func(*Split, int, int, uint64) *Loader{NewLoader, NewStream} {
		plain, p := load(sp, 3, 10, 1), prefetch(t, load(sp, 3, 10, 1))
		var positions []Position
		var batches []batchOf
		for i := range 40 {
			if !reflect.DeepEqual(p.Position(), plain.Position()) || p.Epoch() != plain.Epoch() {
				t.Fatalf("batch %d: at %v, the loader at %v", i, p.Position(), plain.Position())
			}
			positions, batches = append(positions, p.Position()), append(batches, next(plain))
			if !nextOf(t, p).equal(batches[i]) || !reflect.DeepEqual(p.Before(), positions[i]) {
				t.Fatalf("batch %d differs, or begins elsewhere: %v, want %v", i, p.Before(), positions[i])
			}
		}
		for _, i := range []int{7, 39, 0, 20} {
			for len(p.ready) == 0 { // the batch that Seek must drop has been gathered
				runtime.Gosched()
			}
			if err := p.Seek(positions[i]); err != nil {
				t.Fatal(err)
			}
			if !nextOf(t, p).equal(batches[i]) {
				t.Fatalf("batch %d after Seek differs", i)
			}
		}
		bad := positions[3]
		bad.Seed++
		here := p.Position()
		if err := p.Seek(bad); err == nil || !reflect.DeepEqual(p.Position(), here) {
			t.Errorf("a refused Seek: error %v, moved from %v to %v", err, here, p.Position())
		}
		if !nextOf(t, p).equal(batches[21]) {
			t.Error("the batch after a refused Seek differs")
		}
	}
}

func TestPrefetchDoesNotAllocate(t *testing.T) {
	sp := split(t, buildSet(t, randomTexts(30, 50, 4), narrow, BuildOptions{}), Train)
	p := prefetch(t, NewLoader(sp, 3, 10, 1))
	b := nextOf(t, p)
	nextOf(t, p)
	if n := testing.AllocsPerRun(100, func() {
		if err := p.Next(b.inputs, b.targets, b.starts); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per batch", n)
	}
}

// A shard that is truncated while it is mapped gives an error that names the set.
func TestTruncatedWhileMapped(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the fault's signal differs")
	}
	s := buildSet(t, randomTexts(300, 500, 4), narrow, BuildOptions{})
	p := prefetch(t, NewLoader(split(t, s, Train), 4, 64, 1))
	b := nextOf(t, p)
	if err := os.Truncate(filepath.Join(s.dir, "train-00000.bin"), 0); err != nil {
		t.Fatal(err)
	}
	var err error
	for range 3 {
		if err == nil {
			err = p.Next(b.inputs, b.targets, b.starts)
		}
	}
	var c *CorruptError
	if !errors.As(err, &c) || c.File != s.dir {
		t.Errorf("error %v, want a CorruptError about %s", err, s.dir)
	}
}
