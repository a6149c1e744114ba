package experiment

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"antiphase/eval"
)

// Processes divide the runs of a list so that each is worked on once, whatever their numbers.
func TestEveryRunIsSomebodys(t *testing.T) {
	for ranks := range 5 {
		for n := range 12 {
			runs, count := make([]Run, n), map[uint64]int{}
			for i := range runs {
				runs[i].Seed = uint64(i)
			}
			for rank := range max(ranks, 1) {
				for _, r := range (&lab{Options: Options{Rank: rank, Ranks: ranks}}).mine(runs) {
					count[r.Seed]++
				}
			}
			for i := range uint64(n) {
				if count[i] != 1 {
					t.Errorf("%d processes, %d runs: run %d is worked on %d times", ranks, n, i, count[i])
				}
			}
		}
	}
}

// twoProcesses works on an experiment in two processes with one folder; tasks are those that progress named.
func twoProcesses(t *testing.T, s *Spec, dir string) (lists [2][]Row, tasks map[string]bool) {
	meet := barrier(2)
	var wg sync.WaitGroup
	var mu sync.Mutex
	tasks = map[string]bool{}
	for rank := range 2 {
		opt := options(dir, oneThread(t))
		opt.Rank, opt.Ranks, opt.Wait = rank, 2, meet
		opt.Machine, opt.Commit, opt.Command, opt.Precision, opt.Kind = "m", "c", "x", "fp32", "cpu here"
		opt.Progress = func(p Progress) {
			mu.Lock()
			defer mu.Unlock()
			tasks[regexp.MustCompile(`\d+`).ReplaceAllString(p.Task, "N")] = true
		}
		wg.Go(func() {
			rows, err := Work(context.Background(), s, opt)
			if err != nil {
				t.Error(err)
			}
			lists[rank] = rows
		})
	}
	wg.Wait()
	return lists, tasks
}

// withoutPlace are the rows without timings and without where they come from, which must be all known or all unknown.
func withoutPlace(t *testing.T, rows []Row) []byte {
	t.Helper()
	rows = slices.Clone(rows)
	for i := range rows {
		if r := &rows[i]; r.Machine+r.Commit+r.Command != "" && r.Machine+r.Commit+r.Command != "mcx" {
			t.Errorf("%s: %q %q %q", r.Run, r.Machine, r.Commit, r.Command)
		}
		rows[i].Machine, rows[i].Commit, rows[i].Command = "", "", ""
	}
	return withoutTimings(t, rows)
}

// Two processes with one folder give the rows of one. Rows and answers say where they come from and by which seed they
// were drawn, and a model of another size says so in its last row.
func TestTwoProcesses(t *testing.T) {
	s := nanoSpec(2)
	s.Every, s.Variants, s.LRs, s.Seeds, s.TuneSeeds = 1, []Variant{"wide diff model.ffn=192"}, s.LRs[:1],
		s.Seeds[:1], 0
	single, out := options(t.TempDir(), oneThread(t)), said{}
	single.Say, single.Precision = out.say, "fp32"
	alone, err := Work(context.Background(), s, single)
	if err != nil || out.with("warning: unequal parameters: nano wide has") != 1 || out.with("warning: ") != 1 {
		t.Fatalf("%v; said: %q", err, out.lines)
	}
	dir := t.TempDir()
	lists, tasks := twoProcesses(t, s, dir)
	for rank, rows := range lists {
		if len(rows) == 0 || rows[0].Machine != "m" || !bytes.Equal(withoutPlace(t, rows), withoutPlace(t, alone)) {
			t.Errorf("process %d has other rows than one alone", rank)
		}
	}
	for _, r := range alone {
		if wide := r.Arch == "wide"; r.Measure == Finished &&
			(strings.Contains(r.Note, "unequal parameters: nano wide has") != wide || !wide && r.Note != "") {
			t.Errorf("%s: the last row says %q", r.Run, r.Note)
		}
	}
	if !tasks["lm N/N"] || !tasks["outliers N/N"] {
		t.Errorf("progress names %v", tasks)
	}
	for _, store := range []string{"eval", "probe"} {
		got, err := eval.ReadStores(filepath.Join(dir, "runs", "nano-diff-lr0.001-s1", store))
		if err != nil || len(got.Cells()) == 0 {
			t.Fatalf("%s: %v", store, err)
		}
		for _, c := range got.Cells() {
			if h := c.Head; h.Seed != 20 || h.Machine != "m" || h.Commit != "c" || h.Model.Precision != "fp32" ||
				h.Model.Device != "cpu here" {
				t.Errorf("%s: %+v", store, h)
			}
		}
	}
}

// What the first process refuses leaves nothing, whoever comes first: the others make no folder before it has begun.
func TestRefusedProcessesMakeNothing(t *testing.T) {
	s := nanoSpec(8)
	s.Data = []string{filepath.Join(t.TempDir(), "none.txt")}
	lost := errors.New("the first one gave up")
	for rank, want := range []error{fs.ErrNotExist, lost} {
		opt := options(filepath.Join(t.TempDir(), "new", "folder"), oneThread(t))
		opt.Rank, opt.Ranks, opt.Wait = rank, 2, func() error { return lost }
		if _, err := Work(t.Context(), s, opt); !errors.Is(err, want) {
			t.Errorf("process %d: %v, want %v", rank, err, want)
		}
		if _, err := os.Stat(filepath.Dir(opt.Dir)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("process %d makes a folder (%v)", rank, err)
		}
	}
}

// barrier returns a function that returns once n callers have called it.
func barrier(n int) func() error {
	var mu sync.Mutex
	here, open := 0, make(chan struct{})
	return func() error {
		mu.Lock()
		gate := open
		if here++; here == n {
			here, open = 0, make(chan struct{})
			close(gate)
		}
		mu.Unlock()
		<-gate
		return nil
	}
}
