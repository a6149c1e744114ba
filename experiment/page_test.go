package experiment

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/eval"
	"antiphase/internal/browser"
)

// fullRows are rows as an experiment of three architectures and seeds writes them.
func fullRows() []Row {
	g := rand.New(rand.NewPCG(5, 6))
	var rows []Row
	for _, lr := range []float64{1e-3, 2e-3} {
		for _, arch := range []string{"transformer", "diff", "diff2"} {
			for seed := range uint64(3) {
				r := Run{Size: "tiny", Arch: arch, LR: lr, Seed: seed + 1}
				base := Row{origin: origin{Experiment: "made-up", Run: r.Name(), Size: "tiny", Arch: arch,
					LR: lr, Seed: r.Seed, Parameters: 724864, Steps: 12000, Tokens: 24576000,
					Machine: "cpu: 2 threads, amx, bf16, linux/amd64"}}
				rows = append(rows, measured(base, g)...)
			}
		}
	}
	return rows
}

func measured(base Row, g *rand.Rand) (rows []Row) {
	add := func(measure, label string, better eval.Better, value float64) *Row {
		r := base
		r.Measure, r.Label, r.Better, r.Value = measure, label, better, value+0.01*g.NormFloat64()
		rows = append(rows, r)
		return &rows[len(rows)-1]
	}
	for _, name := range []string{"curve.valid_loss", "curve.grad_norm", "curve.lambda", "probe.needle.bound N=4 R=2"} {
		r := add(name, name, eval.Higher, 1)
		for i := range 24 {
			r.Curve = append(r.Curve, [2]float64{float64(i+1) * 1e6, float64(i) / 25})
		}
		if strings.HasPrefix(name, "probe") {
			r.Floors = map[string]float64{"copy": 0.25}
		}
	}
	add("train.valid_loss", "held-out loss", eval.Lower, 1)
	add("train.tokens_per_second", "speed", eval.Higher, 87767)
	for place, m := range []struct {
		kind, metric, suffix, label string
		better                      eval.Better
		value                       float64
	}{
		{"lm", "loss", "", "held-out loss, nats/token", eval.Lower, 1.1},
		{"lm", "ar_hit", "", "loss on recallable tokens (AR-Hit)", eval.Lower, 1.7},
		{"needle", "bound", " N=4 R=2", "number beside its key, %", eval.Higher, 0.5},
		{"needle", "constrained", " N=4 R=2", "choice among hidden numbers, %", eval.Higher, 0.5},
		{"attention", "answer", " N=4 R=1", "attention to the answer, %", eval.Higher, 0.1},
		{"outliers", "hidden_max", "", "largest hidden state of a sequence", eval.Lower, 123.4},
	} {
		r := add(m.kind+"."+m.metric+m.suffix, m.label, m.better, m.value)
		r.Metric, r.N = m.metric, 40
		r.Task = &TaskInfo{Name: m.kind, Kind: m.kind, Question: m.kind, Place: place, Context: 256,
			Config: map[string]any{}}
		if m.suffix != "" {
			r.Task.Config["needles"], r.Task.Config["queries"] = 4, 2
			r.Floors = map[string]float64{"chance": 0.011, "copy": 0.25}
		}
		for range r.N {
			r.Items = append(r.Items, m.value*(1+0.1*g.NormFloat64()))
		}
	}
	return rows
}

// fits is a script that writes into the page what runs past its frame, and which labels of a chart overlap.
const fits = `<script>addEventListener("load", () => {
  const bad = [];
  for (const e of document.querySelectorAll(".scroll, .numbers, .scores, main, body"))
    if (e.scrollWidth > e.clientWidth + 1) bad.push((e.querySelector("table") || e).id + " " + e.tagName + " is " + e.scrollWidth + " wide, has " + e.clientWidth);
  for (const e of document.querySelectorAll(".numbers td, .scores td")) { // on a phone a label stands before the value
    const label = getComputedStyle(e, "::before"), text = document.createRange(), frame = e.getBoundingClientRect();
    text.selectNodeContents(e);
    const line = text.getClientRects()[0]; // the first
    if (label.content !== "none" && line && line.top - frame.top < 8 && line.left - frame.left - parseFloat(label.width) < 4)
      bad.push("no gap after " + e.dataset.side);
  }
  for (const s of document.querySelectorAll("svg")) {
    const t = [...s.querySelectorAll("text")].map(x => x.getBoundingClientRect()), edge = s.getBoundingClientRect();
    if (t.some(x => x.right > edge.right + 1 || x.left < edge.left - 1)) bad.push("a label leaves " + s.getAttribute("aria-label"));
    for (let i = 0; i < t.length; i++) for (let k = i + 1; k < t.length; k++) {
      const w = Math.min(t[i].right, t[k].right) - Math.max(t[i].left, t[k].left);
      const h = Math.min(t[i].bottom, t[k].bottom) - Math.max(t[i].top, t[k].top);
      if (w > 2 && h > 0.4 * Math.min(t[i].height, t[k].height)) bad.push("labels overlap in " + s.getAttribute("aria-label"));
    }
  }
  parent.postMessage(innerWidth + ": " + bad.join("; "), "*");
})</script>`

// frame shows a page at widths that a window cannot have, and keeps what the script says of each.
const frame = `<body data-bad=""><script>addEventListener("message", e => { document.body.dataset.bad += "[" + e.data + "]" })</script>
<iframe src="page.html" width="400" height="1000" style="border: 0"></iframe>
<iframe src="page.html" width="1400" height="1000" style="border: 0"></iframe></body>`

var badPattern = regexp.MustCompile(`\[(\d+): ([^]]*)\]`)

// On a phone and on a desk nothing of the page is cut off, and no labels of a chart overlap: of drawn rows with every
// figure, and of the committed ones of an experiment.
func TestPageFits(t *testing.T) {
	path := browser.Path(t)
	if _, err := shown(t, path, "about:blank"); err != nil {
		browser.Lack(t, "%s does not open a blank page: %v", path, err)
	}
	committed, err := ReadRowFiles(filepath.Join("..", "results", "evidence", "retrieval-tiny.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	oneSeed := slices.DeleteFunc(slices.Clone(committed), func(r Row) bool { return r.Seed > 1 || r.LR != 0.002 })
	for what, rows := range map[string][]Row{"drawn": fullRows(), "committed": committed, "one seed": oneSeed} {
		pageFits(t, path, what, rows)
	}
}

func pageFits(t *testing.T, program, what string, rows []Row) {
	t.Helper()
	var page bytes.Buffer
	if err := (&Options{Dir: "runs/a folder"}).Page(rows).HTML(&page); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "page.html")
	if err := os.WriteFile(path, append(page.Bytes(), fits...), 0o644); err != nil {
		t.Fatal(err)
	}
	outer := filepath.Join(dir, "frame.html")
	if err := os.WriteFile(outer, []byte(frame), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := shown(t, program, "file://"+outer)
	found := badPattern.FindAllSubmatch(out, -1)
	if err != nil || len(found) != 2 {
		t.Fatalf("%s: %d of 2 frames report, error %v\n%.2000s", what, len(found), err, out)
	}
	for _, f := range found {
		t.Logf("%s, %s pixels", what, f[1])
		if len(f[2]) > 0 {
			t.Errorf("%s, %s pixels: %s", what, f[1], f[2])
		}
	}
}

// shown returns what a page has become after the browser has run its scripts.
func shown(t *testing.T, program, url string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--hide-scrollbars", "--user-data-dir="+filepath.Join(t.TempDir(), "profile"), "--window-size=1600,1000",
		"--virtual-time-budget=5000", "--dump-dom", url)
	c.WaitDelay = 10 * time.Second
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("%w: %.2000s", err, said.Bytes())
	}
	return out, err
}
