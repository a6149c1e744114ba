package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"antiphase/infer"
)

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func brokenLog() *slog.Logger { return slog.New(slog.NewTextHandler(brokenWriter{}, nil)) }

// pipes is a listener whose connections have no buffer: a client that does not read stops the writer at once.
type pipes struct {
	next chan net.Conn
	done chan struct{}
	once sync.Once
	errs []error // given before any connection
}

func newPipes(errs ...error) *pipes {
	return &pipes{next: make(chan net.Conn), done: make(chan struct{}), errs: errs}
}

func (p *pipes) Accept() (net.Conn, error) {
	if len(p.errs) > 0 {
		err := p.errs[0]
		p.errs = p.errs[1:]
		return nil, err
	}
	select {
	case c := <-p.next:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }
func (p *pipes) dial() net.Conn {
	a, b := net.Pipe()
	p.next <- b
	return a
}

// serveOn runs the real loop of Serve on a listener and gives a function that stops it and reports what it returned.
func (r *rig) serveOn(l net.Listener) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx, l) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	r.t.Cleanup(func() { _ = stop() })
	return stop
}

func request(body string) string {
	return fmt.Sprintf(
		"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		len(body), body)
}

// send dials and writes a text beside the test: the server may not read all of it.
func (p *pipes) send(text string) net.Conn {
	c := p.dial()
	go func() { _, _ = io.WriteString(c, text) }()
	return c
}

// TestSlowReader: a client that never reads is dropped after the write timeout; its neighbour gets the same answer as
// alone, and does not wait for it.
func TestSlowReader(t *testing.T) {
	const limit = time.Second
	s := setup{Config: Config{Limits: Limits{WriteTimeout: limit}}, Options: infer.Options{Slots: 2}}
	bubble(t, s, func(t *testing.T, r *rig) {
		q := fieldsOf{"prompt": "neighbour", "max_tokens": 50, "seed": 4, "logprobs": 2, "ignore_eos": true}
		want := r.ask(q)
		l := newPipes()
		r.serveOn(l)
		begin := time.Now()
		c := l.send(request(`{"prompt":"x","max_tokens":100,"stream":true,"ignore_eos":true}`))
		defer c.Close()
		if synctest.Wait(); r.inFlight() != 1 {
			t.Error("there is no stream")
		}
		if d := cmp.Diff(want, r.ask(q)); d != "" {
			t.Error(d)
		}
		if d := time.Since(begin); d != 0 || r.inFlight() != 1 {
			t.Errorf("the neighbour waited %v, %d calls are left", d, r.inFlight())
		}
		r.quiet()
		if d := time.Since(begin); d < limit || d > limit+time.Second {
			t.Errorf("the slow client was dropped after %v", d)
		}
		if b, _ := closes(t, c); strings.Contains(b, "[DONE]") {
			t.Errorf("the slow client got %q", b)
		}
	})
}

// closes reports what a connection brings until the server closes it, and how long that takes.
func closes(t *testing.T, c net.Conn) (string, time.Duration) {
	t.Helper()
	begin := time.Now()
	_ = c.SetReadDeadline(begin.Add(time.Hour))
	b, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("%v after %v (%q)", err, time.Since(begin), b)
	}
	return string(b), time.Since(begin)
}

// TestSlowClients: headers and bodies that do not come, connections that idle, headers without end.
func TestSlowClients(t *testing.T) {
	const header, body, idle = 150 * time.Millisecond, 250 * time.Millisecond, 350 * time.Millisecond
	s := setup{Config: Config{Limits: Limits{HeaderTimeout: header, BodyTimeout: body, IdleTimeout: idle,
		Header: 4096}}}
	bubble(t, s, func(t *testing.T, r *rig) {
		l := newPipes()
		r.serveOn(l)
		for _, c := range []struct {
			name, text, want string
			after            time.Duration
		}{
			{"half a header", "GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow", "", header},
			{"half a body", "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", "408", body},
			{"an idle connection", "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK", idle},
			{"a large header", "GET /livez HTTP/1.1\r\nHost: x\r\nX-Big: " + strings.Repeat("x", 20000) + "\r\n\r\n",
				"431", 0},
		} {
			b, after := closes(t, l.send(c.text))
			if !strings.Contains(b, c.want) || after < c.after || after > c.after+time.Second { // net/http lingers
				t.Errorf("%s: closed after %v with %.200q, want %v and %q", c.name, after, b, c.after, c.want)
			}
		}
		r.quiet()
	})
}

// TestBodyDeadlineEndsWithTheBody: a request that has arrived may take longer than the time to read it.
func TestBodyDeadlineEndsWithTheBody(t *testing.T) {
	s := setup{Config: Config{Limits: Limits{HeaderTimeout: 50 * time.Millisecond, BodyTimeout: 50 * time.Millisecond}},
		Options: infer.Options{Lock: pace(10 * time.Millisecond)}}
	bubble(t, s, func(t *testing.T, r *rig) {
		l := newPipes()
		r.serveOn(l)
		c := l.send(request(`{"prompt":"x","max_tokens":100,"ignore_eos":true}`))
		defer c.Close()
		begin := time.Now()
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		if took := time.Since(begin); err != nil || res.StatusCode != http.StatusOK || took != time.Second {
			t.Errorf("%d %s %v after %v", res.StatusCode, b, err, took)
		}
	})
}

// TestConnectionCap: at the cap a connection that idles is closed for the next one; one that is busy is not, and the
// next waits.
func TestConnectionCap(t *testing.T) {
	s := setup{Config: Config{Limits: Limits{Connections: 2, WriteTimeout: time.Hour}}}
	bubble(t, s, func(t *testing.T, r *rig) {
		l := newPipes()
		r.serveOn(l)
		line := func(c net.Conn) error {
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
			_, err := bufio.NewReader(c).ReadString('\n')
			return err
		}
		live := "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
		stream := func() net.Conn { // it is busy until it is read or closed
			c := l.send(request(`{"prompt":"x","max_tokens":100,"stream":true,"ignore_eos":true}`))
			if err := line(c); err != nil {
				t.Fatal(err)
			}
			return c
		}
		busy := stream()
		for i := range 3 { // each takes the place of the idle one before it
			begin := time.Now()
			if err := line(l.send(live)); err != nil || time.Since(begin) > 2*patience {
				t.Fatalf("connection %d beside a busy one and an idle one: %v after %v", i, err, time.Since(begin))
			}
		}
		other := stream()
		late := make(chan net.Conn, 1)
		go func() { late <- l.send(live) }()
		if time.Sleep(5 * time.Second); len(late) != 0 {
			t.Error("a third connection was served beside two busy ones")
		}
		busy.Close()
		if err := line(<-late); err != nil {
			t.Errorf("the third connection: %v", err)
		}
		other.Close()
		r.quiet()
	})
}

// TestAcceptErrors: running out of descriptors is waited out, not died of.
func TestAcceptErrors(t *testing.T) {
	bubble(t, setup{}, func(t *testing.T, r *rig) {
		few := &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
		l := newPipes(few, few, few)
		r.serveOn(l)
		b, _ := closes(t, l.send("GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
		if !strings.HasPrefix(b, "HTTP/1.1 200") {
			t.Errorf("%q", b)
		}
	})
}
