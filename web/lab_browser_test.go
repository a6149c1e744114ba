package web_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"antiphase/internal/browser"
	"antiphase/lab"
	"antiphase/layer"
)

const shortText = "Oslo is 48. Lima is 33. Oslo is"

// look asks the model itself, without a server.
func (r *rig) look(model, text string, list ...layer.Intervention) *lab.Reply {
	r.t.Helper()
	net := r.nets[model]
	q := lab.Query{
		IDs:           r.tok.Encode(text),
		Maps:          []string{lab.A1},
		Next:          []int{len(r.tok.Encode(text)) - 1},
		Top:           8,
		Interventions: list,
	}
	if model != "transformer" {
		q.Maps = []string{lab.A1, lab.A2, lab.Diff}
	}
	if err := q.Complete(net.Config); err != nil {
		r.t.Fatal(err)
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	reply, err := lab.Look(context.Background(), net, &q, r.tok.Spell, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return reply
}

const arrived = `document.querySelector("#lab-next").dataset.state === "now"`

// edited is true when the page shows what these interventions lead to.
func edited(name string) string {
	return fmt.Sprintf(`document.querySelector("#lab-next").dataset.edits === %q && %s`, name, arrived)
}

// distribution is what the page says comes next.
func distribution(p *browser.Page) string {
	return p.Text(
		`[...document.querySelectorAll("#lab-next tr[data-id]")].map(r => r.dataset.id + ":" + r.dataset.p).join(" ")`,
	)
}

// next is the same of a reply, written as JavaScript writes numbers.
func checkNext(t *testing.T, p *browser.Page, r *lab.Reply, what string) {
	t.Helper()
	var got []struct{ ID, P float64 }
	p.Eval(
		`[...document.querySelectorAll("#lab-next tr[data-id]")].map(r => ({ ID: Number(r.dataset.id), P: Number(r.dataset.p) }))`,
		&got,
	)
	top := r.Next[len(r.Next)-1].Top
	if len(got) != len(top) {
		t.Fatalf("%s: %d tokens, want %d", what, len(got), len(top))
	}
	for i, x := range top {
		if int32(got[i].ID) != x.ID || math.Abs(got[i].P-math.Exp(*x.Logprob)) > 1e-9 {
			t.Errorf("%s: place %d is %v, want %d %v", what, i, got[i], x.ID, math.Exp(*x.Logprob))
		}
	}
	if loss := p.Number(`document.querySelector("#lab-loss").dataset.loss`); math.Abs(loss-r.Loss) > 1e-9 {
		t.Errorf("%s: loss %v, want %v", what, loss, r.Loss)
	}
}

// checkSpan compares the page's shares with those of a reply's last rows.
func checkSpan(t *testing.T, p *browser.Page, r *lab.Reply, l, h, from, to int) {
	t.Helper()
	T := len(r.Tokens)
	for _, head := range r.Shown {
		if head.Layer != l || head.Head != h {
			continue
		}
		for name, id := range map[string]string{lab.A1: "a1", lab.A2: "a2", lab.Diff: "df"} {
			part, all, sum := 0.0, 0.0, 0.0
			for j, x := range head.Maps[name][T*(T-1)/2:] {
				if all += math.Abs(float64(x)); j >= from && j < to {
					part, sum = part+math.Abs(float64(x)), sum+float64(x)
				}
			}
			got := p.Number(fmt.Sprintf(`document.querySelector('#lab-span tr[data-map="%s"]').dataset.share`, id))
			signed := p.Number(fmt.Sprintf(`document.querySelector('#lab-span tr[data-map="%s"]').dataset.sum`, id))
			if math.Abs(got-part/all) > 1e-5 || math.Abs(signed-sum) > 1e-5 {
				t.Errorf(
					"layer %d head %d map %s: the page says %v %v, want %v %v",
					l,
					h,
					name,
					got,
					signed,
					part/all,
					sum,
				)
			}
		}
	}
}

// own opens the lab with a text of one's own.
func (r *rig) own(text string) *browser.Page {
	r.t.Helper()
	p := r.page(looks[0], "/")
	p.Wait(arrived)
	p.Click(`[aria-label="Text"] button[value="own"]`)
	p.Type(text) // the old text is selected
	p.Click(".own .btn.main")
	p.Wait(
		fmt.Sprintf(
			`document.querySelectorAll("#lab-words .tok").length === %d && %s`,
			len(r.tok.Encode(text)),
			arrived,
		),
	)
	return p
}

func TestLabInBrowser(t *testing.T) {
	r := newRig(t)
	p := r.own(shortText)
	plain := r.look("diff", shortText)
	checkNext(t, p, plain, "as trained")
	trained := distribution(p)

	// Heads: by the list, by a thumbnail, by a key; a span by dragging over the text.
	p.Eval(
		`(() => { const s = document.querySelector("#lab-layer"); s.value = 1; s.dispatchEvent(new Event("change")); })()`,
		nil,
	)
	p.Click(`.heads tr:nth-child(3) td:nth-child(3) .thumb`) // caption, layer 1, layer 2
	p.Wait(`document.querySelector("#lab-head").value === "1" && document.querySelector("#lab-layer").value === "1"`)
	var at struct{ X0, Y0, X1, Y1 float64 }
	p.Eval(
		`(() => { const m = i => { const r = document.querySelectorAll("#lab-words .tok")[i].getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }; document.querySelector("#lab-words").scrollIntoView({ block: "center" }); const [X0, Y0] = m(8), [X1, Y1] = m(9); return { X0, Y0, X1, Y1 }; })()`,
		&at,
	)
	p.DragPoints(at.X0, at.Y0, at.X1, at.Y1)
	p.Wait(`document.querySelectorAll("#lab-words .tok.in").length === 2`)
	p.Key("End")
	p.Wait(
		`document.querySelector("#lab-words .tok[aria-selected=true]").dataset.i === "` + fmt.Sprint(
			len(plain.Tokens)-1,
		) + `"`,
	)
	checkSpan(t, p, plain, 1, 1, 8, 10)
	p.Key(".")
	p.Wait(`document.querySelector("#lab-layer").value === "0" && document.querySelector("#lab-head").value === "0"`)
	checkSpan(t, p, plain, 0, 0, 8, 10)

	// Pointing at a map and at the text.
	p.Hover(".map.a1 .plot", 0.1, 0.9)
	p.Wait(`/→/.test(document.querySelector(".map.df .read").textContent)`)
	p.Hover("#lab-words .tok:nth-child(4)", 0.5, 0.5)
	p.Wait(`document.querySelector("#lab-words .tok.query").dataset.i === "3"`)
	p.Hover("h1", 0.1, 0.5)

	r.interveneInBrowser(p, plain, trained)
	audit(t, p, "lab")
}

// dragLambda drags λ from its trained value to a place of the slider and returns the factor there. Where the page was
// still drawing, the pointer may have missed the thumb: then it tries again.
func dragLambda(p *browser.Page, to float64) (x float64) {
	x = 1
	for i := 0; i < 5 && x == 1; i++ {
		p.Drag("#lab-lambda", 0.5, 0.5, to, 0.5)
		x = p.Number(`document.querySelector("#lab-lambda").value`)
	}
	return x
}

// interveneInBrowser drags λ and presses what changes the second map and the head, and compares with the model itself.
func (r *rig) interveneInBrowser(p *browser.Page, plain *lab.Reply, trained string) {
	t := r.t
	t.Helper()
	x := dragLambda(p, 0.26)
	p.Wait(edited(fmt.Sprintf("lambda=%v@L1", x)))
	if distribution(p) == trained {
		t.Error("dragging λ left the distribution as it was")
	}
	scaled := r.look("diff", shortText, layer.Intervention{Lambda: &x, Layers: []int{0}})
	checkNext(t, p, scaled, fmt.Sprintf("λ times %v", x))
	checkSpan(t, p, scaled, 0, 0, 8, 10)
	p.Click(`[aria-label^="Where λ"] button[value="all"]`)
	p.Wait(edited(fmt.Sprintf("lambda=%v", x)))
	checkNext(t, p, r.look("diff", shortText, layer.Intervention{Lambda: &x}), "λ in all layers")
	p.Click(`[aria-label="The second map"] button[value="drop"]`)
	zero := 0.0
	p.Wait(edited("lambda=0"))
	checkNext(t, p, r.look("diff", shortText, layer.Intervention{Lambda: &zero}), "dropped")
	p.Click(`[aria-label="The second map"] button[value="shuffled"]`)
	p.Wait(edited("second=shuffled"))
	checkNext(t, p, r.look("diff", shortText, layer.Intervention{Second: layer.SecondShuffled}), "shuffled")
	p.Click("#lab-reset")
	p.Wait(`document.querySelector("#lab-reset").disabled`)
	p.Click("#lab-knock")
	p.Wait(edited("knockout@L1@H1"))
	out := r.look("diff", shortText, layer.Intervention{Knockout: true, Layers: []int{0}, Heads: []int{0}})
	checkNext(t, p, out, "knocked out")
	p.Click("#lab-reset")
	p.Wait(edited(""))
	if got := distribution(p); got != trained {
		t.Errorf("as trained again, the distribution is %s, was %s", got, trained)
	}
	checkNext(t, p, plain, "as trained again")
}

// TestLinkAndFile: a permalink opens the same view, and so does the saved file, without a server.
func TestLinkAndFile(t *testing.T) {
	r := newRig(t)
	const hostile = `<img src=x onerror=document.title=1></script><script>document.title="taken"</script><!-- Oslo`
	p := r.own(hostile)
	p.Eval(
		`(() => { const s = document.querySelector("#lab-lambda"); s.value = 0.5; s.dispatchEvent(new Event("input")); })()`,
		nil,
	)
	p.Wait(
		`location.hash.includes("x=0.5") && document.querySelector("#lab-next").dataset.edits.startsWith("lambda=0.5@") && ` +
			arrived,
	)
	want, link := distribution(p), p.Text("location.hash")
	p.Wait(`document.querySelector("#lab-truth").textContent.startsWith("Maps of the changed model")`)

	again := r.page(looks[0], "/"+link)
	again.Wait(
		`document.querySelectorAll("#lab-words .tok").length > 10 && document.querySelector("#lab-lambda").value === "0.5" && document.querySelector("#lab-next").dataset.edits.startsWith("lambda=0.5@") && ` +
			arrived,
	)
	if got := distribution(again); got != want {
		t.Errorf("the link shows %s, want %s", got, want)
	}
	// The same address bar, another link: the tab follows.
	again.Eval(`location.hash = "#attention?" + new URLSearchParams({ text: "Lima", x: "2", scope: "all" })`, nil)
	again.Wait(`document.querySelectorAll("#lab-words .tok").length === 4 && ` + edited("lambda=2"))
	path := p.Download(func() { p.Click("#lab-save") })
	file := r.b.Page(t, looks[0])
	file.Goto("file://" + path)
	file.Wait(
		`document.querySelector("#lab-lambda") && document.querySelector("#lab-lambda").value === "0.5" && ` + arrived,
	)
	if got := distribution(file); got != want {
		t.Errorf("the file shows %s, want %s", got, want)
	}
	file.Wait(`document.querySelector("#lab-truth").textContent.startsWith("Maps as trained: this file has none")`)
	r.fileWithoutServer(file, hostile)
	for _, page := range []*browser.Page{p, again, file} {
		if title := page.Text("document.title"); !strings.Contains(title, "Antiphase") ||
			page.Number(`document.querySelectorAll("img").length`) != 0 {
			t.Errorf("text became a part of the page: %s", title)
		}
	}
	quiet(t, file)
}

// mark marks the last three tokens with the keys.
func mark(p *browser.Page) {
	p.Eval(`document.querySelector("#lab-words .tok[tabindex='0']").focus()`, nil)
	p.Key("End")
	p.Key("Shift+ArrowLeft")
	p.Wait(`document.querySelectorAll("#lab-words .tok.in").length === 2`)
	p.Key("Shift+ArrowLeft")
	p.Wait(`document.querySelectorAll("#lab-words .tok.in").length === 3`)
	p.Key("End")
	p.Wait(`document.querySelector("#lab-words .tok:last-of-type").getAttribute("aria-selected") === "true"`)
}

func (r *rig) fileWithoutServer(file *browser.Page, text string) {
	t := r.t
	t.Helper()
	file.Click(`[aria-label="The second map"] button[value="drop"]`)
	file.Wait(`document.querySelector("#lab-next").dataset.edits.startsWith("lambda=0@") && ` + arrived)
	zero := 0.0
	checkNext(
		t,
		file,
		r.look(
			"diff",
			text,
			layer.Intervention{
				Lambda: &zero,
				Layers: []int{int(file.Number(`document.querySelector("#lab-layer").value`))},
			},
		),
		"dropped, in a file",
	)
	// A file has no maps of the changed model: the page makes them itself, of A1, A2 and λ.
	layer0, head := int(file.Number(`document.querySelector("#lab-layer").value`)),
		int(file.Number(`document.querySelector("#lab-head").value`))
	mark(file)
	n := len(r.tok.Encode(text))
	checkSpan(t, file, r.look("diff", text, layer.Intervention{Lambda: &zero, Layers: []int{layer0}}),
		layer0, head, n-3, n)
	file.Click("#lab-reset")
	file.Wait(edited(""))
	checkNext(t, file, r.look("diff", text), "as trained, in a file")
	audit(t, file, "file")
}

// TestV2InBrowser: λ of DIFF V2 depends on the token, and every row of the difference takes its own.
func TestV2InBrowser(t *testing.T) {
	r := newRig(t)
	p := r.page(looks[0], "/#attention?model=diff2&twin=diff&text=Oslo+is+48.+Oslo&layer=1&head=1")
	p.Wait(`document.querySelectorAll("#lab-words .tok").length === 16 && ` + arrived)
	const text = "Oslo is 48. Oslo"
	plain := r.look("diff2", text)
	checkNext(t, p, plain, "V2 as trained")
	mark(p)
	checkSpan(t, p, plain, 1, 1, 13, 16)
	half := 0.5
	p.Eval(`(() => { const s = document.querySelector("#lab-lambda"); s.value = 0.5; s.dispatchEvent(new Event("input")); })()`,
		nil)
	p.Wait(edited("lambda=0.5@L2"))
	scaled := r.look("diff2", text, layer.Intervention{Lambda: &half, Layers: []int{1}})
	checkNext(t, p, scaled, "V2 with half of λ")
	checkSpan(t, p, scaled, 1, 1, 13, 16)
}

// TestLongPrompts: beyond what a page can show maps come in tiles, and rows stay exact.
func TestLongPrompts(t *testing.T) {
	r := newRig(t)
	text := strings.Repeat("The cup lay in the harbor. ", 30)
	p := r.own(text)
	plain := r.look("diff", text)
	T := len(plain.Tokens)
	p.Wait(`/tiles/.test(document.querySelector(".status").textContent)`)
	p.Wait(
		`document.querySelector(".map.df .foot").dataset.sum && document.querySelector(".map.a1 canvas").width > 100`)
	for id, name := range map[string]string{"a1": lab.A1, "df": lab.Diff} {
		exact, err := sumOf(r, text, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Number(`document.querySelector(".map.` + id + ` .foot").dataset.sum`); math.Abs(got-exact) > 1e-4 {
			t.Errorf("map %s: the last row of %d tokens sums to %v, want %v", name, T, got, exact)
		}
	}
	// λ scaled in all layers: the answer, and an exact row of the changed model.
	p.Click(`[aria-label^="Where λ"] button[value="all"]`)
	p.Eval(`(() => { const s = document.querySelector("#lab-lambda"); s.value = 1.5; s.dispatchEvent(new Event("input")); })()`,
		nil)
	p.Wait(edited("lambda=1.5"))
	more := 1.5
	checkNext(t, p, r.look("diff", text, layer.Intervention{Lambda: &more}), "a long prompt")
	p.Wait(`document.querySelector(".map.df .foot").dataset.sum`)
	p.Click("#lab-reset")
	p.Wait(edited(""))
	if n := p.Number(`document.querySelector(".map.a1 canvas").width`); n > 256 || n < 100 {
		t.Errorf("the chosen head has %v rows", n)
	}
	audit(t, p, "long")
}

// sumOf is the sum of the last row of the first head.
func sumOf(r *rig, text, name string) (float64, error) {
	ids := r.tok.Encode(text)
	q := lab.Query{
		IDs:    ids,
		Maps:   []string{name},
		Size:   1,
		Layers: []int{0},
		Heads:  []int{0},
		Rows:   []int{len(ids) - 1},
	}
	if err := q.Complete(r.nets["diff"].Config); err != nil {
		return 0, err
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	reply, err := lab.Look(context.Background(), r.nets["diff"], &q, r.tok.Spell, nil)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, x := range reply.Shown[0].Rows[0].Maps[name] {
		sum += float64(x)
	}
	return sum, nil
}
