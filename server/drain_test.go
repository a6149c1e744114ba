package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"antiphase/infer"
	"antiphase/model"
)

// drained is a rig behind the real loop of Serve, with a call in flight whose stream has begun.
type drained struct {
	*rig
	url  string
	stop func() error
}

func newDrained(t *testing.T, limit time.Duration, o infer.Options) *drained {
	t.Helper()
	r := newRig(t, setup{big: true, Options: o, Config: Config{Limits: Limits{Drain: limit}}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &drained{rig: r, url: "http://" + l.Addr().String()}
	d.stop = r.serveOn(l)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return d
}

// begin starts a call and gives what will have become of it: the status and the whole body.
func (d *drained) begin(body string) (result func() (int, string)) {
	d.t.Helper()
	type answer struct {
		status int
		body   string
	}
	ch := make(chan answer, 1)
	go func() {
		res, err := http.Post(d.url+"/v1/completions", "application/json", strings.NewReader(body))
		if err != nil {
			ch <- answer{0, err.Error()}
			return
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body) // a body that ends early is part of the result
		ch <- answer{res.StatusCode, string(b)}
	}()
	return func() (int, string) {
		select {
		case a := <-ch:
			return a.status, a.body
		case <-time.After(20 * time.Second):
			d.t.Fatal("the call hangs")
			return 0, ""
		}
	}
}

// running waits until n sequences compute and the first has written: it does so between two steps that it runs.
func (d *drained) running(n int) {
	d.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		st := d.model.Engine.Stats()
		if st.Running >= n && st.Steps >= 5 {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("%d running after %d steps, want %d", st.Running, st.Steps, n)
		}
	}
}

const (
	short  = `{"prompt":"x","max_tokens":60,"ignore_eos":true,"stream":true}`
	long   = `{"prompt":"x","max_tokens":2000,"ignore_eos":true,"stream":true}`
	longer = `{"prompt":"x","max_tokens":2000,"ignore_eos":true}`
)

// ends wants Serve to return without an error and nothing to be left.
func (d *drained) ends(within time.Duration) {
	d.t.Helper()
	begin := time.Now()
	if err := d.stop(); err != nil {
		d.t.Errorf("Serve: %v", err)
	}
	if t := time.Since(begin); t > within {
		d.t.Errorf("the drain took %v, want less than %v", t, within)
	}
	d.quiet()
	if _, err := net.DialTimeout("tcp", strings.TrimPrefix(d.url, "http://"), time.Second); err == nil {
		d.t.Error("the port is still open")
	}
}

// The seven cases of a shutdown.

func TestDrainWaits(t *testing.T) {
	d := newDrained(t, 20*time.Second, infer.Options{})
	got := d.begin(short)
	d.running(1)
	d.ends(20 * time.Second)
	if status, body := got(); status != 200 || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Errorf("%d …%q", status, body[max(0, len(body)-80):])
	}
}

func TestDrainGivesUp(t *testing.T) {
	d := newDrained(t, 50*time.Millisecond, infer.Options{})
	got := d.begin(long)
	d.running(1)
	d.ends(5 * time.Second)
	if status, body := got(); status != 200 || !strings.Contains(body, `"shutting_down"`) ||
		strings.Contains(body, "[DONE]") {
		t.Errorf("%d …%q", status, body[max(0, len(body)-200):])
	}
}

func TestDrainAbortsWhatIsNotStreamed(t *testing.T) {
	d := newDrained(t, 50*time.Millisecond, infer.Options{})
	got := d.begin(longer)
	d.running(1)
	d.ends(5 * time.Second)
	if status, body := got(); status != http.StatusServiceUnavailable || !strings.Contains(body, "shutting_down") {
		t.Errorf("%d %q", status, body)
	}
}

func TestDrainAbortsTheQueue(t *testing.T) {
	d := newDrained(t, 50*time.Millisecond, infer.Options{Slots: 1})
	var all []func() (int, string)
	for range 6 {
		all = append(all, d.begin(longer))
	}
	d.running(1)
	until(t, "four to wait", func() bool { n, _ := d.model.gate.load(); return n >= 4 })
	d.ends(5 * time.Second)
	for _, got := range all {
		if status, body := got(); status != http.StatusServiceUnavailable || !strings.Contains(body, "shutting_down") {
			t.Errorf("%d %q", status, body)
		}
	}
}

func TestDrainRefusesNewCalls(t *testing.T) {
	d := newDrained(t, 20*time.Second, infer.Options{})
	got := d.begin(`{"prompt":"x","max_tokens":400,"ignore_eos":true,"stream":true}`)
	d.running(1)
	over := make(chan struct{})
	go func() { d.ends(20 * time.Second); close(over) }()
	until(t, "the drain", func() bool { return state(d.calls.state.Load()) == draining })
	for path, want := range map[string]int{"/readyz": 503, "/health": 503, "/livez": 200} {
		res, err := http.Get(d.url + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, want)
		}
	}
	if status, body := d.begin(short)(); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "shutting_down") {
		t.Errorf("a new call: %d %q", status, body)
	}
	if status, body := got(); status != 200 || !strings.HasSuffix(body, "[DONE]\n\n") {
		t.Errorf("the call under way: %d …%q", status, body[max(0, len(body)-80):])
	}
	<-over
}

func TestDrainWithABrokenEngine(t *testing.T) {
	d := newDrained(t, 20*time.Second, infer.Options{})
	got := d.begin(long)
	d.running(1)
	var good model.Model
	lose := func(m *model.Model) error {
		good = *m
		*m = broken(good.Config)
		return nil
	}
	if err := d.model.Engine.Use(t.Context(), lose); err != nil {
		t.Fatal(err)
	}
	d.ends(20 * time.Second)
	*d.net = good
	if status, body := got(); status != 200 || !strings.Contains(body, "internal_error") {
		t.Errorf("%d …%q", status, body[max(0, len(body)-200):])
	}
}

func TestDrainOfOneServerLeavesTheOther(t *testing.T) {
	a, b := newDrained(t, 20*time.Second, infer.Options{}), newDrained(t, 20*time.Second, infer.Options{})
	mine, other := a.begin(short), b.begin(short)
	a.running(1)
	a.ends(20 * time.Second)
	if status, body := mine(); status != 200 || !strings.HasSuffix(body, "[DONE]\n\n") {
		t.Errorf("%d …%q", status, body[max(0, len(body)-80):])
	}
	if status, body := other(); status != 200 || !strings.HasSuffix(body, "[DONE]\n\n") {
		t.Errorf("the other: %d …%q", status, body[max(0, len(body)-80):])
	}
	if status, _ := b.begin(short)(); status != 200 {
		t.Errorf("the other, afterwards: %d", status)
	}
}

// TestPings: a stream that is silent sends comments, which clients skip.
func TestPings(t *testing.T) {
	r := newRig(t, setup{big: true, Options: infer.Options{Slots: 1, PrefillChunk: 1},
		Config: Config{Limits: Limits{Ping: 5 * time.Millisecond}}})
	q, err := http.NewRequest("POST", r.http.URL+"/v1/completions",
		strings.NewReader(`{"prompt":"`+strings.Repeat("x", 200)+`","max_tokens":3,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	res, err := r.http.Client().Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	pings, events := 0, 0
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), ":") {
			pings++
		} else if strings.HasPrefix(lines.Text(), "data: ") {
			events++
		}
	}
	if pings == 0 || events < 2 {
		t.Errorf("%d pings, %d events", pings, events)
	}
}
