package web_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"antiphase/internal/browser"
)

const idle = `document.querySelector("#chat-stop").disabled && document.querySelectorAll(".answer .tok").length > 0`

// set gives a setting a value as typing would.
func setting(id, value string) string {
	return `(() => { const e = document.querySelector("#chat-` + id + `"); e.value = "` + value +
		`"; e.dispatchEvent(new Event("change")); })()`
}

func TestChatInBrowser(t *testing.T) {
	r := newRig(t)
	p := r.page(looks[0], "/#chat")
	p.Wait(`document.querySelector("#chat-say")`)
	p.Eval(setting("max_tokens", "24"), nil)
	p.Eval(setting("seed", "3"), nil)
	p.Click("#chat-say")
	p.Type(`<b>Oslo</b> is <img src=x onerror=document.title=1>`)
	p.Key("Enter")
	p.Wait(idle)
	if n := p.Number(`document.querySelectorAll(".answers article").length`); n != 2 {
		t.Errorf("%v answers side by side, want 2", n)
	}
	if p.Number(`document.querySelectorAll("#chat-log b, #chat-log img").length`) != 0 ||
		p.Text(`document.querySelector(".said").textContent`) != `<b>Oslo</b> is <img src=x onerror=document.title=1>` {
		t.Error("a message became markup")
	}
	answer := func() string { return p.Text(`document.querySelector(".turn:last-child .answer").textContent`) }
	first := answer()
	p.Wait(`/24 tokens, [\d.]+ tokens\/s/.test(document.querySelector(".speed").textContent)`)

	alternatives(p)

	// Regenerating with one seed gives the same text, with another one another.
	p.Click("#chat-again")
	p.Wait(idle)
	if again := answer(); again != first {
		t.Errorf("the same seed said %q, before %q", again, first)
	}
	p.Eval(setting("seed", "4"), nil)
	p.Click("#chat-again")
	p.Wait(idle)
	if again := answer(); again == first {
		t.Error("another seed said the same")
	}
	audit(t, p, "chat")
	r.stops(t, p)
	p.Click("#chat-clear")
	p.Wait(`document.querySelectorAll(".turn").length === 0`)
}

// alternatives looks at what else a token could have been: by pointing, and by walking with the keys.
func alternatives(p *browser.Page) {
	p.Hover(".answer .tok:nth-child(3)", 0.5, 0.5)
	p.Wait(
		`!document.querySelector("#tip").hidden && document.querySelectorAll("#tip tr").length >= 5 && /▸/.test(document.querySelector("#tip").textContent)`,
	)
	p.Hover("h1", 0.1, 0.5)
	p.Wait(`document.querySelector("#tip").hidden`)
	p.Eval(`document.querySelector(".answer .tok").focus()`, nil)
	p.Key("ArrowRight")
	p.Wait(
		`document.activeElement === document.querySelectorAll(".answer .tok")[1] && !document.querySelector("#tip").hidden`,
	)
}

// stops presses Stop: the answer ends where it is, and so does the work.
func (r *rig) stops(t *testing.T, p *browser.Page) {
	t.Helper()
	p.Eval(setting("max_tokens", "8000"), nil)
	p.Click("#chat-say")
	p.Type("again")
	p.Click("#chat-send")
	p.Wait(`document.querySelectorAll(".turn:last-child .answer .tok").length > 3`)
	p.Click("#chat-stop")
	p.Wait(`/stopped/.test(document.querySelector(".turn:last-child .speed").textContent)`)
	n := p.Number(`document.querySelectorAll(".turn:last-child article:first-child .answer .tok").length`)
	if n >= 7500 {
		t.Errorf("stopped after %v tokens", n)
	}
	r.rests()
}

// rests waits until the server has nothing left to do.
func (r *rig) rests() {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		res, err := http.Get(r.url + "/metrics")
		if err != nil {
			r.t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			r.t.Fatal(err)
		}
		idle := 0
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, "antiphase_num_requests_running{") && strings.HasSuffix(line, "} 0\n") {
				idle++ // a model without requests
			}
		}
		if idle == len(r.nets) {
			return
		}
		if time.Now().After(end) {
			r.t.Fatal("requests run on")
		}
	}
}
