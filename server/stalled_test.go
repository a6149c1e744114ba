package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// listenOn serves on a loopback port and gives a function that sends bytes on a new connection.
func (r *rig) listenOn() (dial func(text string) net.Conn) {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.serveOn(l)
	return func(text string) net.Conn {
		r.t.Helper()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { c.Close() })
		_, _ = io.WriteString(c, text)
		return c
	}
}

// status reads the status line of an answer.
func status(t *testing.T, c net.Conn) string {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(line)
}

// TestStalledClientsLeaveRoom: clients that stop in the middle of a body or of a header take every connection there is,
// and may stay for an hour. Whoever comes next is served all the same, in place of the one that has kept the server
// waiting longest; a stream in flight continues to its end.
func TestStalledClientsLeaveRoom(t *testing.T) {
	const cap = 8
	forever := Limits{Connections: cap, BodyTimeout: time.Hour, HeaderTimeout: time.Hour}
	r := newRig(t, setup{held: true, Config: Config{Limits: forever}})
	dial := r.listenOn()
	stream := dial(request(`{"prompt":"x","max_tokens":100,"stream":true,"ignore_eos":true}`))
	r.step.let(2)
	for i := range 3 * cap {
		switch i % 3 {
		case 0:
			dial("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
				"Content-Length: 100\r\n\r\n{")
		case 1:
			dial("GET /health HTTP/1.1\r\nHost: x\r\nX-Slow")
		case 2:
			dial("")
		}
	}
	for _, path := range []string{"/health", "/metrics", "/livez"} {
		if got := status(t, dial("GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")); got !=
			"HTTP/1.1 200 OK" {
			t.Errorf("%s: %s", path, got)
		}
	}
	r.step.free()
	_ = stream.SetReadDeadline(time.Now().Add(time.Minute))
	b := &strings.Builder{}
	for lines := bufio.NewScanner(stream); lines.Scan() && !strings.Contains(b.String(), "[DONE]"); {
		fmt.Fprintln(b, lines.Text())
	}
	if !strings.Contains(b.String(), "[DONE]") {
		t.Error("the stream was cut")
	}
}

// TestRefusalWaitsForNoBody: who is refused before the body is read is told so at once, though the body never comes:
// keys, routes, methods, a full queue, and routes that want no body.
func TestRefusalWaitsForNoBody(t *testing.T) {
	r := newRig(t, setup{Config: Config{Limits: Limits{BodyTimeout: time.Hour, Queue: 1},
		Keys: keys(t, "sk-right-one")}})
	dial := r.listenOn()
	g := r.model.gate
	leave, err := g.enter(context.Background(), "", g.room, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _, _ = g.enter(ctx, "", 1, 1) }()
	until(t, "one to wait", func() bool { n, _ := g.load(); return n != 0 })
	for _, c := range []struct {
		line, key string
		want      int
	}{
		{"GET /health", "", 200}, {"GET /metrics", "sk-right-one", 200}, {"POST /health", "", 401},
		{"GET /nowhere", "sk-right-one", 404},
		{"POST /v1/completions", "", 401}, {"POST /v1/completions", "sk-wrong-one", 401},
		{"POST /v1/completions", "sk-right-one", 429},
	} {
		text := c.line + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
		if c.key != "" {
			text += "Authorization: Bearer " + c.key + "\r\n"
		}
		if got, want := status(t, dial(text+"\r\n{")),
			fmt.Sprintf("HTTP/1.1 %d %s", c.want, http.StatusText(c.want)); got != want {
			t.Errorf("%s with key %q: %s, want %s", c.line, c.key, got, want)
		}
	}
	cancel()
	<-done
	leave()
}

// TestNobodyReadsThePage: a client that asks for a large page and does not read it is dropped after the write timeout.
func TestNobodyReadsThePage(t *testing.T) {
	const limit = 200 * time.Millisecond
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) })
	bubble(t, setup{Config: Config{Page: page, Limits: Limits{WriteTimeout: limit}}}, func(t *testing.T, r *rig) {
		l := newPipes()
		r.serveOn(l)
		c := l.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		defer c.Close()
		time.Sleep(5 * limit)
		if b, _ := closes(t, c); len(b) >= 1<<20 {
			t.Errorf("%d bytes came", len(b))
		}
	})
}
