package report

import (
	"flag"
	"fmt"
	"html"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"antiphase/eval"
	"antiphase/eval/task"
)

var update = flag.Bool("update", false, "write testdata/page.txt anew")

var (
	drawings   = regexp.MustCompile(`(?s)<svg.*?</svg>`)
	styles     = regexp.MustCompile(`(?s)<style>.*?</style>`)
	links      = regexp.MustCompile(`"data:[^"]*"`)
	elements   = regexp.MustCompile(`<(\w+)(?: class="([^"]*)")?([^>]*)>`)
	attributes = regexp.MustCompile(`="([^"]*)"`)
	numerals   = regexp.MustCompile(`-?\d+(?:\.\d+)?`)
	written    = regexp.MustCompile(`>([^<>]+)<`)
)

// drawn is a drawing in a few lines: its texts, how often each kind of element is there, and a sum of all coordinates
// in which each has its own weight.
func drawn(svg string) string {
	kinds, sum, n := map[string]int{}, 0.0, 0
	for _, e := range elements.FindAllStringSubmatch(svg, -1) {
		kinds[strings.TrimSpace(e[1]+" "+e[2])]++
		for _, a := range attributes.FindAllStringSubmatch(e[3], -1) {
			for _, s := range numerals.FindAllString(a[1], -1) {
				x, _ := strconv.ParseFloat(s, 64) // by the pattern
				n++
				sum += float64(1+n%17) * x
			}
		}
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		out = append(out, fmt.Sprintf("%d %s", kinds[k], k))
	}
	var texts []string
	for _, m := range written.FindAllStringSubmatch(svg, -1) {
		texts = append(texts, strings.Join(strings.Fields(m[1]), " "))
	}
	return fmt.Sprintf("\ndrawing: %s\ntexts: %s\nsum of %d: %.2f\n", strings.Join(out, ", "),
		strings.Join(texts, " | "), n, sum)
}

// pageLines is what a page shows, line by line.
func pageLines(page string) []string {
	page = links.ReplaceAllString(styles.ReplaceAllString(page, ""), `"data"`)
	page = drawings.ReplaceAllStringFunc(page, drawn)
	page = regexp.MustCompile(`</(tr|h\d|p|li|pre|figcaption|summary|title|header|section)>`).ReplaceAllString(page,
		"\n")
	page = regexp.MustCompile(`</(td|th)>`).ReplaceAllString(page, " | ")
	page = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, "")
	var out []string
	for line := range strings.SplitSeq(page, "\n") {
		if line = strings.Join(strings.Fields(html.UnescapeString(line)), " "); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// sameLine compares lines; sums of coordinates may differ in what a processor rounds.
func sameLine(a, b string) bool {
	x, y, ok := strings.Cut(a, ": ")
	v, w, too := strings.Cut(b, ": ")
	if !ok || !too || x != v || !strings.HasPrefix(x, "sum of ") {
		return a == b
	}
	left, err1 := strconv.ParseFloat(y, 64)
	right, err2 := strconv.ParseFloat(w, 64)
	return err1 == nil && err2 == nil && math.Abs(left-right) < 0.9
}

// checkpointsPage is a page of two checkpoints of each of two runs, with tasks that fakePage does not have.
func checkpointsPage() *Page {
	var cells []*eval.Cell
	for i, run := range []string{"first", "second"} {
		for k, tokens := range []int64{1_000_000, 4_000_000} {
			x := float64(1+2*i+k) / 8
			m := func(v float64) eval.Mean { return eval.Mean{Value: v * x, StdErr: 0.01 + x/50, N: 20} }
			model := eval.Model{Name: fmt.Sprintf("%s %d", run, tokens), Hash: fmt.Sprint(i, k), Arch: "diff",
				Parameters: 1000, Context: 64, Run: run, Tokens: tokens}
			curve := task.NoiseCurve{Kind: "letters", Label: "wrong letters", Unit: "share",
				Doses: []float64{0, 0.2, 0.5}, Scores: []eval.Mean{m(1), m(0.8), m(0.3)}, Area: m(0.7)}
			hidden := task.HiddenDetail{Lengths: []int{128, 512}, Cells: []string{"near", "far"},
				Scores: map[string][][]eval.Mean{"bound": {{m(1), m(0.9)}, {m(0.8), m(0.5)}}}}
			for place, r := range []*eval.Result{
				made("noise", "", "area", "area, %", 40, x,
					task.NoiseDetail{Task: "piqa", Metric: "acc", Shots: 2, StandIn: true,
						Curves: []task.NoiseCurve{curve}}),
				made("ruler_values", "", "bound", "right, %", 40, x, hidden),
				made("gsm8k", "math", "acc", "accuracy, %", 40, x, nil),
				made("mathqa", "math", "acc", "accuracy, %", 80, x/2, nil),
			} {
				cells = append(cells, cellOf(model, place, r))
			}
		}
	}
	return &Page{Evaluation: eval.Assemble(cells)}
}

// The page of invented results, every number, text and coordinate of it, is the one in testdata: a change of it is
// looked at, and written with -update.
func TestPageAsItWas(t *testing.T) {
	p, later := fakePage(t), checkpointsPage()
	got := slices.Concat(pageLines(renderPage(t, p)), strings.Split(p.Table(false), "\n"),
		pageLines(renderPage(t, later)), strings.Split(later.Table(false), "\n"))
	path := filepath.Join("testdata", "page.txt")
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n"), "\n")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) {
			t.Fatalf("%d lines, want %d: if the page is right, go test ./eval/report -run TestPageAsItWas -update",
				len(got), len(want))
		}
		if !sameLine(got[i], want[i]) {
			t.Errorf("line %d:\n%s\nwant\n%s\nif the page is right, go test ./eval/report -run TestPageAsItWas -update",
				i+1, got[i], want[i])
			if i > 0 {
				t.Logf("after %s", got[i-1])
			}
			return
		}
	}
}
