package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
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

// TestSlowReader: a client that never reads is dropped after the write timeout; its neighbour gets the same answer as
// alone, and does not wait for it.
func TestSlowReader(t *testing.T) {
	const limit = time.Second
	r := newRig(t, setup{Config: Config{Limits: Limits{WriteTimeout: limit}}, Options: infer.Options{Slots: 2}})
	q := fieldsOf{"prompt": "neighbour", "max_tokens": 50, "seed": 4, "logprobs": 2, "ignore_eos": true}
	want := r.ask(q)
	l := newPipes()
	r.serveOn(l)
	c := l.dial()
	defer c.Close()
	if _, err := io.WriteString(c,
		request(`{"prompt":"x","max_tokens":100,"stream":true,"ignore_eos":true}`)); err != nil {
		t.Fatal(err)
	}
	until(t, "the stream", func() bool { return r.model.Engine.Stats().Running > 0 })
	begin := time.Now()
	if d := cmp.Diff(want, r.ask(q)); d != "" {
		t.Error(d)
	}
	if d := time.Since(begin); d > limit {
		t.Errorf("the neighbour waited %v", d)
	}
	r.quiet()
	var b bytes.Buffer
	_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
	if _, err := io.Copy(&b, c); err != nil || strings.Contains(b.String(), "[DONE]") {
		t.Errorf("the slow client's connection was not closed: %v after %q", err, b.String())
	}
}

// closes reports how long it takes until the server closes a connection, reading what it sends.
func closes(t *testing.T, c net.Conn, most time.Duration) (string, time.Duration) {
	t.Helper()
	begin := time.Now()
	_ = c.SetReadDeadline(begin.Add(most))
	b, err := io.ReadAll(c)
	if err != nil && errors.Is(err, context.DeadlineExceeded) || time.Since(begin) >= most {
		t.Errorf("still open after %v (%q)", most, b)
	}
	return string(b), time.Since(begin)
}

// TestSlowClients: headers and bodies that do not come, connections that idle, headers without end.
func TestSlowClients(t *testing.T) {
	r := newRig(t, setup{Config: Config{Limits: Limits{HeaderTimeout: 150 * time.Millisecond,
		BodyTimeout: 150 * time.Millisecond, IdleTimeout: 150 * time.Millisecond, Header: 4096}}})
	dial := r.listenOn()
	begin := time.Now() // before the server's clock starts
	closes(t, dial("GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow"), 10*time.Second)
	if d := time.Since(begin); d < 150*time.Millisecond {
		t.Errorf("half a header: closed after %v already", d)
	}
	b, _ := closes(t, dial("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"), 10*time.Second)
	if !strings.Contains(b, "408") {
		t.Errorf("half a body: %q", b)
	}
	if b, _ = closes(t, dial("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"),
		10*time.Second); !strings.Contains(b, "200 OK") {
		t.Errorf("an idle connection: %q", b)
	}
	if b, _ = closes(t, dial("GET /livez HTTP/1.1\r\nHost: x\r\nX-Big: "+strings.Repeat("x", 20000)+"\r\n\r\n"),
		10*time.Second); !strings.Contains(b, "431") {
		t.Errorf("a large header: %.200q", b)
	}
	r.quiet()
}

// TestBodyDeadlineEndsWithTheBody: a request that has arrived may take longer than the time to read it.
func TestBodyDeadlineEndsWithTheBody(t *testing.T) {
	r := newRig(t, setup{big: true,
		Config: Config{Limits: Limits{HeaderTimeout: 50 * time.Millisecond, BodyTimeout: 50 * time.Millisecond}}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.serveOn(l)
	defer http.DefaultClient.CloseIdleConnections()
	for n := 1; ; n *= 4 { // a fast machine is given more to do
		begin := time.Now()
		res, err := http.Post("http://"+l.Addr().String()+"/v1/completions", "application/json",
			strings.NewReader(fmt.Sprintf(`{"prompt":"x","max_tokens":400,"ignore_eos":true,"n":%d}`, n)))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%d %s %v", res.StatusCode, b, err)
		}
		took := time.Since(begin)
		if took >= 100*time.Millisecond {
			return
		}
		if n == 16 {
			t.Fatalf("%d answers took %v only, and the time to read a body is 50 ms", n, took)
		}
	}
}

// TestConnectionCap: at the cap a connection that idles is closed for the next one; one that is busy is not, and the
// next waits.
func TestConnectionCap(t *testing.T) {
	r := newRig(t, setup{big: true, Config: Config{Limits: Limits{Connections: 2}}})
	dial := r.listenOn()
	line := func(c net.Conn, wait time.Duration) error {
		_ = c.SetReadDeadline(time.Now().Add(wait))
		_, err := bufio.NewReader(c).ReadString('\n')
		return err
	}
	live := "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
	busy := dial(request(`{"prompt":"x","max_tokens":2000,"stream":true,"ignore_eos":true}`))
	if err := line(busy, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // each takes the place of the idle one before it
		if err := line(dial(live), 10*time.Second); err != nil {
			t.Fatalf("connection %d beside a busy one and an idle one: %v", i, err)
		}
	}
	other := dial(request(`{"prompt":"x","max_tokens":2000,"stream":true,"ignore_eos":true}`))
	if err := line(other, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	late := dial(live)
	if line(late, 50*time.Millisecond) == nil {
		t.Error("a third connection was served beside two busy ones")
	}
	busy.Close()
	if err := line(late, 10*time.Second); err != nil {
		t.Errorf("the third connection: %v", err)
	}
	other.Close()
	r.quiet()
}

// TestAcceptErrors: running out of descriptors is waited out, not died of.
func TestAcceptErrors(t *testing.T) {
	r := newRig(t, setup{})
	few := &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	l := newPipes(few, few, few)
	r.serveOn(l)
	c := l.dial()
	defer c.Close()
	go func() { _, _ = io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") }()
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Errorf("%q %v", line, err)
	}
}
