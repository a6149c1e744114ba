package dist

import (
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
