package web_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"antiphase/device/cpu"
	"antiphase/infer"
	"antiphase/internal/browser"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/server"
	"antiphase/tokenizer"
	"antiphase/web"
)

// rig is a real server with a pair of small random models, and a real browser.
type rig struct {
	t    *testing.T
	url  string
	nets map[string]*model.Model
	tok  *tokenizer.Tokenizer
	runs string
	b    *browser.Browser
	lock *sync.Mutex // of the device, which serves one at a time
}

func newRig(t *testing.T) *rig {
	t.Helper()
	b := browser.Open(t)
	r := &rig{
		t:    t,
		nets: map[string]*model.Model{},
		tok:  tokenizer.Bytes(),
		runs: t.TempDir(),
		b:    b,
		lock: &sync.Mutex{},
	}
	d := cpu.New(cpu.Options{Threads: 2, Precision: cpu.FP32})
	t.Cleanup(func() { d.Close() })
	root, err := os.OpenRoot(r.runs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	srv, err := server.New(server.Config{Page: web.Handler(), Runs: root, Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	var models []*server.Model
	for _, arch := range []string{"diff", "transformer", "diff2"} {
		shape := model.Config{Arch: arch, Vocab: 260, Context: 8192, Layers: 2, Dim: 32, Heads: 2,
			KVHeads: 2, HeadDim: 8}
		net := modeltest.New(t, d, shape, layer.Memory{}, 7)
		m, err := server.NewModel(
			server.Source{
				ID:        arch,
				Model:     net,
				Tokenizer: r.tok,
				First:     -1,
				EOS:       []int32{},
				Created:   time.Unix(1, 0),
				Options:   infer.Options{Lock: r.lock, Slots: 4},
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		models, r.nets[arch] = append(models, m), net
	}
	if err := srv.Ready(models...); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(srv.Handler())
	t.Cleanup(h.Close)
	r.url = h.URL
	return r
}

// page opens an address of the server and fails if the console ever says anything.
func (r *rig) page(look browser.Look, path string) *browser.Page {
	r.t.Helper()
	p := r.b.Page(r.t, look)
	p.Goto(r.url + path)
	r.t.Cleanup(func() { quiet(r.t, p) })
	return p
}

// quiet wants a console without messages.
func quiet(t *testing.T, p *browser.Page) {
	t.Helper()
	for _, s := range p.Said() {
		t.Errorf("the console says: %s", s)
	}
}

// looks are the widths and themes that every view is seen in.
var looks = []browser.Look{
	{Width: 1400, Height: 1000},
	{Width: 1400, Height: 1000, Dark: true},
	{Width: 400, Height: 800},
	{Width: 400, Height: 800, Dark: true},
}

// audit checks a page as it stands, in all looks: no sideways scrolling, and what axe would check of names, labels,
// contrast and focus.
func audit(t *testing.T, p *browser.Page, what string) {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", "audit.js"))
	if err != nil {
		t.Fatal(err)
	}
	for _, look := range looks {
		p.Show(look)
		p.Eval("new Promise(f => setTimeout(f, 150))", nil) // the theme is drawn in a frame of its own
		var r struct {
			Problems               []string
			Texts, Controls, Stops int
		}
		p.Eval(string(src)+"; audit()", &r)
		for _, s := range r.Problems {
			t.Errorf("%s, %+v: %s", what, look, s)
		}
		if r.Texts < 10 || r.Controls < 3 || r.Stops < 3 {
			t.Errorf("%s, %+v: checked %d texts, %d controls, %d stops only", what, look, r.Texts, r.Controls, r.Stops)
		}
	}
	p.Show(looks[0])
}
