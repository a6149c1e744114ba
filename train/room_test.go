package train

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"antiphase/internal/vfs/vfstest"
)

// The room that is asked for is that of the checkpoints that exist at the same time: what the disk holds at its
// fullest, partial and doomed ones included, whether saves are written next to training or not.
func TestRoomIsThePeak(t *testing.T) {
	for _, c := range []struct {
		steps, every, keep string
		want               int
	}{
		{"6", "1", "2", 3}, // those that are kept, and the one being written
		{"6", "1", "1", 2},
		{"6", "2", "9", 3}, // fewer are written than could be kept: steps 2, 4, 6
		{"7", "2", "9", 4}, // and the last
		{"6", "0", "9", 1},
	} {
		for _, beside := range []bool{false, true} {
			r := nano(t, "diff", "train.steps="+c.steps, "train.save_every="+c.every, "train.keep_last="+c.keep)
			opt := options(t, t.TempDir())
			opt.beside = beside
			var mu sync.Mutex
			peak := 0
			opt.fs = &vfstest.Faulty{FS: small{free: int64(c.want) * (&run{recipe: r}).checkpointBytes()},
				Hook: func(op vfstest.Op) error {
					found, err := filepath.Glob(filepath.Join(opt.Dir, "checkpoints", "step-*"))
					mu.Lock()
					defer mu.Unlock()
					peak = max(peak, len(found))
					return err
				}}
			if _, err := Run(context.Background(), r, opt); err != nil {
				t.Errorf("%+v, beside %v: %v", c, beside, err)
			}
			if peak != c.want {
				t.Errorf("%+v, beside %v: %d at the same time", c, beside, peak)
			}
		}
		r := nano(t, "diff", "train.steps="+c.steps, "train.save_every="+c.every, "train.keep_last="+c.keep)
		opt := options(t, t.TempDir())
		opt.fs = small{free: int64(c.want)*(&run{recipe: r}).checkpointBytes() - 1}
		if _, err := Run(context.Background(), r, opt); err == nil ||
			!strings.Contains(err.Error(), "keep_last="+c.keep) {
			t.Errorf("%+v with less room: %v", c, err)
		}
	}
}

// Saves that are requested, or made by age, are more than the recipe tells; a resumed run writes what is left.
func TestSavesAhead(t *testing.T) {
	r := nano(t, "diff", "train.steps=10", "train.save_every=3", "train.keep_last=99")
	for _, c := range []struct {
		opt        Options
		step, want int
	}{
		{Options{}, 0, 4}, {Options{}, 2, 4}, {Options{}, 3, 3}, {Options{}, 9, 1},
		{Options{Save: make(chan struct{})}, 0, 6}, {Options{SaveAfter: time.Second}, 9, 3},
	} {
		if got := savesAfter(c.step, r.Train, &c.opt); got != c.want {
			t.Errorf("from step %d: %d, want %d", c.step, got, c.want)
		}
	}
	for steps := 1; steps < 14; steps++ {
		for every := range 6 {
			for step := range steps {
				want := 0
				for n := step + 1; n <= steps; n++ {
					if n == steps || every > 0 && n%every == 0 {
						want++
					}
				}
				r.Train.Steps, r.Train.SaveEvery = steps, every
				if got := savesAfter(step, r.Train, &Options{}); got != want {
					t.Fatalf("%d steps, saved every %d, from step %d: %d, want %d", steps, every, step, got, want)
				}
			}
		}
	}
}
