package safetensors

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/internal/vfs"
)

// sliced writes one file with slices of tensor w, a 4 × 6 matrix whose element i is i.
func sliced(t *testing.T, dir, name string, list ...Slice) string {
	t.Helper()
	var entries []Entry
	meta := map[string]Slice{}
	for i, s := range list {
		var all []float32
		for _, r := range s.Rows {
			for row := r[0]; row < r[1]; row++ {
				for _, c := range s.Cols {
					for col := c[0]; col < c[1]; col++ {
						all = append(all, float32(row*6+col))
					}
				}
			}
		}
		tensor := fmt.Sprintf("w@%d", i)
		meta[tensor] = s
		entries = append(entries, FromFloat32s(tensor, F32, []int{s.To - s.From}, all[s.From:s.To]))
	}
	m, err := SliceMeta(meta)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, entries, m); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// part is a slice of w.
func part(rows, cols [][2]int, from, to int) Slice {
	return Slice{Of: "w", Shape: []int{4, 6}, Rows: rows, Cols: cols, From: from, To: to}
}

// Slices by rows, by columns, in runs and across files are put together again.
func TestOpenSliced(t *testing.T) {
	all := [][2]int{{0, 4}}
	wide := [][2]int{{0, 6}}
	for name, files := range map[string][][]Slice{
		"whole":   {{part(all, wide, 0, 24)}},
		"rows":    {{part([][2]int{{0, 1}, {2, 3}}, wide, 0, 12)}, {part([][2]int{{1, 2}, {3, 4}}, wide, 0, 12)}},
		"columns": {{part(all, [][2]int{{0, 2}, {4, 5}}, 0, 12)}, {part(all, [][2]int{{2, 4}, {5, 6}}, 0, 12)}},
		"ranges":  {{part(all, wide, 0, 7), part(all, wide, 20, 24)}, {part(all, wide, 7, 20)}},
		"both": {{part(all, [][2]int{{0, 3}}, 0, 5)}, {part(all, [][2]int{{0, 3}}, 5, 12)},
			{part(all, [][2]int{{3, 6}}, 0, 12)}},
	} {
		dir := t.TempDir()
		var paths []string
		for i, list := range files {
			paths = append(paths, sliced(t, dir, fmt.Sprint(i), list...))
		}
		f, err := OpenSliced(vfs.OS{}, paths)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := f.Float32s("w")
		info, ok := f.Info("w")
		if err != nil || !ok || !slices.Equal(info.Shape, []int{4, 6}) || len(got) != 24 ||
			!slices.Equal(f.Names(), []string{"w"}) {
			t.Fatalf("%s: %v, %v, %v", name, got, info, err)
		}
		for i, x := range got {
			if x != float32(i) {
				t.Errorf("%s: element %d is %g", name, i, x)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if _, err := f.Float32s("w"); err == nil {
			t.Errorf("%s: read after Close", name)
		}
	}
}

// Gaps, overlaps, other shapes and bounds that are wrong are told, and never read past.
func TestOpenSlicedRefuses(t *testing.T) {
	all, wide := [][2]int{{0, 4}}, [][2]int{{0, 6}}
	other := part([][2]int{{0, 4}}, wide, 12, 24)
	other.Shape = []int{6, 4}
	other.Cols = [][2]int{{0, 4}}
	other.Rows = [][2]int{{0, 6}}
	for name, x := range map[string]struct {
		list []Slice
		want string
	}{
		"gap":     {[]Slice{part(all, wide, 0, 12)}, "has 12 elements in 1 slices, want 24"},
		"overlap": {[]Slice{part(all, wide, 0, 12), part(all, wide, 0, 12)}, "is in two slices"},
		"shapes":  {[]Slice{part(all, wide, 0, 12), other}, "another is of"},
	} {
		f, err := OpenSliced(vfs.OS{}, []string{sliced(t, t.TempDir(), "x", x.list...)})
		if err == nil {
			_, err = f.Float32s("w")
			_ = f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v; want %q", name, err, x.want)
		}
	}
	for name, change := range map[string]func(s *Slice){
		"row":      func(s *Slice) { s.Rows = [][2]int{{0, 5}} },
		"column":   func(s *Slice) { s.Cols = [][2]int{{-1, 6}} },
		"order":    func(s *Slice) { s.Rows = [][2]int{{2, 4}, {0, 2}} },
		"end":      func(s *Slice) { s.From, s.To = 1, 25 },
		"negative": func(s *Slice) { s.From, s.To = -24, 0 },
		"shape":    func(s *Slice) { s.Shape = []int{-4, 6} },
		"length":   func(s *Slice) { s.To = 23 },
		"empty":    func(s *Slice) { s.Cols = [][2]int{{0, 0}, {0, 0}, {0, 6}} },
		"gap":      func(s *Slice) { s.Rows = [][2]int{{1, 4}} },
		"columns":  func(s *Slice) { s.Cols = [][2]int{{0, 7}} },
		"twice":    func(s *Slice) { s.Cols = [][2]int{{0, 3}, {2, 6}} },
		"wrap":     func(s *Slice) { s.From, s.To = math.MaxInt, math.MinInt+23 },
		"overflow": func(s *Slice) {
			s.Shape, s.Rows = []int{1<<62 + 6, 4},
				[][2]int{{0, 6}}
			s.Cols = [][2]int{{0, 4}}
		},
		"both": func(s *Slice) { s.Rows, s.Cols = [][2]int{{-4, 0}}, [][2]int{{-6, 0}} },
	} {
		s := part(all, wide, 0, 24)
		change(&s)
		info := Info{Name: "w@0", DType: F32, Shape: []int{24}}
		if err := s.check(info); err == nil {
			t.Errorf("%s: %+v was taken", name, s)
		}
	}
}

// A slice takes no longer to read than it is long: one of nothing may claim any number of rows.
func TestSlicesOfNothing(t *testing.T) {
	nothing := Slice{Of: "w", Shape: []int{1 << 40, 0}, Rows: [][2]int{{0, 1 << 40}}, Cols: [][2]int{{0, 0}}}
	path := filepath.Join(t.TempDir(), "x")
	meta, err := SliceMeta(map[string]Slice{"w@0": nothing})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, []Entry{FromFloat32s("w@0", F32, []int{0}, nil)}, meta); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := OpenSliced(vfs.OS{}, []string{path})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	end := Slice{Of: "w", Shape: []int{1 << 40, 3}, Rows: [][2]int{{0, 1 << 39}, {1 << 39, 1 << 40}},
		Cols: [][2]int{{1, 2}}, From: 1<<40 - 2, To: 1<<40 - 1}
	done := make(chan error)
	go func() {
		_, err := f.Float32s("w")
		for run := range end.runs(3) {
			if want := [3]int{3*(1<<40-2) + 1, 0, 1}; run != want {
				err = fmt.Errorf("the element before the last: %v, want %v", run, want)
			}
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("still reading a tensor without elements, or the last of many")
	}
}

// A tensor without elements may have any shape with a 0 in it; its slices lie within it all the same.
func TestSlicesOfEmptyShapes(t *testing.T) {
	for _, shape := range [][]int{{0}, {0, 4}, {4, 0}, {0, 0}, {2, 0, 3}, {2, 3, 0}} {
		info := Info{Name: "w", DType: F32, Shape: shape}
		path := stored(t, t.TempDir(), "f", nil, FromFloat32s("w", F32, shape, nil))
		f, err := OpenSliced(vfs.OS{}, []string{path})
		if err != nil {
			t.Errorf("%v: %v", shape, err)
			continue
		}
		if got, err := f.Float32s("w"); len(got) != 0 || err != nil {
			t.Errorf("%v: %v, %v", shape, got, err)
		}
		_ = f.Close()
		rows, cols := wholeSlice(info), wholeSlice(info)
		rows.Rows[0][1]++
		cols.Cols[0][1]++
		for _, s := range []Slice{rows, cols} {
			if err := s.check(info); err == nil {
				t.Errorf("%v: rows %v and columns %v are taken", shape, s.Rows, s.Cols)
			}
		}
	}
}

// Every way to cut a tensor of several rows and columns into ranges gives it back.
func TestSliceRuns(t *testing.T) {
	for from := range 12 {
		for to := from + 1; to <= 12; to++ {
			s := part([][2]int{{0, 1}, {2, 4}}, [][2]int{{1, 3}, {4, 6}}, from, to)
			var got []int
			for r := range s.runs(6) {
				if r[1] >= r[2] {
					t.Errorf("[%d, %d): an empty run %v", from, to, r)
				}
				for k := range r[2] - r[1] {
					got = append(got, r[0]+k)
				}
			}
			var want []int
			for _, row := range []int{0, 2, 3} {
				for _, col := range []int{1, 2, 4, 5} {
					want = append(want, row*6+col)
				}
			}
			if !slices.Equal(got, want[from:to]) {
				t.Errorf("[%d, %d): %v, want %v", from, to, got, want[from:to])
			}
		}
	}
}
