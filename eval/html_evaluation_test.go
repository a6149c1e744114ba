package eval

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"antiphase/device/ref"
)

// fakePage has every part, of two models that differ.
func fakePage(t *testing.T) *Page {
	t.Helper()
	detail := func(v any) json.RawMessage {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	ev := &Evaluation{Title: "a<b & <script>alert(1)</script>", Date: "2025-01-02", Seed: 4, Limit: 9}
	for i, name := range []string{"base <b>", "other"} {
		x := float64(i)
		seg := Segments{0.3 - 0.1*x, 0.2, 0.1 + 0.2*x, 0.3 - 0.1*x, 0.1}
		att := AttentionResult{Depths: []float64{0, 1}, Signed: []Segments{{-0.2, 0.5, 0.6, 0.05, 0.05}, seg}, Absolute: []Segments{seg, seg},
			ByLayer: [][]Segments{{seg, seg}, {seg, seg}}, ByHead: [][]Segments{{seg, seg, seg}, {seg, seg, seg}}}
		m := func(v float64) Mean { return Mean{v, 0.05, 10} }
		metric := func(name string) []Metric { return []Metric{{name, m(0.5 + 0.1*x), higher}} }
		ev.Models = append(ev.Models, Judged{Name: name, Arch: "diff", Parameters: 1000, Context: 64, Results: []Result{
			{Task: "lm", Metrics: metric("loss"), Detail: detail(LMDetail{[]AtPosition{{1, 3}, {2, 2.5}, {4, 2.2 - x}}})},
			{Task: "hellaswag", Group: "mc", Metrics: metric("acc")},
			{Task: "needle", Metrics: metric("acc"), Config: map[string]any{"needles": 4, "queries": 2}, Detail: detail(NeedleGrid{Needles: 4, Queries: 2,
				Lengths: []int{512, 1024}, Depths: []float64{0, 0.5}, Cells: [][]Mean{{m(1), m(0.5)}, {m(0), m(0.25)}}})},
			{Task: "attention", Metrics: metric("answer"), Detail: detail(AttentionDetail{Lengths: []int{64}, Results: []AttentionResult{att}, Lambda: []float64{0.3, 0.5}})},
			{Task: "icl_trec", Group: "icl", Metrics: metric("acc"), Detail: detail(ICLDetail{[]int{2, 8}, []Mean{m(0.4), m(0.6)}})},
			{Task: "icl_order_trec", Group: "icl_order", Metrics: metric("acc"), Detail: detail(OrderDetail{8, map[string][]float64{"random": {0.2, 0.5, 0.9}, "alternating": {0.4}}})},
			{Task: "outliers", Metrics: metric("logits_top1"), Detail: detail(OutlierResult{64, Extreme{9, 8, 7, 5, 2, 0.2}, Extreme{90, 80, 70, 50, 20, 0}})},
			{Task: "geometry", Metrics: metric("map_gap"), Detail: detail(GeometryDetail{16, []GeometryLayer{{Maps: []GeometryMap{{"A", 0.5, 3, 0.2, 0.1, 0}}, HiddenRank: 4}, {}}})},
			{Task: "lowbit", Metrics: metric("exact"), Detail: detail(LowbitDetail{"lm", "loss", "tensor", m(0.6), []LowbitRow{{"logits", 8, m(0.6), m(0)}, {"cache", 4, m(0.5), m(-0.1)}}})},
			{Task: "throughput", Metrics: metric("forward"), Detail: detail(ThroughputDetail{[]ThroughputRow{{64, 2, m(1000 + 100*x), m(300)}}})},
		}})
	}
	sc, err := Scaling("parameters", []ScalingCurve{curveOf("t", 2, 100, 0.4, 0, nil, fewSizes...), curveOf("d", 2, 90, 0.4, 0, nil, fewSizes...)}, 1)
	if err != nil {
		t.Fatal(err)
	}
	ab := &AblationResult{Size: "tiny", Steps: 5, Tokens: 1000}
	for _, a := range Ablations() {
		ab.Rows = append(ab.Rows, AblationRow{Name: a.Name, Doc: a.Doc, Arch: "x", Heads: 4, HeadDim: 8, Loss: Mean{3, 0.1, 4}})
	}
	return &Page{Evaluation: ev, Scaling: []ScalingResult{*sc}, Ablation: ab}
}

func renderPage(t *testing.T, p *Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.HTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var link = regexp.MustCompile(`<a download="([^"]+)" href="data:([^;]+);base64,([^"]+)">`)

func TestEvaluationPage(t *testing.T) {
	page := renderPage(t, fakePage(t))
	wellFormed(t, page)
	for _, bad := range []string{"http", "<script", "src=", "url(", "@import", "NaN", "ZgotmplZ", "%!", "base <b>"} {
		if at := strings.Index(page, bad); at >= 0 {
			t.Errorf("the page holds %q: …%s…", bad, page[max(0, at-60):min(len(page), at+60)])
		}
	}
	for _, want := range []string{
		"&lt;script&gt;alert(1)&lt;/script&gt;", "Scaling", "Ablations", "needle-paper-diff", "λ by layer", "icl_order_trec", "outliers-logits-paper",
		"geometry-map-rank", "lowbit-paper", "throughput-paper", "attention-heads-1", "for the loss", "0.634", // HellaSwag of the paper
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	checkLinks(t, page)
}

// checkLinks opens every download: SVG must be XML that stands alone, CSV must have rows as wide as its head.
func checkLinks(t *testing.T, page string) {
	t.Helper()
	kinds, seen := map[string]int{}, map[string]bool{}
	for _, m := range link.FindAllStringSubmatch(html.UnescapeString(page), -1) {
		if seen[m[1]] {
			t.Errorf("two downloads have the name %s", m[1])
		}
		seen[m[1]] = true
		b, err := base64.StdEncoding.DecodeString(m[3])
		if err != nil {
			t.Fatalf("%s: %v", m[1], err)
		}
		kinds[m[2]]++
		switch m[2] {
		case "image/svg+xml":
			d := xml.NewDecoder(bytes.NewReader(b))
			for {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", m[1], err)
				}
			}
			if !bytes.Contains(b, []byte(`xmlns="http://www.w3.org/2000/svg"`)) || !bytes.Contains(b, []byte("<style>")) {
				t.Errorf("%s does not stand alone", m[1])
			}
		case "text/csv":
			rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
			if err != nil || len(rows) < 2 {
				t.Errorf("%s: %d rows, %v", m[1], len(rows), err)
			}
		default:
			t.Errorf("%s is %s", m[1], m[2])
		}
	}
	if n := strings.Count(page, "<svg"); len(kinds) != 2 || len(seen) < 2*n {
		t.Errorf("%d drawings, downloads %v", n, kinds)
	}
}

func TestEvaluationPageOfLittle(t *testing.T) {
	for name, p := range map[string]*Page{
		"nothing": {}, "no results": {Evaluation: &Evaluation{Models: []Judged{{Name: "a"}}}},
		"one model": {Evaluation: &Evaluation{Models: fakePage(t).Evaluation.Models[:1]}}, "ablation": {Ablation: fakePage(t).Ablation},
	} {
		page := renderPage(t, p)
		wellFormed(t, page)
		if strings.Contains(page, "NaN") {
			t.Errorf("%s: what is no number", name)
		}
	}
	bad := fakePage(t)
	bad.Evaluation.Models[0].Results[2].Detail = json.RawMessage(`{"cells": 3}`)
	if err := bad.HTML(io.Discard); err == nil || !strings.Contains(err.Error(), "needle") {
		t.Errorf("a detail of another kind: %v", err)
	}
}

// browse opens a page in a headless browser: its document when it is done, and what it logged.
func browse(t *testing.T, browser, page string) (dom, log string, err error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "page.html")
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
		"--user-data-dir="+filepath.Join(dir, "profile"), "--dump-dom", "file://"+path)
	c.WaitDelay = 10 * time.Second
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	return string(out), said.String(), err
}

// A real browser opens both pages and finds nothing to complain about.
func TestPagesInBrowser(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" || testing.Short() {
		t.Skip("no browser is installed, or -short")
	}
	if _, log, err := browse(t, browser, "<p>blank</p>"); err != nil {
		t.Skipf("the browser does not even open a blank page here: %v\n%s", err, log)
	}
	for name, page := range map[string]string{"evaluation": renderPage(t, fakePage(t)), "report": render(t, fakeReport())} {
		dom, log, err := browse(t, browser, page)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, log)
		}
		if strings.Contains(log, "CONSOLE") {
			t.Errorf("%s: the console says:\n%s", name, log)
		}
		if got, want := strings.Count(dom, "<svg"), strings.Count(page, "<svg"); got != want || !strings.Contains(dom, "How ") {
			t.Errorf("%s: the browser sees %d drawings of %d", name, got, want)
		}
	}
}

// The page of a real evaluation, every task that looks inside.
func TestPageOfModels(t *testing.T) {
	tasks, err := Select([]string{"needle", "attention", "outliers", "geometry", "throughput"})
	if err != nil {
		t.Fatal(err)
	}
	var targets []Target
	for _, arch := range []string{"transformer", "diff"} {
		targets = append(targets, Target{Name: arch, LM: subject(t, ref.New(), arch, 300), Context: 300})
	}
	set := map[string]string{"needle.needles": "1", "needle.queries": "1", "needle.samples": "1", "needle.depths": "0.5", "needle.lengths": "250,300",
		"attention.needles": "1", "attention.samples": "1", "attention.depths": "0,1", "outliers.length": "32", "outliers.tokens": "64",
		"geometry.length": "16", "geometry.samples": "1", "throughput.lengths": "16", "throughput.tokens": "16", "throughput.reps": "1"}
	ev, err := Run(context.Background(), targets, tasks, Options{Shots: -1, Set: set})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := ev.JSON(&b); err != nil {
		t.Fatal(err)
	}
	again, err := ReadEvaluation(&b)
	if err != nil {
		t.Fatal(err)
	}
	page := renderPage(t, &Page{Evaluation: again})
	wellFormed(t, page)
	checkLinks(t, page)
	for _, id := range []string{"needle-1", "attention-heads-0", "outliers-hidden", "geometry-negative", "throughput"} {
		if !strings.Contains(page, `id="`+id+`"`) {
			t.Errorf("the page lacks %s", id)
		}
	}
}
