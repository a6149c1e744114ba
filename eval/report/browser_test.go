package report

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"antiphase/internal/browser"
)

// browse opens a page in a headless browser: its document when it is done, and what it logged.
func browse(t *testing.T, program, page string) (dom, log string, err error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "page.html")
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--enable-logging=stderr",
		"--user-data-dir="+filepath.Join(dir, "profile"), "--dump-dom", "file://"+path)
	c.WaitDelay = 10 * time.Second
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	return string(out), said.String(), err
}

// A real browser opens the page and finds nothing to complain about.
func TestPageInBrowser(t *testing.T) {
	path := browser.Path(t)
	if _, log, err := browse(t, path, "<p>blank</p>"); err != nil {
		browser.Lack(t, "%s does not open a blank page: %v\n%s", path, err, log)
	}
	page := renderPage(t, fakePage(t))
	for _, width := range []int{400, 1400} {
		dom, log, err := browse(t, path, framed(page, width))
		if err != nil {
			t.Errorf("%d pixels: %v\n%s", width, err, log)
		}
		if strings.Contains(log, "CONSOLE") {
			t.Errorf("%d pixels: the console says:\n%s", width, log)
		}
		_, said, ok := strings.Cut(dom, `<pre id="probe">`)
		said, _, _ = strings.Cut(said, "</pre>")
		if !ok || said != fmt.Sprintf("%d drawings", strings.Count(page, "<svg")) {
			t.Errorf("%d pixels: %s", width, said)
		}
	}
}

// framed shows a page in a frame of some width and reports what is wrong with it: a page that scrolls sideways, or two
// texts of a drawing, or two cells of the table of scores, that overlap.
func framed(page string, width int) string {
	return fmt.Sprintf(
		`<!doctype html><pre id="probe"></pre><iframe id="f" width="%d" height="900" srcdoc="%s"></iframe><script>
document.getElementById("f").onload = () => {
  const d = document.getElementById("f").contentDocument, bad = [];
  if (d.documentElement.scrollWidth > %d) bad.push("the page is " + d.documentElement.scrollWidth + " wide");
  const boxes = list => [...list].map(e => [e, e.getBoundingClientRect()]).filter(b => b[1].width > 0 && b[1].height > 0);
  const meet = (list, what) => { for (let i = 0; i < list.length; i++) for (let k = i + 1; k < list.length; k++) {
    const a = list[i][1], b = list[k][1], w = Math.min(a.right, b.right) - Math.max(a.left, b.left), h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (w > 2 && h > 3) bad.push(what + ": " + list[i][0].textContent.trim() + " | " + list[k][0].textContent.trim());
  } };
  const all = d.querySelectorAll("svg");
  all.forEach(s => meet(boxes(s.querySelectorAll("text")), s.getAttribute("aria-label")));
  d.querySelectorAll("#scores tr").forEach(r => meet(boxes(r.querySelectorAll("th, td")), "scores"));
  document.getElementById("probe").textContent = bad.length ? bad.join("; ") : all.length + " drawings";
};</script>`, width, html.EscapeString(page), width)
}
