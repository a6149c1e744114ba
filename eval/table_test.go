package eval

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestReportRoundTrip(t *testing.T) {
	want := fakeReport()
	var b bytes.Buffer
	if err := want.JSON(&b); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "NaN") {
		t.Error("the file holds NaN")
	}
	var got Report
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	got.Recipe, want.Recipe = nil, nil // indented on the way
	if d := cmp.Diff(*want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("−written +read:\n%s", d)
	}
}

func TestReportNamesWhatIsNoNumber(t *testing.T) {
	r := fakeReport()
	r.Sides[1].Needles[0].ByDepth[2].StdErr = math.Inf(1)
	if err := r.JSON(new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "sides[1] needles[0] by_depth[2] stderr") {
		t.Errorf("error %v", err)
	}
	r.Sides[0].Loss.Loss.Value = math.NaN()
	if got := r.Table(false); !strings.Contains(got, "not a number") {
		t.Errorf("the table hides a loss that is none:\n%s", got)
	}
}

// verdictOf marks two values of one metric.
func verdictOf(better direction, a, ea, b, eb float64) string {
	x := row{better: better, cells: []cell{{value: a, err: ea, text: "a"}, {value: b, err: eb, text: "b"}}}
	x.judge()
	return marks[x.cells[0].verdict] + "|" + marks[x.cells[1].verdict]
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		better       direction
		a, ea, b, eb float64
		want         string
	}{
		{lower, 1, 0.1, 2, 0.1, "▸|"},
		{lower, 2, 0.1, 1, 0.1, "|▸"},
		{higher, 1, 0.1, 2, 0.1, "|▸"},
		{higher, 2, 0.1, 1, 0.1, "▸|"},
		{lower, 1, 0.3, 1.9, 0.4, "≈|≈"}, // combined error 0.5
		{lower, 1, 0.3, 2.1, 0.4, "▸|"},
		{higher, 1, 0.3, 1.9, 0.4, "≈|≈"},
		{lower, 5, 0, 5, 0, "≈|≈"},
		{lower, 5, 0, 5.001, 0, "▸|"},
		{neither, 1, 0, 2, 0, "|"},
		{lower, math.NaN(), 0, 2, 0, "|"},
	} {
		if got := verdictOf(c.better, c.a, c.ea, c.b, c.eb); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	three := row{better: higher, cells: []cell{{value: 0.9, err: 0.01, text: "a"}, {value: 0.5, err: 0.01, text: "b"}, {value: 0.91, err: 0.01, text: "c"}}}
	three.judge()
	if three.cells[0].verdict != tied || three.cells[1].verdict != unmarked || three.cells[2].verdict != tied {
		t.Errorf("of three: %+v", three.cells)
	}
}

// lineOf finds a metric's line.
func lineOf(t *testing.T, table, name string) string {
	t.Helper()
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, name) {
			return line
		}
	}
	t.Fatalf("no line %q in\n%s", name, table)
	return ""
}

func TestTable(t *testing.T) {
	r := fakeReport()
	r.Sides[0].Needles[0].Accuracy = Mean{0.96, 0.02, 50}
	r.Sides[1].Needles[0].Accuracy = Mean{0.92, 0.02, 50}
	table := r.Table(false)
	for name, want := range map[string]string{
		"held-out loss":               "1.3812 ± 0.0060 ▸ 1.3312 ± 0.0060",
		"training speed":              "▸ 41,230 36,230",
		"needle retrieval N=1 R=1, %": "≈ 96.0 ± 2.0 ≈ 92.0 ± 2.0",
		"needle retrieval N=4 R=2, %": "58.0 ± 2.0 ▸ 90.0 ± 2.0",
		"attention noise":             "52.0 ± 1.0 ▸ 22.0 ± 1.0",
		"parameters":                  "4,812,032 4,812,544",
		"λ":                           "– 0.",
	} {
		if got := strings.Join(strings.Fields(lineOf(t, table, name)), " "); !strings.Contains(got, want) {
			t.Errorf("%q does not hold %q", got, want)
		}
	}
	width := utf8.RuneCountInString(strings.Split(table, "\n")[0])
	for _, line := range strings.Split(table, "\n")[1:5] {
		if n := utf8.RuneCountInString(line); n != width {
			t.Errorf("%q is %d wide, the head %d", line, n, width)
		}
	}
	if strings.Contains(table, "\x1b") || !strings.Contains(r.Table(true), "\x1b[1;32m▸ 1.3312 ± 0.0060\x1b[0m") {
		t.Error("colour where none is asked for, or none where it is")
	}
}

func TestTableOfLittle(t *testing.T) {
	for name, r := range map[string]*Report{"nothing": {}, "empty sides": {Sides: []Side{{Name: "a"}, {Name: "b"}}}, "one": {Sides: fakeReport().Sides[:1]}} {
		if table := r.Table(false); strings.Contains(table, "NaN") || strings.Contains(strings.TrimSuffix(table, legend+"\n"), "▸") {
			t.Errorf("%s:\n%s", name, table)
		}
	}
}
