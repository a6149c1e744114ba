package main

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"antiphase/eval"
)

// evalKills are enough to meet every phase of an evaluation: preparing, asking, between two writes, and within one.
const evalKills = 30

// kill -9 at moments spread over an evaluation of three tasks and two models: the same command continues each time, and
// in the end the store holds the same cells, answers and results, bit for bit, as one that was never interrupted.
func TestEvalKill(t *testing.T) {
	kills := evalKills
	if testing.Short() {
		kills = 6
	}
	dir := t.TempDir()
	for _, arch := range []string{"transformer", "diff"} {
		call(t, dir, 0, "train", "--size", "nano", "--arch", arch, "--dir", arch, "--set", "model.context=384",
			"--steps", "2", "-q")
	}
	args := func(store string) []string {
		return []string{"eval", "--tasks", "needle,ruler_variables,boolq", "--set", "needle.samples=10", "--set",
			"needle.needles=1", "--set", "needle.queries=1",
			"--set", "needle.lengths=256", "--set", "ruler_variables.samples=40", "--set", "ruler_variables.chains=1",
			"--set", "ruler_variables.lengths=288",
			"-m", "transformer", "-m", "diff", "--output", store, "-q"}
	}
	call(t, dir, 0, args("whole")...)
	want, size := storeRows(t, filepath.Join(dir, "whole")), storeBytes(filepath.Join(dir, "whole"))
	g := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	killed, finished := 0, 0
	for killed < kills {
		store := filepath.Join(dir, "store")
		// The next moment lies ahead of what is there already: the store has grown by about as much as one kill's share
		// of the work.
		moment := storeBytes(store) + int64(g.Float64()*2*float64(size)/float64(kills))
		cmd := self(args("store")...)
		cmd.Dir = dir
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		ended, err := endsBefore(done, store, moment)
		if err != nil {
			t.Fatalf("after %d kills: %v", killed, err)
		}
		if ended { // begin again with what is left to kill
			finished++
			sameRows(t, storeRows(t, store), want)
			if err := os.RemoveAll(store); err != nil {
				t.Fatal(err)
			}
			continue
		}
		time.Sleep(time.Duration(g.IntN(8000)) * time.Microsecond)
		_ = cmd.Process.Kill()
		<-done
		killed++
	}
	call(t, dir, 0, args("store")...)
	sameRows(t, storeRows(t, filepath.Join(dir, "store")), want)
	files, _ := filepath.Glob(filepath.Join(dir, "store", "rows-*"))
	t.Logf("%d kills; %d stores were finished on the way; the last has %d files of rows", killed, finished, len(files))
}

// endsBefore waits until a process is done or the store has grown beyond moment, and says whether it is done.
func endsBefore(done <-chan error, store string, moment int64) (bool, error) {
	for storeBytes(store) <= moment {
		select {
		case err := <-done:
			return true, err
		case <-time.After(time.Millisecond):
		}
	}
	return false, nil
}

// storeBytes is the size of all rows.
func storeBytes(dir string) (n int64) {
	files, _ := filepath.Glob(filepath.Join(dir, "rows-*"))
	for _, f := range files {
		if st, err := os.Stat(f); err == nil {
			n += st.Size()
		}
	}
	return n
}

// storeRows are the cells of a store without what time and process leave in them.
func storeRows(t *testing.T, dir string) map[string]string {
	t.Helper()
	store, err := eval.ReadStores(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(store.Warnings) > 0 {
		t.Errorf("%v", store.Warnings)
	}
	out := map[string]string{}
	for _, c := range store.Cells() {
		c.Head.Time, c.Result.Seconds = time.Time{}, 0
		b, err := json.Marshal([]any{c.Head, c.Result, c.Result.Answers})
		if err != nil {
			t.Fatal(err)
		}
		out[c.Head.Model.Name+" "+c.Head.Task] = string(b)
	}
	return out
}

func sameRows(t *testing.T, got, want map[string]string) {
	t.Helper()
	if len(got) != len(want) || len(want) != 6 {
		t.Errorf("%d cells, unbroken %d, want 6", len(got), len(want))
	}
	for cell, rows := range want {
		if got[cell] != rows {
			at := 0
			for at < min(len(rows), len(got[cell])) && rows[at] == got[cell][at] {
				at++
			}
			from := max(0, at-100)
			t.Errorf("%s differs at byte %d:\n…%.300s\nunbroken:\n…%.300s", cell, at,
				got[cell][min(from, len(got[cell])):], rows[from:])
		}
	}
}
