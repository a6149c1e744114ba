package browser

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Look is the appearance of a page.
type Look struct {
	Width, Height int
	Dark          bool
}

// Page is one tab.
type Page struct {
	t       testing.TB
	b       *Browser
	session string

	mu   sync.Mutex
	said []string
}

type fields = map[string]any

// Page opens an empty tab.
func (b *Browser) Page(t testing.TB, look Look) *Page {
	t.Helper()
	p := &Page{t: t, b: b}
	var target struct{ TargetID string }
	p.must(b.call("", "Target.createTarget", fields{"url": "about:blank"}, &target))
	var s struct{ SessionID string }
	p.must(b.call("", "Target.attachToTarget", fields{"targetId": target.TargetID, "flatten": true}, &s))
	p.session = s.SessionID
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		p.do(domain+".enable", nil, nil)
	}
	p.Show(look)
	t.Cleanup(func() { _ = b.call("", "Target.closeTarget", fields{"targetId": target.TargetID}, nil) })
	return p
}

// Show changes width and theme.
func (p *Page) Show(look Look) {
	p.t.Helper()
	scheme := "light"
	if look.Dark {
		scheme = "dark"
	}
	p.do(
		"Emulation.setDeviceMetricsOverride",
		fields{"width": look.Width, "height": look.Height, "deviceScaleFactor": 1, "mobile": false},
		nil,
	)
	p.do(
		"Emulation.setEmulatedMedia",
		fields{
			"features": []fields{
				{"name": "prefers-color-scheme", "value": scheme},
				{"name": "prefers-reduced-motion", "value": "reduce"},
			},
		},
		nil,
	)
}

func (p *Page) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *Page) do(method string, params, into any) {
	p.t.Helper()
	p.must(p.b.call(p.session, method, params, into))
}

// event records console messages, exceptions and browser warnings.
func (p *Page) event(m message) {
	switch m.Method {
	case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded":
		p.mu.Lock()
		p.said = append(p.said, fmt.Sprintf("%s %.600s", m.Method, m.Params))
		p.mu.Unlock()
	}
}

// Said returns all console messages since the last call.
func (p *Page) Said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.said
	p.said = nil
	return out
}

// Goto opens an address and waits for the document.
func (p *Page) Goto(url string) {
	p.t.Helper()
	var r struct{ ErrorText string }
	p.do("Page.navigate", fields{"url": url}, &r)
	if r.ErrorText != "" {
		p.t.Fatalf("%s: %s", url, r.ErrorText)
	}
	p.Wait(`document.readyState === "complete"`)
}

// Eval runs an expression, waits for it if it is a promise, and reads its value.
func (p *Page) Eval(expr string, into any) {
	p.t.Helper()
	p.must(p.eval(expr, into))
}

func (p *Page) eval(expr string, into any) error {
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	if err := p.b.call(p.session, "Runtime.evaluate",
		fields{"expression": expr, "awaitPromise": true, "returnByValue": true}, &r); err != nil {
		return err
	}
	if e := r.ExceptionDetails; e != nil {
		return fmt.Errorf("%s: %s %s", expr, e.Text, e.Exception.Description)
	}
	if into == nil || r.Result.Value == nil {
		return nil
	}
	return json.Unmarshal(r.Result.Value, into)
}

// Text is an expression's value as text.
func (p *Page) Text(expr string) string {
	p.t.Helper()
	var s string
	p.Eval("String("+expr+")", &s)
	return s
}

// Number is an expression's value as a number.
func (p *Page) Number(expr string) float64 {
	p.t.Helper()
	var x float64
	p.Eval("Number("+expr+")", &x)
	return x
}

// Wait polls until an expression is true.
func (p *Page) Wait(expr string) {
	p.t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		ok := false
		if err = p.eval("Boolean("+expr+")", &ok); err == nil && ok {
			return
		}
	}
	var page string
	_ = p.eval("document.body.innerText.slice(0, 800)", &page) // for the message only
	p.t.Fatalf(
		"never true: %s (%v)\nthe page shows:\n%s\nthe console said: %s",
		expr,
		err,
		page,
		strings.Join(p.Said(), "\n"),
	)
}

// box is the position of the element that a selector finds, once it exists, scrolled into view.
func (p *Page) box(selector string) (x, y, w, h float64) {
	p.t.Helper()
	var r struct{ X, Y, W, H float64 }
	q, _ := json.Marshal(selector)
	p.Wait(fmt.Sprintf("document.querySelector(%s)", q))
	p.Eval(
		fmt.Sprintf(
			`(() => { const e = document.querySelector(%s); e.scrollIntoView({ block: "center" }); const r = e.getBoundingClientRect(); return { X: r.x, Y: r.y, W: r.width, H: r.height }; })()`,
			q,
		),
		&r,
	)
	return r.X, r.Y, r.W, r.H
}

func (p *Page) mouse(kind string, x, y float64, buttons int) {
	p.t.Helper()
	button := "none"
	if kind != "mouseMoved" {
		button = "left"
	}
	p.do(
		"Input.dispatchMouseEvent",
		fields{"type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1},
		nil,
	)
}

// Click presses and releases the left button on an element.
func (p *Page) Click(selector string) {
	p.t.Helper()
	x, y, w, h := p.box(selector)
	p.mouse("mouseMoved", x+w/2, y+h/2, 0)
	p.mouse("mousePressed", x+w/2, y+h/2, 1)
	p.mouse("mouseReleased", x+w/2, y+h/2, 0)
}

// Hover moves the pointer to a point of an element, given as fractions of its size.
func (p *Page) Hover(selector string, fx, fy float64) {
	p.t.Helper()
	x, y, w, h := p.box(selector)
	p.mouse("mouseMoved", x+fx*w, y+fy*h, 0)
}

// Drag moves the pointer with the button held from one point of an element to another, in small steps.
func (p *Page) Drag(selector string, fromX, fromY, toX, toY float64) {
	p.t.Helper()
	x, y, w, h := p.box(selector)
	p.DragPoints(x+fromX*w, y+fromY*h, x+toX*w, y+toY*h)
}

// DragPoints is Drag between points of the window.
func (p *Page) DragPoints(x0, y0, x1, y1 float64) {
	p.t.Helper()
	p.mouse("mouseMoved", x0, y0, 0)
	p.mouse("mousePressed", x0, y0, 1)
	n := max(10, int(math.Hypot(x1-x0, y1-y0)/4)) // a slider's thumb is lost by a pointer that jumps over its edge
	for i := 1; i <= n; i++ {
		f := float64(i) / float64(n)
		p.mouse("mouseMoved", x0+f*(x1-x0), y0+f*(y1-y0), 1)
	}
	p.mouse("mouseReleased", x1, y1, 0)
}

// Type writes text into the focused element.
func (p *Page) Type(text string) {
	p.t.Helper()
	p.do("Input.insertText", fields{"text": text}, nil)
}

// Key presses a key such as Enter, Tab or ArrowLeft, optionally with a modifier, as in Shift+Tab.
func (p *Page) Key(name string) {
	p.t.Helper()
	mods := 0
	if rest, ok := strings.CutPrefix(name, "Shift+"); ok {
		name, mods = rest, 8
	}
	k := fields{"key": name, "code": name, "modifiers": mods}
	codes := map[string]int{
		"Enter":      13,
		"Tab":        9,
		"Escape":     27,
		"ArrowLeft":  37,
		"ArrowUp":    38,
		"ArrowRight": 39,
		"ArrowDown":  40,
		"Home":       36,
		"End":        35,
		" ":          32,
	}
	if c := codes[name]; c != 0 {
		k["windowsVirtualKeyCode"] = c
	}
	if name == "Enter" {
		k["text"] = "\r"
	} else if len(name) == 1 {
		k["text"] = name
	}
	k["type"] = "keyDown"
	p.do("Input.dispatchKeyEvent", k, nil)
	delete(k, "text")
	k["type"] = "keyUp"
	p.do("Input.dispatchKeyEvent", k, nil)
}

// Download runs an action that saves a file and returns the file's path.
func (p *Page) Download(act func()) string {
	p.t.Helper()
	dir := p.t.TempDir()
	p.must(p.b.call("", "Browser.setDownloadBehavior", fields{"behavior": "allow", "downloadPath": dir}, nil))
	act()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		list, _ := filepath.Glob(filepath.Join(dir, "*.html"))
		if len(list) == 1 {
			if info, err := os.Stat(list[0]); err == nil && info.Size() > 0 {
				return list[0]
			}
		}
	}
	p.t.Fatal("nothing was downloaded")
	return ""
}

// Screenshot is the window as PNG.
func (p *Page) Screenshot() []byte {
	p.t.Helper()
	var r struct{ Data string }
	p.do("Page.captureScreenshot", fields{"format": "png"}, &r)
	b, err := base64.StdEncoding.DecodeString(r.Data)
	p.must(err)
	return b
}
