package report

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
	"math"
	"regexp"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/eval"
	"antiphase/eval/task"
	"antiphase/layer"
	"antiphase/model/modeltest"
	"antiphase/tokenizer"
)

var link = regexp.MustCompile(`<a download="([^"]+)" href="data:([^;]+);base64,([^"]+)">`)

func TestPage(t *testing.T) {
	page := renderPage(t, fakePage(t))
	wellFormed(t, page)
	for _, bad := range []string{"http", "<script", "src=", "url(", "@import", "NaN", "ZgotmplZ", "%!",
		"base <b>", "<b>tag"} {
		if at := strings.Index(page, bad); at >= 0 {
			t.Errorf("the page holds %q: …%s…", bad, page[max(0, at-60):min(len(page), at+60)])
		}
	}
	for _, want := range []string{
		"&lt;script&gt;alert(1)&lt;/script&gt;", "Scaling", "Ablations", "λ by layer", "icl-order-trec",
		"outliers-logits-paper", "1,234,567", "&lt;|first|&gt;",
		"geometry-map-rank", "lowbit-paper", "throughput-paper", "attention-heads", "interventions", "context-layers",
		"grad-norm", "steadiness", "gradients-o", "grad-groups", "attention-outcome", "for the loss",
		"is better in", "A1 − λA2", "prefers-color-scheme: dark",
		"floors: chance 1.0, copy 25.0 %", "a&lt;b", `id="lead"`,
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
			if !bytes.Contains(b, []byte(`xmlns="http://www.w3.org/2000/svg"`)) ||
				!bytes.Contains(b, []byte("<style>")) {
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

func TestPageOfLittle(t *testing.T) {
	for name, p := range map[string]*Page{
		"nothing":    {},
		"no results": {Evaluation: &eval.Evaluation{Models: []eval.Judged{{Model: eval.Model{Name: "a"}}}}},
		"one model":  {Evaluation: &eval.Evaluation{Models: fakePage(t).Evaluation.Models[:1]}},
		"ablation":   {Ablation: fakePage(t).Ablation},
		"one step":   {Training: []Training{{Model: "a", Curve: []CurvePoint{{Step: 1, Loss: 5}}}}},
		"diverged":   {Training: []Training{{Model: "a", Curve: []CurvePoint{{Step: 1, Loss: math.NaN()}}}}},
	} {
		page := renderPage(t, p)
		wellFormed(t, page)
		if strings.Contains(page, "NaN") {
			t.Errorf("%s: what is no number", name)
		}
	}
	for kind, raw := range map[string]string{"needle": `{"cells": 3}`,
		"maps":      `{"units": ["a"], "maps": [{"rows": []}]}`,
		"attention": `{"depths": [1], "results": [{"by_depth": []}]}`} {
		bad := fakePage(t)
		for i := range bad.Evaluation.Models[0].Results {
			if r := &bad.Evaluation.Models[0].Results[i]; r.Kind == kind {
				r.Detail = json.RawMessage(raw)
			}
		}
		if err := bad.HTML(io.Discard); err == nil || !strings.Contains(err.Error(), kind) {
			t.Errorf("a detail of another kind: %v", err)
		}
	}
}

// Every coordinate is a number, and none is left of or above the page.
func TestCoordinates(t *testing.T) {
	page := renderPage(t, fakePage(t))
	number := regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
	for _, m := range regexp.MustCompile(
		` (x|y|x1|x2|y1|y2|cx|cy|width|height|fill-opacity)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !number.MatchString(m[2]) {
			t.Fatalf("%s", m[0])
		}
	}
}

// The page and the table of a real evaluation, all tasks that look inside, through JSON.
func TestPageOfModels(t *testing.T) {
	tasks, err := eval.Select(task.All(),
		[]string{"needle", "attention", "outliers", "geometry", "throughput", "maps", "samples", "lm"})
	if err != nil {
		t.Fatal(err)
	}
	var targets []eval.Target
	for _, arch := range []string{"transformer", "diff"} {
		targets = append(targets, eval.Target{Model: eval.Model{Name: arch, Context: 400}, LM: tiny(t, arch, 400)})
	}
	set := map[string]string{"needle.needles": "1", "needle.queries": "1", "needle.samples": "1",
		"needle.depths": "0.5", "needle.lengths": "250,300", "attention.needles": "1", "attention.samples": "1",
		"attention.depths": "0,1", "outliers.length": "32", "outliers.tokens": "64",
		"geometry.length": "16", "geometry.samples": "1", "throughput.lengths": "16", "throughput.tokens": "16",
		"throughput.reps": "1",
		"samples.tokens":  "4", "lm.pieces": "2", "lm.length": "32"}
	ev, err := eval.Run(context.Background(), targets, tasks, eval.Options{Shots: -1, Set: set})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := ev.JSON(&b); err != nil {
		t.Fatal(err)
	}
	again, err := eval.ReadEvaluation(&b)
	if err != nil {
		t.Fatal(err)
	}
	page := renderPage(t, &Page{Evaluation: again})
	wellFormed(t, page)
	checkLinks(t, page)
	for _, id := range []string{"needle", "attention-heads", "outliers-hidden", "geometry-negative", "throughput",
		"map-0", "position"} {
		if !strings.Contains(page, `id="`+id) {
			t.Errorf("the page lacks %s", id)
		}
	}
	if table := (&Page{Evaluation: ev}).Table(false); !strings.Contains(table, "attention° N=1 R=1") ||
		strings.Contains(table, "NaN") || !strings.Contains(table, "with its sign") {
		t.Errorf("table:\n%s", table)
	}
}

// tiny is a random model that reads bytes.
func tiny(t *testing.T, arch string, context int) *eval.Subject {
	t.Helper()
	tok := tokenizer.Bytes()
	m := modeltest.New(t, ref.New(), modeltest.Tiny(arch, tok.Vocab(), context), layer.Memory{}, 11)
	return &eval.Subject{Name: arch, Model: m, Tokenizer: tok, Batch: 3}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		s    scale
		n    int
		want string
	}{
		{scale{lo: 0, hi: 1}, 5, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{scale{lo: 1.17, hi: 1.72}, 5, "1.2 1.4 1.6"},
		{scale{lo: -0.2, hi: 0.3}, 5, "−0.2 −0.1 0.0 0.1 0.2 0.3"},
		{scale{lo: 0, hi: 30000}, 5, "0 10k 20k 30k"},
		{scale{lo: 1, hi: 512, log: true}, 5, "2 8 32 128 512"},
		{scale{lo: 1, hi: 3, whole: true}, 5, "1 2 3"},
		{scale{lo: 1, hi: 1}, 5, "1"},
	} {
		if got := strings.Join(tickText(c.s.ticks(c.n)), " "); got != c.want {
			t.Errorf("%+v: %q, want %q", c.s, got, c.want)
		}
	}
}
