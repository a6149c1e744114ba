package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
)

// Tail reads a growing file in any pieces: every whole good row once, nothing of an unfinished or damaged line, and all
// again once the file was rewritten.
func TestTail(t *testing.T) {
	_, b := record(t, 6)
	lines := strings.SplitAfter(string(b), "\n")
	lines[3] = strings.Replace(lines[3], "3.25", "3.75", 1) // step 4 is damaged
	text := strings.Join(lines, "")
	path := filepath.Join(t.TempDir(), "m.jsonl")
	for _, most := range []int64{1, int64(len(lines[0])), int64(len(lines[0])) + 1, 1 << 20} {
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		at := int64(0)
		for end := 0; ; end = min(end+97, len(text)) {
			if _, err := f.WriteAt([]byte(text[:end]), 0); err != nil {
				t.Fatal(err)
			}
			for {
				rows, next, reset, err := Tail(f, at, most)
				if err != nil || reset || next < at || next > int64(end) {
					t.Fatalf("from %d of %d: next %d, reset %v, %v", at, end, next, reset, err)
				}
				if most == 1 && len(rows) > 1 {
					t.Fatalf("%d rows for one byte", len(rows))
				}
				if got = append(got, steps(rows)...); next == at {
					break
				}
				at = next
			}
			if end == len(text) {
				break
			}
		}
		if !slices.Equal(got, []int{1, 2, 3, 5, 6}) || at != int64(len(text)) {
			t.Errorf("%d bytes at a time: rows %v up to %d of %d", most, got, at, len(text))
		}
		if err := f.Truncate(int64(len(lines[0]))); err != nil {
			t.Fatal(err)
		}
		rows, next, reset, err := Tail(f, at, 1<<20)
		if err != nil || !reset || !slices.Equal(steps(rows), []int{1}) || next != int64(len(lines[0])) {
			t.Errorf("rewritten: rows %v, next %d, reset %v, %v", steps(rows), next, reset, err)
		}
		f.Close()
		if rows, next, reset, err := Tail(f, at, 9); err == nil || next != at || reset || rows != nil {
			t.Errorf("a closed file: %v up to %d, reset %v, %v", rows, next, reset, err)
		}
	}
}

// No failing file operation goes unnoticed, but that of removing a partial row, which the next one overwrites.
func TestWriterFaults(t *testing.T) {
	n := vfstest.EachFault(t, func(fsys vfs.FS) {
		if err := fsys.Mkdir("/run"); err != nil {
			t.Fatal(err)
		}
		_, b := record(t, 2)
		if err := vfs.WriteFile(fsys, "/run/m", b); err != nil {
			t.Fatal(err)
		}
	}, func(fsys vfs.FS) error {
		w, err := Open(fsys, "/run/m", 1, func(*Row) {}, func(string) {})
		if err != nil {
			return err
		}
		defer w.Close()
		r := example(2)
		if err := w.Write(&r); err != nil {
			return err
		}
		return w.Sync()
	}, func(op vfstest.Op) bool { return op.Kind == "close" })
	if n < 6 {
		t.Errorf("%d operations: a sync is missing", n)
	}
}

// After a failed write the next row takes its place, and Size counts whole rows only.
func TestRowAfterAFault(t *testing.T) {
	mem, fails := vfstest.NewMem(), false
	f := &vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
		if fails && op.Kind == "write" {
			return io.ErrShortWrite
		}
		return nil
	}}
	w, err := Open(f, "/m", 0, func(*Row) {}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for step := range 4 {
		r, before := example(step+1), w.Size()
		fails = step == 1
		if err := w.Write(&r); (err != nil) != fails || (w.Size() == before) != fails {
			t.Errorf("step %d: %v, %d bytes, %d before", step+1, err, w.Size(), before)
		}
	}
	w.Close()
	var got []int
	w, err = Open(mem, "/m", 4, func(r *Row) { got = append(got, r.Step) }, func(s string) { t.Error(s) })
	if err != nil || !slices.Equal(got, []int{1, 3, 4}) {
		t.Errorf("rows %v, %v", got, err)
	}
	w.Close()
	// A caller that breaks off reads no further, and a file that cannot be read is an error, not an end.
	for range Rows("none") {
		break
	}
	if _, err := Read(t.TempDir(), nil); err == nil {
		t.Error("a folder has no rows and no error")
	}
}

// Every field of a row comes back with its own value, whatever the others are; absent ones as NaN or empty.
func TestEveryFieldReturns(t *testing.T) {
	rt := reflect.TypeFor[Row]()
	for warn := range Warning(1 << numWarnings) {
		for absent := -1; absent < rt.NumField(); absent++ {
			want := Row{Step: 1}
			v := reflect.ValueOf(&want).Elem()
			for i := range rt.NumField() {
				switch f := v.Field(i); {
				case f.Kind() == reflect.Float64 && i == absent && optional[rt.Field(i).Name]:
					f.SetFloat(math.NaN())
				case f.Kind() == reflect.Float64:
					f.SetFloat(float64(i) + 0.25)
				case f.CanInt():
					f.SetInt(int64(i + 3))
				case rt.Field(i).Type == reflect.TypeFor[[]float64]() && i != absent:
					f.Set(reflect.ValueOf([]float64{float64(i), float64(i) + 0.5}))
				}
			}
			want.Warn = warn
			want.Groups = Groups{{"a", 0.5}, {"b", 2}}
			line := want.Append(nil)
			got, sealed, err := parse(line[:len(line)-1])
			if err != nil || !sealed {
				t.Fatalf("%s: %v", line, err)
			}
			for i := range rt.NumField() {
				g, w := fmt.Sprint(reflect.ValueOf(got).Field(i)), fmt.Sprint(v.Field(i))
				if g != w {
					t.Fatalf("%s is %s, was %s: %s", rt.Field(i).Name, g, w, line)
				}
			}
			var generic map[string]any
			if err := json.Unmarshal(line, &generic); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
	}
	r := example(1)
	r.Groups = Groups{{"x", math.Inf(1)}, {"a", 1}, {"n", math.NaN()}}
	line := r.Append(nil)
	if got, _, err := parse(line[:len(line)-1]); err != nil || !slices.Equal(got.Groups, Groups{{"a", 1}}) {
		t.Errorf("%v, %v", got.Groups, err)
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} { // λ of a run that diverges
		r := example(1)
		r.Lambda, r.Epochs = []float64{0.5, x}, []float64{x, 1}
		line := r.Append(nil)
		if got, _, err := parse(line[:len(line)-1]); err != nil || len(got.Lambda)+len(got.Epochs) != 0 ||
			got.Loss != r.Loss {
			t.Errorf("%g: %+v, %v", x, got, err)
		}
	}
	for _, bad := range []string{`{"step":1} {}`, `{"step":0}`, `{"step":-1}`, `{"step":1,"grad_groups":[1]}`,
		`{"step":1,"grad_groups":{"a":"b"}}`, `{"step":1,"warn":3}`, `{"step":1,"other":2}`} {
		if _, _, err := parse([]byte(bad)); err == nil {
			t.Errorf("%s passes", bad)
		}
	}
}

// optional are the fields that a row may lack.
var optional = map[string]bool{"Valid": true, "EvalS": true, "SaveS": true, "LambdaMin": true, "LambdaMax": true}

// Lines are parsed in blocks: numbers, offsets and the demand for checksums go on from one to the next.
func TestReadBlocks(t *testing.T) {
	path, b := record(t, 700)
	all := bytes.SplitAfter(b, []byte("\n"))
	all[0] = []byte("{\"step\":1}\n") // of a version without checksums
	all[299] = []byte("{\"step\":300}\n")
	all[599][20] ^= 1
	all[699] = all[699][:30]
	if err := os.WriteFile(path, bytes.Join(all, nil), 0o644); err != nil {
		t.Fatal(err)
	}
	var warned []string
	rows, err := Read(path, func(s string) { warned = append(warned, strings.TrimPrefix(s, path+": ")) })
	want := []string{"line 300: the checksum is missing; it is skipped",
		"line 600: the checksum does not match; it is skipped", "line 700: it does not end; it is skipped"}
	if err != nil || len(rows) != 697 || rows[696].Step != 699 || !slices.Equal(warned, want) {
		t.Errorf("%d rows, %v, warned %q", len(rows), err, warned)
	}
	at := int64(0)
	for l := range lines(vfs.OS{}, path) {
		if at += l.size; l.end != at {
			t.Fatalf("a line ends at %d, want %d", l.end, at)
		}
	}
}
