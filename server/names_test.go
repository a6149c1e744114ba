package server

import (
	"strings"
	"testing"
)

// TestNamesThatMatchNothing: a host or origin that no browser or client sends in that form is an error at the start.
func TestNamesThatMatchNothing(t *testing.T) {
	for _, c := range []struct {
		hosts, origins []string
		want           string
	}{
		{nil, nil, ""},
		{[]string{"app.example", "127.0.0.1", "::1"}, []string{"https://app.example", "http://localhost:3000"}, ""},
		{nil, []string{"http://[::1]:80", "tauri://localhost"}, ""},
		{[]string{"app.example:80"}, nil, `host "app.example:80": must be`},
		{[]string{"ok", "App.example"}, nil, `host "App.example": must be`},
		{[]string{"http://app.example"}, nil, `host "http://app.example": must be`},
		{[]string{"[::1]"}, nil, `host "[::1]": must be`},
		{[]string{"*"}, nil, `host "*": must be`},
		{nil, []string{"*"}, `origin "*": must be`},
		{nil, []string{"app.example"}, `origin "app.example": must be`},
		{nil, []string{"localhost:3000"}, `origin "localhost:3000": must be`},
		{nil, []string{"https://app.example/"}, `origin "https://app.example/": must be`},
		{nil, []string{"https://app.example/chat"}, `origin "https://app.example/chat": must be`},
		{nil, []string{"https://App.example"}, `origin "https://App.example": must be`},
		{nil, []string{"https://user@app.example"}, `origin "https://user@app.example": must be`},
		{nil, []string{"https://*.example"}, `origin "https://*.example": must be`},
		{nil, []string{"https://a b"}, `origin "https://a b": must be`},
	} {
		_, err := New(Config{Hosts: c.hosts, Origins: c.origins})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q, %q: %v", c.hosts, c.origins, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q, %q: %v, want %s", c.hosts, c.origins, err, c.want)
		}
	}
}
