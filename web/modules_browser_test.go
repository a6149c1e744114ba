package web_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing"

	"antiphase/internal/browser"
	"antiphase/lab"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/web"
)

// modules is a page of the server's own address, in which its modules can be imported one by one.
func modules(t *testing.T) *browser.Page {
	t.Helper()
	b := browser.Open(t)
	h := httptest.NewServer(web.Handler())
	t.Cleanup(h.Close)
	p := b.Page(t, looks[0])
	p.Goto(h.URL + "/ui/none") // a page without scripts
	return p
}

// The modules of the page, function by function, against values worked out by hand.
func TestModules(t *testing.T) {
	p := modules(t)
	wordsAndLinks(t, p)
	mapsOfThePage(t, p)
	requestsForMaps(t, p)
	drawing(t, p)
	calls(t, p)
}

// says evaluates expressions in m, the exports of a module, and compares what they give as JSON.
func says(t *testing.T, p *browser.Page, module string, cases [][2]string) {
	t.Helper()
	for _, c := range cases {
		var got string
		p.Eval(fmt.Sprintf(`import("/ui/%s").then(async m => JSON.stringify(await (%s)) ?? "undefined")`, module, c[0]),
			&got)
		if got != c[1] {
			t.Errorf("%s: %s is %s, want %s", module, c[0], got, c[1])
		}
	}
}

// Numbers and tokens as the page writes them, the spans of examples, and the state in a link: what cannot be right is
// left as usual.
func wordsAndLinks(t *testing.T, p *browser.Page) {
	t.Helper()
	says(t, p, "dom.js", [][2]string{
		{`[-0.0004, -1.55, 2].map(x => m.fixed(x, 3))`, `["0.000","−1.550","2.000"]`},
		{`[0.25, 0.0001, -2, 0].map(x => m.signed(x, 2))`, `["+0.25","0.00","−2.00","0.00"]`},
		{`[0, 0.0004, 0.0006, 0.05, 0.0994, 0.0996, 0.5, 1].map(m.percent)`,
			`["0.0 %","< 0.1 %","0.1 %","5.0 %","9.9 %","10 %","50 %","100 %"]`},
		{`["<|end|>", "</s>", "<s>", "a\nb\tc", "<b>"].map(m.shown)`, `["⟨end⟩","⟨s⟩","⟨s⟩","a⏎b⇥c","<b>"]`},
		{`["  ", " a "].map(m.quoted)`, `["“␣”","“a”"]`},
		{`[[5, 0, 3], [-1, 0, 3], [2, 0, 3]].map(a => m.clamp(...a))`, `[3,0,2]`},
	})
	says(t, p, "examples.js", [][2]string{
		{`["Naples 42", "ples", "es 4", "2", "zz", ""].map(s => m.findSpan(["Na", "ples", " 4", "2 x"].map(text => ({ text })), s))`,
			`[[0,4],[1,2],[1,3],[3,4],null,null]`},
		{`m.examples.every(x => x.text.includes(x.span))`, `true`},
	})
	const plain = `"layer":0,"head":0,"tl":0,"th":0,"x":1,"scope":"layer","second":"","curve":"sqrt","src":"df","grid":"share","model":"","twin":"","text":"","q":-1,"span":null`
	const flat = `(S => ({ ...S, knocked: [...S.knocked] }))`
	const full = `"#attention?model=m&twin=none&text=a+b%26&layer=4096&head=3&tl=1&th=2&x=0&scope=all&second=shuffled&curve=symlog&src=tf&grid=cancels&q=5&span=2-7&out=0.1_2.3"`
	says(t, p, "link.js", [][2]string{
		{flat + `(m.fromHash(""))`, `{` + plain + `,"knocked":[]}`},
		{flat + `(m.fromHash("#attention?layer=-1&head=1.5&tl=4097&th=a&x=2.1&span=5-5&out=1.2_x_3&scope=some&second=z&curve=z&src=b&grid=q&q=-3"))`,
			`{` + plain + `,"knocked":["1.2"]}`},
		{flat + `(m.fromHash(` + full + `))`,
			`{"layer":4096,"head":3,"tl":1,"th":2,"x":0,"scope":"all","second":"shuffled","curve":"symlog","src":"tf","grid":"cancels","model":"m","twin":"none","text":"a b&","q":5,"span":[2,7],"knocked":["0.1","2.3"]}`},
		{`m.toHash(m.fromHash(` + full + `)) === ` + full, `true`}, {`m.toHash(m.fromHash(""))`, `"#attention?"`},
		{`m.toHash({ ...m.fromHash(""), q: 0 })`, `"#attention?q=0"`},
		{`[true, false].map(two => m.interventions({ ...m.fromHash("#?layer=2&x=0.5&second=averaged&out=1.0_0.3"), peek: 9 }, two))`,
			`[[{"layers":[2],"lambda":0.5,"second":"averaged"},{"layers":[0],"heads":[3],"knockout":true},{"layers":[1],"heads":[0],"knockout":true}],[{"layers":[0],"heads":[3],"knockout":true},{"layers":[1],"heads":[0],"knockout":true}]]`},
		{`["", "#?scope=all&x=0", "#?second=shuffled&scope=all"].map(h => m.interventions(m.fromHash(h), true))`,
			`[[],[{"lambda":0}],[{"second":"shuffled"}]]`},
	})
	// Names as attend writes them into a file.
	list := lab.Interventions(model.Config{Arch: "diff", Layers: 2, Heads: 2}, true)
	for i, v := range append(list, layer.Intervention{Layers: []int{0, 2}, Heads: []int{1, 3}, Knockout: true,
		Second: layer.SecondShuffled}) {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		says(t, p, "link.js", [][2]string{{fmt.Sprintf("m.nameOf([%s])", b), fmt.Sprintf("%q", v.String())}})
		if i == 0 {
			says(t, p, "link.js", [][2]string{{fmt.Sprintf("m.nameOf([%s, %s])", b, b),
				fmt.Sprintf("%q", v.String()+";"+v.String())}})
		}
	}
}

// Maps by hand: differences at any λ, rows of tokens, tiles, finer replies, shares of a span and what cancels.
func mapsOfThePage(t *testing.T, p *browser.Page) {
	t.Helper()
	f := func(x ...float32) string {
		b, err := json.Marshal(lab.Floats(x))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	reply := func(tile int, head string) string {
		return fmt.Sprintf(
			`{ maps: 2, tile: %d, tokens: [{}, {}, {}], shown: [{ layer: 1, head: 0, %s }], next: [{ token: 2, top: ["x"] }] }`,
			tile, head)
	}
	maps := fmt.Sprintf(`maps: { a1: %s, a2: %s }`, f(1, 0.5, 0.5, 0.25, 0.25, 0.5), f(1, 0.25, 0.75, 0.5, 0.5, 0))
	v1, v2 := reply(1, "lambda: 0.5, "+maps), reply(1, "lambda: 0.5, lambdas: "+f(0, 1, 2)+", "+maps)
	tiled := reply(2, fmt.Sprintf(`lambda: 0.5, maps: { a1: %s, a2: %s }`, f(1, 0.5, 0.5), f(1, 0, 1)))
	rows := reply(3, fmt.Sprintf(`lambda: 0.5, rows: [{ token: 2, maps: { a1: %s, a2: %s } }]`,
		f(0.5, 0, 0.5), f(0, 1, 0)))
	const list = `(t => t && { data: [...t.data], tile: t.tile, n: t.n })`
	says(t, p, "maps.js", [][2]string{
		{list + `(new m.Look(` + v1 + `).triangle(1, 0, "a2"))`, `{"data":[1,0.25,0.75,0.5,0.5,0],"tile":1,"n":3}`},
		{list + `(new m.Look(` + v1 + `).triangle(1, 0, "df"))`, `{"data":[0.5,0.375,0.125,0,0,0.5],"tile":1,"n":3}`},
		{list + `(new m.Look(` + v1 + `).triangle(1, 0, "df", 2))`,
			`{"data":[0,0.25,-0.25,-0.25,-0.25,0.5],"tile":1,"n":3}`},
		{list + `(new m.Look(` + v2 + `).triangle(1, 0, "df"))`,
			`{"data":[1,0.25,-0.25,-0.75,-0.75,0.5],"tile":1,"n":3}`},
		{list + `(new m.Look(` + tiled + `).triangle(1, 0, "df"))`, `{"data":[0.5,0.5,0],"tile":2,"n":2}`},
		{list + `(new m.Look({ ...` + v1 + `, maps: 1 }).triangle(1, 0, "df", 2))`,
			`{"data":[1,0.5,0.5,0.25,0.25,0.5],"tile":1,"n":3}`},
		{`new m.Look(` + v1 + `).triangle(0, 0, "df")`, `null`},
		{`[...new m.Look(` + v1 + `).row(1, 0, "df", 1)]`, `[0.375,0.125]`},
		{`[...new m.Look(` + v1 + `).row(1, 0, "df", 1, 2)]`, `[0.25,-0.25]`},
		{`[...new m.Look(` + v2 + `).row(1, 0, "df", 2)]`, `[-0.75,-0.75,0.5]`},
		{`[...new m.Look(` + v1 + `).row(1, 0, "a1", 2)]`, `[0.25,0.25,0.5]`},
		{`[new m.Look(` + tiled + `).row(1, 0, "df", 2), new m.Look(` + v1 + `).row(0, 0, "a1", 0)]`, `[null,null]`},
		{`[0, 2].map(q => new m.Look(` + v2 + `).lambda(1, 0, q)).concat(new m.Look(` + v1 +
			`).lambda(1, 0, 2))`, `[0,2,0.5]`},
		{`(l => { l.add(` + rows +
			`); return [[...l.row(1, 0, "df", 2)], l.row(1, 0, "df", 1), l.triangle(1, 0, "a1").n] })(new m.Look(` +
			tiled + `))`, `[[0.5,-0.5,0.5],null,2]`},
		{`(l => { l.add(` + v1 + `); l.add(` + tiled +
			`); return [l.triangle(1, 0, "a1").n, l.next.get(2)] })(new m.Look(` + tiled + `))`, `[3,["x"]]`},
		{`m.share([0.5, -0.25, 0.25], [1, 3])`, `{"share":0.5,"sum":0,"total":1}`},
		{`m.share([0.5, -0.25, 0.25], [0, 1])`, `{"share":0.5,"sum":0.5,"total":1}`},
		{`m.share([0], [0, 1])`, `{"share":0,"sum":0,"total":0}`},
		{`[m.cancels([0.5, -0.25], 0.5), m.cancels([1, -1], 0), m.cancels([1], -1)]`, `[0.5,0,0.5]`},
	})
}

// What is asked of a server so that its limits hold, and what a saved file answers.
func requestsForMaps(t *testing.T, p *browser.Page) {
	t.Helper()
	const meta = `{ n_layer: 2, n_head: 3, n_maps: 2, attention_cells: %s, attention_entries: %s }`
	plan := func(cells, entries string, T int) string {
		return fmt.Sprintf(`m.plan(`+meta+`, %d, 1)`, cells, entries, T)
	}
	says(t, p, "source.js", [][2]string{
		// Ten tokens of six heads: 6·(2·55 + 10) numbers and 8 next tokens of each with their probabilities.
		{plan("880", "1200", 10), `{"whole":true,"query":{"size":256,"next":[0,1,2,3,4,5,6,7,8,9],"topk":8}}`},
		// 6·(7·8 + 10) is less than half of it, 6·(8·9 + 10) is more.
		{plan("879", "1200", 10), `{"whole":false,"query":{"size":7,"next":[9],"topk":8}}`},
		{plan("880", "1199", 10), `{"whole":false,"query":{"size":7,"next":[9],"topk":8,"layers":[1]}}`},
		{plan("1e9", "1e9", 256) + `.whole`, `true`},
		{plan("1e9", "1e9", 257), `{"whole":false,"query":{"size":64,"next":[256],"topk":8}}`},
		{plan("1", "1e9", 300) + `.query.size`, `4`},
		{`(s => [s.has([]), s.has([{ lambda: 0 }]), s.has([{ lambda: 1 }]), s.outcome("", "", {}, [{ lambda: 0 }]), s.outcome("", "", {}, []), s.look("b").whole, s.look("a").whole, s.card("b").id, s.live])(new m.Saved({ models: [{ id: "a" }, { id: "b" }], looks: [{ model: "a", whole: false }, { model: "b" }], outcomes: { "lambda=0": { loss: 2 } } }))`,
			`[true,true,false,{"loss":2},null,true,false,"b",false]`},
		{`(() => { try { new m.Saved({ looks: [] }).look("z") } catch (e) { return e.message } })()`,
			`"this file has nothing about the model z"`},
	})
}

// Colours of one scale, curves with their ticks and crosshair, and lines of layers.
func drawing(t *testing.T, p *browser.Page) {
	t.Helper()
	says(t, p, "colour.js", [][2]string{
		{`(m.setScale("light", "linear"), [0, 1, -1, 2, -0.75].map(m.colour))`,
			`[[241,239,232],[111,34,6],[12,52,104],[111,34,6],[47,111,181]]`},
		{`[0.5, -0.5].map(m.height)`, `[0.5,-0.5]`},
		{`(m.setScale("dark", "sqrt"), [0, 0.25, 1, -1].map(m.colour))`,
			`[[29,33,38],[177,96,28],[255,226,189],[211,233,255]]`},
		{`[0.25, -0.25, 4].map(m.height)`, `[0.5,-0.5,1]`},
		{`(m.setScale("dark", "symlog"), [0, 1, -1].map(m.height))`, `[0,1,-1]`},
		{`m.height(0.004).toFixed(4)`, `"0.1254"`}, // ln 2 / ln 251
		{`[[0, 0, 0], [255, 255, 255], [120, 120, 120], [110, 110, 110]].map(m.ink)`, `["#fff","#000","#000","#fff"]`},
		{`(c => { m.setScale("light", "linear"); m.paint(c, [0, 1, -1], 2); return [c.width, [...c.getContext("2d").getImageData(0, 0, 2, 2).data]] })(document.createElement("canvas"))`,
			`[2,[241,239,232,255,0,0,0,0,111,34,6,255,12,52,104,255]]`},
	})
	const chart = `(f => { document.body.replaceChildren(Object.assign(document.createElement("p"), { id: "problem" })); return f(new m.Chart("T", document.body)) })`
	says(t, p, "chart.js", [][2]string{
		{chart + `(c => { c.draw([{ name: "a", n: 9, points: [[0, 1], [10, 2], [20, NaN], [30, 3]] }, { name: "b", n: 1, dash: true, points: [[5, 1.5]] }]); return [c.read.textContent, c.svg.querySelector("title").textContent, c.x, [...c.svg.querySelectorAll("text")].map(e => e.textContent), [...c.svg.querySelectorAll("path.line")].map(e => e.getAttribute("class")), c.svg.querySelectorAll("circle.c1").length] })`,
			`["a 3 · b 1.5","T: a 3 at step 30, b 1.5 at step 5",[0,30],["1","1.5","2","2.5","3","0","5","10","15","20","25","30"],["line c1","line c1 dash"],1]`},
		{chart + `(c => { c.draw([{ name: "a", n: 0, points: [[0, 1], [10, 2], [30, 3]] }]); c.mark(11.4); const one = c.read.textContent; c.mark(); return [one, c.read.textContent, c.px(0), c.px(30), c.py(c.y[0]), c.py(c.y[1]), c.py(99)] })`,
			`["step 11: a 2","a 3",54,550,196,10,10]`},
		{chart + `(c => { c.draw([{ name: "a", n: 0, points: Array.from({ length: 1001 }, (_, i) => [i, i % 2]) }]); return [c.lines[0].points.length, c.lines[0].points[0], c.lines[0].points[500]] })`,
			`[501,[1,0.5],[1000,0]]`},
		{chart + `(c => { c.draw([{ name: "a", n: 0, points: [[0, 900], ...Array.from({ length: 100 }, (_, i) => [i + 1, 2 - i / 100])] }]); return [c.y[1] < 3, c.y[0] > 0.9] })`,
			`[true,true]`},
		{chart + `(c => { c.draw([{ name: "a", n: 0, points: [[0, 12345], [1, 123456], [2, 0.000123456]] }]); return c.lines[0].points.map(p => (c.mark(p[0]), c.read.textContent)) })`,
			`["step 0: a 12.3k","step 1: a 123k","step 2: a 0.0001235"]`},
		{chart + `(c => { c.draw([{ name: "a", n: 0, points: [[0, NaN]] }]); const gone = c.box.hidden; c.draw([{ name: "a", n: 0, points: [[0, 1]] }]); return [gone, c.box.hidden] })`,
			`[true,false]`},
	})
	says(t, p, "runs.js", [][2]string{{
		`m.Runs.prototype.layers("r", { n: 1, rows: [{ step: 1, lambda: [0.1, 0.2] }, { step: 2 }, { step: 3, lambda: [0.3, 0.4] }] })`,
		`[{"name":"r 1","n":1,"dash":true,"points":[[1,0.1],[3,0.3]]},{"name":"r 2","n":2,"dash":true,"points":[[1,0.2],[3,0.4]]}]`}})
}

// What is sent to a server and read from it.
func calls(t *testing.T, p *browser.Page) {
	t.Helper()
	const turns = `[{ text: "A", answers: [{ model: "x", text: "1" }, { model: "y", text: "2" }] }, { text: "B", answers: [{ model: "y", text: "3" }] }, { text: "C", answers: [] }]`
	request := func(model, chat string) string {
		return fmt.Sprintf(
			`(c => m.Chat.prototype.request.call(c, c.turns[2], { model: "%s" }, { seed: 3 }))({ turns: %s, source: { card: () => ({ meta: { chat: %s } }) } })`,
			model, turns, chat)
	}
	const base = `"stream":true,"stream_options":{"include_usage":true},"seed":3`
	says(t, p, "chat.js", [][2]string{
		{request("y", "false"), `["/v1/completions",{"model":"y",` + base + `,"prompt":"A2\nB3\nC","logprobs":5}]`},
		{request("x", "false"), `["/v1/completions",{"model":"x",` + base + `,"prompt":"A1\nB\nC","logprobs":5}]`},
		{request("y", "true"), `["/v1/chat/completions",{"model":"y",` + base +
			`,"messages":[{"role":"user","content":"A"},{"role":"assistant","content":"2"},{"role":"user","content":"B"},{"role":"assistant","content":"3"},{"role":"user","content":"C"}],"logprobs":true,"top_logprobs":5}]`},
	})
	sent := func(parts ...any) string {
		b, _ := json.Marshal(parts)
		return fmt.Sprintf(
			`(async list => { const got = [], e = new TextEncoder(), raw = %s; window.fetch = async (...a) => (got.push(a[0], a[1].method, a[1].body), new Response(new ReadableStream({ start(c) { raw.forEach(x => typeof x === "string" ? c.enqueue(e.encode(x)) : c.enqueue(new Uint8Array(x))); c.close() } })));
			try { await m.stream("/p", { a: 1 }, null, v => got.push(v)) } catch (e) { got.push(e.message) } return got })()`,
			b)
	}
	says(t, p, "api.js", [][2]string{
		{sent("data: {\"a\"", ":1}\n", "\ndata: {\"a\":2}\n\n: ping\n\ndata: [DO", "NE]\n\n"),
			`["/p","POST","{\"a\":1}",{"a":1},{"a":2}]`},
		{sent(bytewise("data: {\"a\":\"é漢🙂\"}\n\n")...), `["/p","POST","{\"a\":1}",{"a":"é漢🙂"}]`},
		{sent("data: {\"a\":1}\n\ndata: {\"error\":{\"message\":\"hot\"}}\n\ndata: {\"a\":2}\n\n"),
			`["/p","POST","{\"a\":1}",{"a":1},"hot"]`},
		{`(window.fetch = async () => new Response("{}", { status: 503 }), m.get("/x").catch(e => [e.message, e.status, e instanceof m.ServerError]))`,
			`["the server answered 503",503,true]`},
		{`(window.fetch = async () => new Response('{"error":{"message":"no"}}', { status: 400 }), m.post("/x", {}).catch(e => [e.message, e.status]))`,
			`["no",400]`},
	})
}

// bytewise are the bytes of a text, each a piece of its own.
func bytewise(s string) (out []any) {
	for _, b := range []byte(s) {
		out = append(out, []int{int(b)})
	}
	return out
}
