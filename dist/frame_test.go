package dist

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

// Frames that are changed, repeated or too long end the connection.
func TestFrames(t *testing.T) {
	for name, spoil := range map[string]func(frame []byte) [][]byte{
		"changed":  func(f []byte) [][]byte { f[6] ^= 1; return [][]byte{f} },
		"repeated": func(f []byte) [][]byte { return [][]byte{f, f} },
		"too long": func(f []byte) [][]byte { f[0] = 0xff; return [][]byte{f} },
	} {
		a, b := net.Pipe()
		client := &link{c: a, key: []byte("k"), client: true}
		server := &link{c: b, key: []byte("k")}
		var tap tapped
		(&link{c: &tap, key: []byte("k"), client: true}).mustSend(t)
		go func() {
			for _, f := range spoil(tap.sent) {
				_, _ = client.c.Write(f)
			}
			_ = client.c.Close()
		}()
		var err error
		for err == nil {
			_, err = server.receive()
		}
		if strings.Contains(err.Error(), "EOF") {
			t.Errorf("%s: passed (%v)", name, err)
		}
		_ = b.Close()
	}
}

type tapped struct {
	net.Conn
	sent []byte
}

func (t *tapped) Write(b []byte) (int, error)      { t.sent = append(t.sent, b...); return len(b), nil }
func (t *tapped) SetWriteDeadline(time.Time) error { return nil }

func (l *link) mustSend(t *testing.T) {
	t.Helper()
	if err := l.send(message{Kind: msgBeat, Count: 7}, time.Second); err != nil {
		t.Fatal(err)
	}
}

// A frame counts once, in its place, in its direction, under its key, up to the largest size.
func TestFrameCodes(t *testing.T) {
	frame := func(l *link, m message) []byte {
		t.Helper()
		c := &sink{}
		l.c = c
		if err := l.send(m, time.Second); err != nil {
			t.Fatal(err)
		}
		return c.sent.Bytes()
	}
	read := func(l *link, frames ...[]byte) (n int, err error) {
		l.c = &sink{}
		for _, f := range frames {
			_, _ = l.c.Write(f)
		}
		for range frames {
			if _, err = l.receive(); err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	client := &link{key: []byte("k"), client: true}
	a, b := frame(client, message{Kind: msgBeat, Count: 1}), frame(client, message{Kind: msgBeat, Count: 2})
	for name, c := range map[string]struct {
		l      *link
		frames [][]byte
		n      int
	}{
		"in order":     {&link{key: []byte("k")}, [][]byte{a, b}, 2},
		"out of order": {&link{key: []byte("k")}, [][]byte{b, a}, 0},
		"one left out": {&link{key: []byte("k")}, [][]byte{b}, 0},
		"twice":        {&link{key: []byte("k")}, [][]byte{a, a}, 1},
		"another key":  {&link{key: []byte("j")}, [][]byte{a}, 0},
		"sent back":    {&link{key: []byte("k"), client: true}, [][]byte{a}, 0},
	} {
		if n, err := read(c.l, c.frames...); n != c.n || (err == nil) != (c.n == len(c.frames)) {
			t.Errorf("%s: %d frames are read, %v; want %d", name, n, err, c.n)
		}
	}
	room := maxFrame - len(`{"kind":"fail","text":""}`)
	largest := frame(&link{key: []byte("k"), client: true}, message{Kind: msgFail, Text: strings.Repeat("x", room)})
	if n, err := read(&link{key: []byte("k")}, largest); n != 1 || len(largest) != 4+maxFrame+32 {
		t.Errorf("%d bytes: %v", len(largest), err)
	}
	if err := (&link{c: &sink{}}).send(message{Kind: msgFail, Text: strings.Repeat("x", room+1)},
		time.Second); !errors.Is(err, errTooLarge) {
		t.Error(err)
	}
}

// Both sides of a handshake have one key, which is another each time.
func TestHandshakeKeys(t *testing.T) {
	keys := map[string]bool{}
	for range 3 {
		x, y := net.Pipe()
		server := make(chan *link, 1)
		go func() {
			l, _ := accept(x, []byte("secret"))
			server <- l
		}()
		c, err := connect(y, []byte("secret"))
		s := <-server
		if err != nil || s == nil || !bytes.Equal(c.key, s.key) || len(c.key) != 32 || !c.client || s.client ||
			keys[string(c.key)] {
			t.Fatalf("%v, %+v, %+v", err, c, s)
		}
		keys[string(c.key)] = true
		_, _ = x.Close(), y.Close()
	}
}
