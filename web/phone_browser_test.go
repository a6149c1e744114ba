package web_test

import (
	"math"
	"testing"

	"antiphase/internal/browser"
	"antiphase/lab"
)

// reach moves the focus with the Tab key until it is on an element, as somebody without a pointer would.
func reach(t *testing.T, p *browser.Page, selector string) {
	t.Helper()
	for range 80 {
		p.Key("Tab")
		if p.Number(`document.activeElement && document.activeElement.matches('`+selector+`') ? 1 : 0`) == 1 {
			return
		}
	}
	t.Fatalf("Tab does not lead to %s", selector)
}

// TestKeyboardAlone: from an open page to an answer, its alternatives, a stopped one, and an intervention, without a
// pointer.
func TestKeyboardAlone(t *testing.T) {
	r := newRig(t)
	p := r.page(looks[0], "/")
	p.Wait(arrived)
	trained := distribution(p)
	reach(t, p, "#lab-layer")
	p.Key("ArrowDown")
	p.Wait(`document.querySelector("#lab-layer").value === "1" && ` + arrived)
	reach(t, p, "#lab-lambda")
	p.Key("Home")
	p.Wait(`document.querySelector("#lab-lambda").value === "0" && document.querySelector("#lab-next").dataset.edits.startsWith("lambda=0@") && ` +
		arrived)
	if distribution(p) == trained {
		t.Error("λ moved to 0 by a key left the distribution as it was")
	}

	p.Goto(r.url + "/?again")
	p.Wait(arrived)
	reach(t, p, "#tab-chat")
	p.Key("Enter")
	p.Wait(`document.querySelector("#chat-say")`)
	p.Eval(setting("max_tokens", "8000"), nil)
	reach(t, p, "#chat-say")
	p.Type("Oslo is")
	p.Key("Enter")
	p.Wait(`document.querySelectorAll(".answer .tok").length > 3`)
	reach(t, p, "#chat-stop")
	p.Key("Enter")
	p.Wait(`/stopped/.test(document.querySelector(".speed").textContent)`)
	r.rests()
	reach(t, p, ".answer .tok")
	p.Key("ArrowRight")
	p.Wait(`document.activeElement.matches(".answer .tok") && !document.querySelector("#tip").hidden`)
}

// TestPhone: the views are not only looked at but used at the width of a phone, in the dark: nothing leaves the screen
// sideways after any step.
func TestPhone(t *testing.T) {
	r := newRig(t)
	r.train("first", 1, 60, 1)
	p := r.page(looks[3], "/")
	narrow := func(when string) {
		t.Helper()
		if w := p.Number(`document.documentElement.scrollWidth`); w > 400 {
			t.Errorf("%s: the page is %v wide", when, w)
		}
	}
	p.Wait(arrived)
	p.Click(`[aria-label="Text"] button[value="own"]`)
	p.Type(shortText)
	p.Click(".own .btn.main")
	p.Wait(`document.querySelector("#lab-words").textContent.includes("Lima is 33") && ` + arrived)
	checkNext(t, p, r.look("diff", shortText), "on a phone")
	narrow("own text")
	trained := distribution(p)
	if x := dragLambda(p, 0.2); x > 0.5 {
		t.Errorf("λ was dragged to %v only", x)
	}
	p.Wait(`document.querySelector("#lab-next").dataset.edits.startsWith("lambda=") && ` + arrived)
	if distribution(p) == trained {
		t.Error("dragging λ left the distribution as it was")
	}
	narrow("λ dragged")
	p.Click("#tab-chat")
	p.Wait(`document.querySelector("#chat-say")`)
	p.Eval(setting("max_tokens", "24"), nil)
	p.Click("#chat-say")
	p.Type("Oslo is")
	p.Click("#chat-send")
	p.Wait(idle)
	narrow("answered")
	p.Click("#tab-runs")
	p.Wait(`document.querySelectorAll(".chart path.line").length >= 6`)
	narrow("runs")
}

// TestExamplesAndTwin: every example opens with the span that it is about marked, and the twin's map beside it is the
// Transformer's own.
func TestExamplesAndTwin(t *testing.T) {
	r := newRig(t)
	p := r.page(looks[0], "/")
	for _, c := range []struct{ id, span string }{{"needle", "Naples 42"}, {"name", "Tamsin"}, {"brackets", "{ y"}} {
		p.Click(`[aria-label="Text"] button[value="` + c.id + `"]`)
		p.Wait(`[...document.querySelectorAll("#lab-words .tok.in")].map(e => e.textContent).join("").replaceAll("·", " ").includes("` +
			c.span + `") && ` + arrived)
		text := p.Text(`[...document.querySelectorAll('#lab-words .tok')].length + ''`)
		if text == "0" {
			t.Errorf("%s: no tokens", c.id)
		}
	}
	q := r.own(shortText)
	mark(q)
	twin := r.look("transformer", shortText)
	n := len(twin.Tokens)
	for _, head := range twin.Shown {
		if head.Layer != 0 || head.Head != 0 {
			continue
		}
		want := 0.0
		for _, x := range head.Maps[lab.A1][n*(n-1)/2:][n-3:] {
			want += float64(x)
		}
		q.Eval(`(() => { const s = document.querySelector(".map.tf select"); s.value = "0.0"; s.dispatchEvent(new Event("change")); })()`,
			nil)
		q.Wait(`document.querySelector('#lab-span tr[data-map="tf"]')`)
		if got := q.Number(`document.querySelector('#lab-span tr[data-map="tf"]').dataset.sum`); math.Abs(got-want) >
			1e-5 {
			t.Errorf("the twin's last row gives the span %v, want %v", got, want)
		}
	}
}
