package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fenced are the commands of a page: what stands between ```sh and ```.
var fenced = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestGuide runs every command of docs/guide as printed, with the smallest size and a free port.
func TestGuide(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the pages are written for sh")
	}
	pages, err := filepath.Glob("../../docs/guide/*.md")
	if err != nil || len(pages) != 5 {
		t.Fatalf("%d pages (%v), want one per kind of user: 5", len(pages), err)
	}
	for _, page := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			var script strings.Builder
			for _, m := range fenced.FindAllStringSubmatch(string(b), -1) {
				script.WriteString(m[1])
			}
			runPage(t, script.String())
		})
	}
}

// runPage runs a page's commands in a folder with some text in it. The variables that pages begin with are the only
// change.
func runPage(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "books"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, line := range map[string]string{
		"a.txt":    "The old house stood by the sea, and chapter %d begins there.\n\n",
		"notes.md": "- note %d: buy bread\n"} {
		var text strings.Builder
		for i := range 300 {
			fmt.Fprintf(&text, line, i)
		}
		if err := os.WriteFile(filepath.Join(dir, "books", name), []byte(text.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.HasPrefix(script, "size=") {
		t.Fatal("the first command does not set size")
	}
	script = regexp.MustCompile(`(?m)^size=.*$`).ReplaceAllString(script, "size=nano more=24")
	script = strings.Replace(script, "\nport=8080\n", "\nport="+freePort(t)+"\n", 1)
	cmd := exec.Command("sh", "-eu", "-c", "trap 'kill ${server:-} 2>/dev/null || true' EXIT\n"+script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "ANTIPHASE_HOME="+dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s", err, tailOf(out.String(), 3000))
	}
}

var ports atomic.Int64 // given so far

// freePort is a port without a listener, below those that systems choose themselves: nobody takes it before the test.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		port := 30_000 - (int64(os.Getpid())*50+ports.Add(1))%20_000
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return fmt.Sprint(port)
		}
	}
	t.Fatal("no port is free")
	return ""
}

func tailOf(s string, n int) string { return s[max(0, len(s)-n):] }

// curl stands in for the real one, so that the pages can be run where it is missing: -s, -f, -H and -d.
func curl() {
	req, body := &http.Request{Method: "GET", Header: http.Header{}}, ""
	for args := os.Args[1:]; len(args) > 0; args = args[1:] {
		switch a := args[0]; {
		case a == "-sf":
		case a == "-H" && len(args) > 1:
			name, value, _ := strings.Cut(args[1], ": ")
			req.Header.Set(name, value)
			args = args[1:]
		case a == "-d" && len(args) > 1:
			req.Method, body = "POST", args[1]
			args = args[1:]
		default:
			u, err := http.NewRequest(req.Method, a, nil)
			if err != nil || !strings.HasPrefix(a, "http://") {
				fmt.Fprintf(os.Stderr, "curl: %q is more than this stand-in knows (%v)\n", a, err)
				os.Exit(2)
			}
			req.URL = u.URL
		}
	}
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		os.Exit(7)
	}
	defer r.Body.Close()
	if r.StatusCode >= 400 {
		fmt.Fprintf(os.Stderr, "curl: %s answers %s\n", req.URL, r.Status)
		os.Exit(22)
	}
	if _, err := io.Copy(os.Stdout, r.Body); err != nil {
		os.Exit(23)
	}
}
