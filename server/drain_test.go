package server

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"antiphase/infer"
)

// drained is a rig behind the real loop of Serve, in a bubble, with a call in flight whose stream has begun.
type drained struct {
	*rig
	client   http.Client
	listener *pipes
	stop     func() error
	limit    time.Duration
}

func newDrained(t *testing.T, limit time.Duration, o infer.Options) *drained {
	t.Helper()
	r := newBare(t, setup{held: true, Options: o, Config: Config{Limits: Limits{Drain: limit}}})
	d := &drained{rig: r, listener: newPipes(), limit: limit}
	d.stop = r.serveOn(d.listener)
	d.client.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return d.listener.dial(), nil
	}}
	t.Cleanup(d.client.CloseIdleConnections)
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
		res, err := d.client.Post("http://x/v1/completions", "application/json", strings.NewReader(body))
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
		case <-time.After(time.Minute):
			d.t.Fatal("the call hangs")
			return 0, ""
		}
	}
}

// running waits until a sequence computes and has written: it does so between two steps that it runs. The next step
// waits for the end of the test.
func (d *drained) running() {
	d.t.Helper()
	d.step.let(5)
	until(d.t, "five steps", func() bool { return d.model.Engine.Stats().Steps == 5 })
}

const (
	streamed = `{"prompt":"x","max_tokens":60,"ignore_eos":true,"stream":true}`
	whole    = `{"prompt":"x","max_tokens":60,"ignore_eos":true}`
)

// drain begins the drain. The function that it gives lets steps run again and wants Serve to return without an error
// and nothing to be left.
func (d *drained) drain() (ends func()) {
	d.t.Helper()
	over := make(chan error, 1)
	go func() { over <- d.stop() }()
	until(d.t, "the drain", func() bool { return state(d.calls.state.Load()) == draining })
	return func() {
		d.t.Helper()
		d.step.free()
		if err := <-over; err != nil {
			d.t.Errorf("Serve: %v", err)
		}
		d.quiet()
		select {
		case <-d.listener.done:
		default:
			d.t.Error("the port is still open")
		}
	}
}

// aborts drains a server whose step does not end before the drain gives up, which it does at its limit.
func (d *drained) aborts() {
	d.t.Helper()
	ends := d.drain()
	for _, over := range []bool{false, true} {
		time.Sleep(d.limit - time.Millisecond)
		if synctest.Wait(); (d.calls.base.Err() != nil) != over {
			d.t.Errorf("a drain of %v has given up: %v, want %v", d.limit, !over, over)
		}
	}
	ends()
}

// The seven cases of a shutdown.

func TestDrainWaits(t *testing.T) { synctest.Test(t, drainWaits) }

func drainWaits(t *testing.T) {
	d := newDrained(t, time.Hour, infer.Options{})
	got := d.begin(streamed)
	d.running()
	d.drain()()
	if status, body := got(); status != 200 || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Errorf("%d …%q", status, body[max(0, len(body)-80):])
	}
}

func TestDrainGivesUp(t *testing.T) { synctest.Test(t, drainGivesUp) }

func drainGivesUp(t *testing.T) {
	d := newDrained(t, 50*time.Millisecond, infer.Options{})
	got := d.begin(streamed)
	d.running()
	d.aborts()
	if status, body := got(); status != 200 || !strings.Contains(body, `"shutting_down"`) ||
		strings.Contains(body, "[DONE]") {
		t.Errorf("%d …%q", status, body[max(0, len(body)-200):])
	}
}

func TestDrainAbortsWhatIsNotStreamed(t *testing.T) { synctest.Test(t, drainAbortsWhatIsNotStreamed) }

func drainAbortsWhatIsNotStreamed(t *testing.T) {
	d := newDrained(t, 50*time.Millisecond, infer.Options{})
	got := d.begin(whole)
	d.running()
	d.aborts()
	if status, body := got(); status != http.StatusServiceUnavailable || !strings.Contains(body, "shutting_down") {
		t.Errorf("%d %q", status, body)
	}
}

func TestDrainAbortsTheQueue(t *testing.T) { synctest.Test(t, drainAbortsTheQueue) }

func drainAbortsTheQueue(t *testing.T) {
	d := newDrained(t, 50*time.Millisecond, infer.Options{Slots: 1})
	var all []func() (int, string)
	for range 6 {
		all = append(all, d.begin(whole))
	}
	d.running()
	until(t, "four to wait", func() bool { n, _ := d.model.gate.load(); return n >= 4 && d.inFlight() == len(all) })
	d.aborts()
	for _, got := range all {
		if status, body := got(); status != http.StatusServiceUnavailable || !strings.Contains(body, "shutting_down") {
			t.Errorf("%d %q", status, body)
		}
	}
}

func TestDrainRefusesNewCalls(t *testing.T) { synctest.Test(t, drainRefusesNewCalls) }

func drainRefusesNewCalls(t *testing.T) {
	d := newDrained(t, time.Hour, infer.Options{})
	got := d.begin(streamed)
	d.running()
	ends := d.drain()
	for path, want := range map[string]int{"/readyz": 503, "/health": 503, "/livez": 200} {
		res, err := d.client.Get("http://x" + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, want)
		}
	}
	if status, body := d.begin(streamed)(); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "shutting_down") {
		t.Errorf("a new call: %d %q", status, body)
	}
	ends()
	if status, body := got(); status != 200 || !strings.HasSuffix(body, "[DONE]\n\n") {
		t.Errorf("the call under way: %d …%q", status, body[max(0, len(body)-80):])
	}
}

func TestDrainWithABrokenEngine(t *testing.T) { synctest.Test(t, drainWithABrokenEngine) }

func drainWithABrokenEngine(t *testing.T) {
	d := newDrained(t, time.Hour, infer.Options{})
	got := d.begin(streamed)
	d.running()
	good := *d.net
	d.breaks()
	d.drain()()
	*d.net = good
	if status, body := got(); status != 200 || !strings.Contains(body, "internal_error") {
		t.Errorf("%d …%q", status, body[max(0, len(body)-200):])
	}
}

func TestDrainOfOneServerLeavesTheOther(t *testing.T) {
	synctest.Test(t, drainOfOneServerLeavesTheOther)
}

func drainOfOneServerLeavesTheOther(t *testing.T) {
	a, b := newDrained(t, time.Hour, infer.Options{}), newDrained(t, time.Hour, infer.Options{})
	mine, other := a.begin(streamed), b.begin(streamed)
	a.running()
	b.running()
	a.drain()()
	b.step.free()
	if status, body := mine(); status != 200 || !strings.HasSuffix(body, "[DONE]\n\n") {
		t.Errorf("%d …%q", status, body[max(0, len(body)-80):])
	}
	if status, body := other(); status != 200 || !strings.HasSuffix(body, "[DONE]\n\n") {
		t.Errorf("the other: %d …%q", status, body[max(0, len(body)-80):])
	}
	if status, _ := b.begin(streamed)(); status != 200 {
		t.Errorf("the other, afterwards: %d", status)
	}
}

// TestPings: a stream that is silent sends comments, which clients skip.
func TestPings(t *testing.T) {
	r := newRig(t, setup{held: true, Config: Config{Limits: Limits{Ping: time.Millisecond}}})
	q, err := http.NewRequest("POST", r.http.URL+"/v1/completions",
		strings.NewReader(`{"prompt":"x","max_tokens":3,"stream":true}`))
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
			if pings++; pings == 3 {
				r.step.free()
			}
		} else if strings.HasPrefix(lines.Text(), "data: ") {
			events++
		}
	}
	if pings < 3 || events < 2 {
		t.Errorf("%d pings, %d events", pings, events)
	}
}
