package metrics

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/internal/vfs"
)

// tearing is a disk that stores half of a row and fails while torn is set; stuck also refuses to cut the file.
type tearing struct {
	vfs.OS
	torn, stuck *bool
}

type tornFile struct {
	vfs.File
	fsys tearing
}

var errTorn = errors.New("the disk went away")

// Append implements vfs.FS.
func (d tearing) Append(path string, end int64) (vfs.File, error) {
	if *d.stuck {
		return nil, errTorn
	}
	f, err := d.OS.Append(path, end)
	return tornFile{f, d}, err
}

// WriteAt implements io.WriterAt.
func (f tornFile) WriteAt(b []byte, at int64) (int, error) {
	if !*f.fsys.torn {
		return f.File.WriteAt(b, at)
	}
	n, err := f.File.WriteAt(b[:len(b)/2], at)
	return n, errors.Join(err, errTorn)
}

// Half of a row is cut off at once, so that a reader does not see it; where that fails too, the next row overwrites it.
func TestHalfARowIsCut(t *testing.T) {
	for _, fixed := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), FileName)
		torn, stuck := false, false
		w, err := Open(tearing{vfs.OS{}, &torn, &stuck}, path, 0, func(*Row) {}, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		for step := range 5 {
			torn = step == 2
			stuck = torn && !fixed
			r := example(step + 1)
			if err := w.Write(&r); errors.Is(err, errTorn) != torn || err != nil != torn {
				t.Fatalf("step %d: %v", step+1, err)
			}
			info, err := os.Stat(path)
			if whole := err == nil && info.Size() == w.Size(); whole == stuck {
				t.Errorf("step %d, cut %v: %d whole bytes, %v", step+1, fixed, w.Size(), err)
			}
		}
		w.Close()
		rows, err := Read(path, func(s string) { t.Error(s) })
		if err != nil || !slices.Equal(steps(rows), []int{1, 2, 4, 5}) {
			t.Errorf("cut %v: rows %v, %v", fixed, steps(rows), err)
		}
	}
}

// Each kind of bad line is named by what is wrong with it; the longest line that may be is not refused for its length.
func TestNamesOfBadLines(t *testing.T) {
	path, b := record(t, 2)
	lines := strings.SplitAfter(string(b), "\n")
	first := lines[0]
	for want, text := range map[string]string{
		"line 2: it does not end":                              first + strings.TrimSuffix(lines[1], "\n"),
		"line 2: the checksum is missing":                      first + `{"step":2}` + "\n",
		"line 2: not a row: unexpected EOF":                    first + `{"step":2` + "\n",
		"line 1: step 0 cannot be right":                       `{"step":0}` + "\n",
		"line 1: step -7 cannot be right":                      `{"step":-7}` + "\n",
		"line 1: 1048577 bytes, no row is longer than 1048576": strings.Repeat(" ", maxLine) + "\n",
		"line 1: not a row: EOF":                               strings.Repeat(" ", maxLine-1) + "\n",
		"line 1: not a row: more than one value":               `{"step":1}{}` + "\n",
		"line 1: not a row: json: unknown field \"stepp\"":     `{"step":1,"stepp":1}` + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		var said []string
		if _, err := Read(path, func(s string) { said = append(said, s) }); err != nil ||
			!slices.Equal(said, []string{path + ": " + want + "; it is skipped"}) {
			t.Errorf("%v, said %q, want %q", err, said, want)
		}
	}
	if err := os.WriteFile(path, []byte(first+"{}\n"+`{"step":3}`+"\n"+lines[1]+`{"step":5}`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	var said []string // damage in between does not make checksums optional again
	if rows, err := Read(path, func(s string) { said = append(said, s) }); err != nil || len(rows) != 2 ||
		len(said) != 3 ||
		!strings.Contains(said[1], "line 3: the checksum is missing") ||
		!strings.Contains(said[2], "line 5: the checksum is missing") {
		t.Errorf("%d rows, %v, said %q", len(rows), err, said)
	}
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for most, want := range map[int64]int{0: 0, 1: 1, int64(len(first)): 1, int64(len(first)) + 1: 2} {
		if rows, next, _, err := Tail(f, 0, most); err != nil || len(rows) != want ||
			next != int64(len(strings.Join(lines[:want], ""))) {
			t.Errorf("%d bytes: %d rows up to %d, %v; want %d", most, len(rows), next, err, want)
		}
	}
}
