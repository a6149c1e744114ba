package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/internal/vfs/vfstest"
	record "antiphase/metrics"
)

// writeRows appends rows to a run as training does.
func writeRows(t *testing.T, dir string, from, to int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, metricsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := from; i <= to; i++ {
		row := record.Row{
			Step:     i,
			Total:    100,
			Loss:     5 / float64(i),
			LossEMA:  4,
			Valid:    math.NaN(),
			GradNorm: 0.5,
			TokS:     1000,
			Lambda:   []float64{0.2, 0.5},
		}
		if _, err := f.Write(row.Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
}

func runsRig(t *testing.T, dir string) *rig {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return newRig(t, setup{Config: Config{Runs: root}})
}

// tail is an answer of /v1/runs/ID.
type tail struct {
	Cursor      int64
	Reset, More bool
	Rows        []map[string]any
}

func (r *rig) tail(id string, cursor int64) (v tail) {
	r.t.Helper()
	status, _, b := r.do("GET", fmt.Sprintf("/v1/runs/%s?cursor=%d", id, cursor), nil)
	if status != http.StatusOK {
		r.t.Fatalf("%s: %d %s", id, status, b)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		r.t.Fatal(err)
	}
	return v
}

// TestRunsFollowTheFile: rows come as they are written, an unfinished line later, a damaged one never, and all again
// where the file is.
func TestRunsFollowTheFile(t *testing.T) {
	dir := t.TempDir()
	writeRows(t, filepath.Join(dir, "a"), 1, 3)
	writeRows(t, filepath.Join(dir, "deep/er/run"), 1, 1)
	writeRows(t, filepath.Join(dir, "deep/er/than/allowed"), 1, 1)
	writeRows(t, filepath.Join(dir, ".hidden"), 1, 1)
	if err := os.MkdirAll(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := runsRig(t, dir)
	_, _, b := r.do("GET", "/v1/runs", nil)
	if want := `[{"id":"a","object":"run"},{"id":"deep/er/run","object":"run"}]`; !strings.Contains(string(b), want) {
		t.Errorf("%s, want %s", b, want)
	}
	v := r.tail("a", 0)
	if len(v.Rows) != 3 || v.Rows[2]["step"] != 3.0 || v.Rows[0]["grad_norm"] != 0.5 ||
		v.Rows[0]["valid_loss"] != nil ||
		v.More ||
		v.Reset {
		t.Fatalf("%+v", v)
	}
	if again := r.tail("a", v.Cursor); len(again.Rows) != 0 || again.Cursor != v.Cursor {
		t.Errorf("%+v", again)
	}
	f, err := os.OpenFile(filepath.Join(dir, "a", metricsFile), os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, "not a row\n", `{"step":`)
	if half := r.tail("a", v.Cursor); len(half.Rows) != 0 || half.Cursor != v.Cursor+int64(len("not a row\n")) {
		t.Errorf("a row that is not finished: %+v", half)
	}
	fmt.Fprint(f, "\n")
	f.Close()
	writeRows(t, filepath.Join(dir, "a"), 4, 5)
	if more := r.tail("a", v.Cursor); len(more.Rows) != 2 || more.Rows[0]["step"] != 4.0 {
		t.Errorf("%+v", more)
	}
	if got := r.tail("deep/er/run", 0); len(got.Rows) != 1 {
		t.Errorf("%+v", got)
	}
	if err := os.Remove(filepath.Join(dir, "a", metricsFile)); err != nil {
		t.Fatal(err)
	}
	writeRows(t, filepath.Join(dir, "a"), 1, 1)
	if anew := r.tail("a", v.Cursor); !anew.Reset || len(anew.Rows) != 1 {
		t.Errorf("a file written anew: %+v", anew)
	}
}

// TestSamples: the newest first, each step once, whatever else is in the file.
func TestSamples(t *testing.T) {
	dir := t.TempDir()
	writeRows(t, filepath.Join(dir, "a"), 1, 1)
	r := runsRig(t, dir)
	ask := func() string {
		_, _, b := r.do("GET", "/v1/runs/a", nil)
		_, list, _ := strings.Cut(string(b), `"samples":`)
		return strings.TrimSpace(list)
	}
	if got := ask(); got != "[]}" {
		t.Errorf("without a file: %s", got)
	}
	text := strings.Repeat("{\"step\":1,\"prompt\":\"\",\"text\":\"old\"}\n", 5000) + "damage\n" +
		`{"step":2,"prompt":"p","text":"two"}` + "\n" + `{"step":3,"prompt":"p","text":"lost"}` + "\n" +
		`{"step":3,"prompt":"p","text":"three"}` + "\n" + `{"step":4,"te`
	if err := os.WriteFile(filepath.Join(dir, "a", samplesFile), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	want := `[{"step":3,"prompt":"p","text":"three"},{"step":2,"prompt":"p","text":"two"},{"step":1,"prompt":"","text":"old"}]}`
	if got := ask(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := os.Remove(filepath.Join(dir, "a", samplesFile)); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "samples")
	if err := os.WriteFile(outside, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	vfstest.Symlink(t, outside, filepath.Join(dir, "a", samplesFile))
	if got := ask(); got != "[]}" {
		t.Errorf("a link was followed: %s", got)
	}
}

// TestRunsAreBounded: a large file comes in parts.
func TestRunsAreBounded(t *testing.T) {
	dir := t.TempDir()
	writeRows(t, filepath.Join(dir, "long"), 1, 12000)
	r := runsRig(t, dir)
	cursor, rows, parts := int64(0), 0, 0
	for more := true; more; parts++ {
		v := r.tail("long", cursor)
		cursor, more, rows = v.Cursor, v.More, rows+len(v.Rows)
		if parts > 10 {
			t.Fatal("no end")
		}
	}
	if rows != 12000 || parts < 2 {
		t.Errorf("%d rows in %d parts", rows, parts)
	}
	// A page that is ahead of a file that was written anew begins again, and is told that there is more.
	if v := r.tail("long", cursor+1); !v.Reset || !v.More || len(v.Rows) == 0 || v.Rows[0]["step"] != 1.0 ||
		v.Cursor >= cursor {
		t.Errorf("anew: reset %v, more %v, %d rows", v.Reset, v.More, len(v.Rows))
	}
}

// A part may end exactly at the bound: what follows is then announced, and comes with the next.
func TestRunsEndAtTheBound(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"below": maxRunBytes - 1, "at": maxRunBytes, "above": maxRunBytes + 1} {
		writeRows(t, filepath.Join(dir, name), 1, 0)
		bad := strings.Repeat("x", size/2-1) + "\n" // two lines that are no rows
		file := filepath.Join(dir, name, metricsFile)
		if err := os.WriteFile(file, []byte(bad+strings.Repeat("x", size-len(bad)-1)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		writeRows(t, filepath.Join(dir, name), 1, 2)
	}
	r := runsRig(t, dir)
	for name, more := range map[string]bool{"below": true, "at": true, "above": true} {
		v := r.tail(name, 0)
		rest := r.tail(name, v.Cursor)
		if v.More != more || len(v.Rows)+len(rest.Rows) != 2 || rest.More {
			t.Errorf("%s: more %v, %d rows and %d", name, v.More, len(v.Rows), len(rest.Rows))
		}
	}
}

// TestRunsListIsBounded: in a folder that holds more than runs the list ends, and says so.
func TestRunsListIsBounded(t *testing.T) {
	dir := t.TempDir()
	writeRows(t, filepath.Join(dir, "0-run"), 1, 1)
	r := runsRig(t, dir)
	more := func() bool {
		var v struct{ More bool }
		_, _, b := r.do("GET", "/v1/runs", nil)
		if err := json.Unmarshal(b, &v); err != nil || !strings.Contains(string(b), "0-run") {
			t.Fatalf("%v in %.200s", err, b)
		}
		return v.More
	}
	if more() {
		t.Error("one run, and there may be more")
	}
	for i := range 2 { // two folders of one more than half of the bound
		sub := filepath.Join(dir, fmt.Sprint("sub", i))
		if err := os.Mkdir(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		for j := range maxLooks/2 + 1 {
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprint(j)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !more() {
		t.Errorf("%d files, and the list is said to be whole", maxLooks+2)
	}
}

// The list is said to be whole exactly if every entry was looked at, wherever they are: in one folder, in two, or below
// one another; and it is never deeper than its depth.
func TestRunsListLooks(t *testing.T) {
	for _, names := range [][]string{
		{"a"}, {"a", "b", "c"}, {"x/a", "x/b"}, {"a", "x/b", "y/c", "y/d"}, {"x/y/a", "x/y/z/b"},
		{"r/" + metricsFile}, {"x/y/r/" + metricsFile, "s/" + metricsFile}, {"a", "r/" + metricsFile, "x/b"},
	} {
		dir := t.TempDir()
		entries := map[string]bool{} // that a walk of three levels sees; a run is one
		for _, name := range names {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
				t.Fatal(err)
			}
			for name = strings.TrimSuffix(name, "/"+metricsFile); name != "."; name = filepath.Dir(name) {
				if strings.Count(name, "/") < runDepth {
					entries[name] = true
				}
			}
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		for most := 1; most <= len(entries)+1; most++ {
			l := runList{root: root, most: most}
			if l.find(runDepth); l.more != (len(entries) > most) {
				t.Errorf("%q, at most %d of %d entries: more is %v", names, most, len(entries), l.more)
			}
			if whole := strings.Count(fmt.Sprint(names), metricsFile); most >= len(entries) && len(l.names) != whole {
				t.Errorf("%q: the runs are %q", names, l.names)
			}
		}
		root.Close()
	}
}

// TestRunsStayInTheirFolder: no name and no link leads out of the folder, or to anything but metrics.
func TestRunsStayInTheirFolder(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "runs")
	writeRows(t, filepath.Join(top, "secret"), 1, 1)
	writeRows(t, filepath.Join(dir, "good"), 1, 1)
	link := func(target, name string) {
		vfstest.Symlink(t, target, filepath.Join(dir, name))
	}
	link(filepath.Join(top, "secret"), "out")
	if err := os.MkdirAll(filepath.Join(dir, "trick"), 0o755); err != nil {
		t.Fatal(err)
	}
	link(filepath.Join(top, "secret", metricsFile), "trick/"+metricsFile)
	if err := os.MkdirAll(filepath.Join(dir, "folder", metricsFile), 0o755); err != nil {
		t.Fatal(err)
	}
	r := runsRig(t, dir)
	if _, _, b := r.do("GET", "/v1/runs", nil); strings.Contains(string(b), "out") ||
		strings.Contains(string(b), "trick") ||
		!strings.Contains(string(b), "good") {
		t.Errorf("%s", b)
	}
	for _, id := range []string{"out", "trick", "folder", "nothing", "..%2fsecret", "good%2f..%2f..%2fsecret",
		"%2e%2e/secret", "good/../../secret", "%2fetc", "good%00", "good%2f.", ".", "..", "", "good/" + metricsFile,
		"C:%5c", "good%5c..%5c..%5csecret", strings.Repeat("a", 5000), "good/x/y/z"} {
		status, _, b := r.do("GET", "/v1/runs/"+id, nil)
		if status == http.StatusOK && strings.Contains(string(b), `"rows"`) || status >= 500 ||
			strings.Contains(string(b), top) {
			t.Errorf("%.60q: %d %.300s", id, status, b)
		}
	}
	for _, cursor := range []string{"-1", "x", "9223372036854775808", "1e3"} {
		if status, _, b := r.do("GET", "/v1/runs/good?cursor="+cursor, nil); status != http.StatusBadRequest {
			t.Errorf("cursor %s: %d %s", cursor, status, b)
		}
	}
	if v := r.tail("good", math.MaxInt64); !v.Reset || len(v.Rows) != 1 {
		t.Errorf("%+v", v)
	}
}
