package server

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

func keys(t testing.TB, list ...string) *Keys {
	t.Helper()
	k, err := NewKeys(list...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestEveryRouteNeedsAKey walks the table: what is not on this list answers 401 without a key and with a wrong one.
func TestEveryRouteNeedsAKey(t *testing.T) {
	public := []string{"GET /health", "GET /v1/health", "GET /livez", "GET /readyz", "GET /{$}", "GET /ui/"}
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") })
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	r := newRig(t, setup{Config: Config{Keys: keys(t, "sk-right-one", "sk-other-one"), Page: page, Runs: root}})
	walked := 0
	for _, route := range r.router.routes {
		path := strings.NewReplacer("{$}", "", "{id...}", "tiny").Replace(route.path)
		open := false
		for _, p := range public {
			open = open || p == route.pattern()
		}
		for _, header := range [][]string{{}, {"Authorization", "Bearer wrong"},
			{"Authorization", "Basic sk-right-one"}, {"Authorization", "sk-right-one"},
			{"Authorization", "Bearer sk-right-on"}, {"X-Api-Key", "x"}} {
			status, _, b := r.do(route.method, path, nil, header...)
			if want := http.StatusUnauthorized; !open && status != want || open && status != http.StatusOK {
				t.Errorf("%s %v: %d %s", route.pattern(), header, status, b)
			}
		}
		if status, _, _ := r.do(route.method, path, nil, "Authorization",
			"Bearer sk-other-one"); status == http.StatusUnauthorized {
			t.Errorf("%s: 401 with a right key", route.pattern())
		}
		walked++
	}
	for _, path := range []string{"/nothing", "/v1/", "/debug/pprof/", "/debug/vars", "//v1/models",
		"/V1/models", "/health/"} {
		if status, _, b := r.do("GET", path, nil); status != http.StatusUnauthorized {
			t.Errorf("GET %s: %d %s, want 401", path, status, b)
		}
	}
	if status, _, _ := r.do("GET", "/debug/pprof/", nil, "Authorization",
		"Bearer sk-right-one"); status != http.StatusNotFound {
		t.Errorf("/debug/pprof/ with a key: %d, want 404", status)
	}
	if walked < 20 {
		t.Errorf("walked %d routes only", walked)
	}
}

// TestKeysAreHashed: all keys are compared by hash in constant time, and none is kept. The source is read, since time
// cannot be tested.
func TestKeysAreHashed(t *testing.T) {
	k := keys(t, "sk-first-key", " sk-second-key\n")
	for key, want := range map[string]int{"sk-first-key": 0, "sk-second-key": 1, "sk-first-ke": -1, "": -1,
		"sk-first-key2": -1} {
		if got := k.match(key); got != want {
			t.Errorf("match(%q) = %d, want %d", key, got, want)
		}
	}
	if strings.Contains(fmt.Sprintf("%+v", k), "second-key") {
		t.Error("a key is kept in clear")
	}
	src, err := os.ReadFile("auth.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(src, []byte("subtle.ConstantTimeCompare(sum[:], k.sums[i][:])")); n != 1 ||
		bytes.Contains(src, []byte("key ==")) && !bytes.Contains(src, []byte(`key == ""`)) {
		t.Error("keys must be compared by subtle.ConstantTimeCompare alone")
	}
	for _, bad := range []string{"two words", "a-long\x00key", "a-long-kéy", "a-long\xffkey"} {
		if _, err := NewKeys("a-good-key", bad); err == nil || !strings.Contains(err.Error(), "API key 2 has") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := NewKeys("short"); err == nil {
		t.Error("a key of five characters was taken")
	}
	if list, err := ReadKeys(strings.NewReader("# ours\nsk-one-one\n\n  sk-two-two  \n")); err != nil ||
		len(list) != 2 || list[1] != "sk-two-two" {
		t.Errorf("%q %v", list, err)
	}
	if _, err := ReadKeys(strings.NewReader("# nothing\n")); err == nil {
		t.Error("a file without keys was taken")
	}
	if _, err := ReadKeys(endless("sk-one-one\n")); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("keys without end: %v", err)
	}
}

// endless is a text over and over.
type endless string

func (e endless) Read(b []byte) (int, error) { return copy(b, e), nil }

// TestHosts: a name that is not ours is refused, whatever the address it came to (DNS rebinding).
func TestHosts(t *testing.T) {
	r := newRig(t, setup{Config: Config{Hosts: []string{"localhost", "127.0.0.1", "::1", "my.box"}}})
	for host, ok := range map[string]bool{"localhost": true, "localhost:8080": true, "LOCALHOST": true,
		"127.0.0.1:1": true, "[::1]:8080": true, "[::1]": true, "my.box": true, "my.box.": true,
		"evil.example": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false,
		"evil.example:8080": false, "localhost@evil.example": false, "2130706433": false, "0.0.0.0": false} {
		status, _, b := r.do("GET", "/v1/models", nil, "Host", host)
		if (status == http.StatusOK) != ok {
			t.Errorf("Host %q: %d %s", host, status, b)
		}
	}
}

// TestOrigins: pages of other origins are refused before any work, and no answer allows credentials.
func TestOrigins(t *testing.T) {
	r := newRig(t, setup{Config: Config{Origins: []string{"https://app.example"}}})
	own := r.http.URL
	for origin, ok := range map[string]bool{own: true, "https://app.example": true, "http://app.example": false,
		"https://app.example:444": false, "https://app.example.evil.example": false, "null": false,
		"http://localhost.evil.com": false, "http://localhost:1": false, "file://": false,
		strings.Replace(own, "http:", "ftp:", 1): false, own + "/x": false, own +
			"@evil.example": false, "*": false,
		strings.ToUpper(own): true, own + "?x": false, strings.Replace(own, "//", "//user@", 1): false, own +
			"/": false, "//" + own: false,
		strings.Replace(own, "http:", "https:", 1): true, "http://[": false, "http://%zz": false} {
		for _, method := range []string{"POST", "OPTIONS"} {
			status, h, b := r.do(method, "/v1/completions", `{"prompt":"x","max_tokens":1}`, "Origin", origin)
			good := status == http.StatusOK || status == http.StatusNoContent
			if good != ok || !ok && status != http.StatusForbidden {
				t.Errorf("%s from %q: %d %s", method, origin, status, b)
			}
			if got := h.Get("Access-Control-Allow-Origin"); ok && got != origin || !ok && got != "" ||
				h.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s from %q: allows %q", method, origin, got)
			}
		}
	}
	for _, c := range []struct {
		origin, host string
		want         int
	}{
		{"http://lab.example:80", "Lab.Example:80", 200}, {"http://LAB.example", "lab.example", 200},
		{"http://lab.example", "lab.example:80", 403}, {"http://lab.example", "xlab.example", 403},
	} {
		if status, _, b := r.do("GET", "/livez", nil, "Origin", c.origin, "Host", c.host); status != c.want {
			t.Errorf("%s at %s: %d %s, want %d", c.origin, c.host, status, b, c.want)
		}
	}
}

// TestContentKinds: compressed bodies are not opened, and only JSON is read.
func TestContentKinds(t *testing.T) {
	r := newRig(t, setup{})
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 1<<20))
	z.Close()
	for _, c := range []struct {
		body, header, value string
		want                int
	}{
		{bomb.String(), "Content-Encoding", "gzip", http.StatusUnsupportedMediaType},
		{`{"prompt":"x"}`, "Content-Encoding", "identity, br", http.StatusUnsupportedMediaType},
		{`{"prompt":"x"}`, "Content-Type", "text/plain", http.StatusUnsupportedMediaType},
		{`prompt=x`, "Content-Type", "application/x-www-form-urlencoded", http.StatusUnsupportedMediaType},
		{`{"prompt":"x"}`, "Content-Type", "application/json; charset", http.StatusUnsupportedMediaType}, // no value
		{`{"prompt":"x"}`, "Content-Type", "application/json5", http.StatusUnsupportedMediaType},
		{`{"prompt":"x","max_tokens":1}`, "Content-Type", "application/json; charset=utf-8", http.StatusOK},
		{`{"prompt":"x","max_tokens":1}`, "Content-Type", "Application/JSON", http.StatusOK},
	} {
		if status, _, b := r.do("POST", "/v1/completions", c.body, c.header, c.value); status != c.want {
			t.Errorf("%s %s: %d %s, want %d", c.header, c.value, status, b, c.want)
		}
	}
	for path, want := range map[string]int{"/v1/completions": http.StatusMethodNotAllowed,
		"/tokenize": http.StatusMethodNotAllowed, "/nothing": http.StatusNotFound} {
		if status, h, b := r.do("GET", path, nil); status != want || want == http.StatusMethodNotAllowed &&
			h.Get("Allow") != "POST" {
			t.Errorf("GET %s: %d %s", path, status, b)
		}
	}
}

// TestRequestIDs: a client's id comes back, a bad one is replaced.
func TestRequestIDs(t *testing.T) {
	r := newRig(t, setup{})
	if _, h, _ := r.do("GET", "/livez", nil, "X-Request-Id", "mine-1"); h.Get("X-Request-Id") != "mine-1" {
		t.Errorf("%q", h.Get("X-Request-Id"))
	}
	if _, h, _ := r.do("GET", "/livez", nil, "X-Request-Id", "<script>"); !strings.HasPrefix(h.Get("X-Request-Id"),
		"req_") {
		t.Errorf("%q", h.Get("X-Request-Id"))
	}
}

// TestModelNames: what could mean something in a path is no name.
func TestModelNames(t *testing.T) {
	for id, ok := range map[string]bool{"a": true, "org/name-1.5:x": true, "": false, "..": false, "../x": false,
		"/x": false, "a/b/c": false, "a b": false, "a\x00": false, ".hidden": false, "a/..": false} {
		if (CheckID(id) == nil) != ok {
			t.Errorf("CheckID(%q) = %v", id, CheckID(id))
		}
	}
	if _, err := NewModel(Source{ID: "a", Model: newBare(t, setup{}).net}); err == nil ||
		!strings.Contains(err.Error(), "without a tokenizer") {
		t.Errorf("without a tokenizer: %v", err)
	}
}
