package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestBuild: what is said about a build with and without its repository.
func TestBuild(t *testing.T) {
	b := build{Version: "(devel)", Commit: strings.Repeat("ab", 20), Date: "2026-11-15T01:02:03Z", Modified: true, Go: "go1.26", Platform: "linux/amd64"}
	if got, want := b.String(), "abababababab+dirty of 2026-11-15T01:02:03Z, go1.26, linux/amd64"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (build{Version: "(devel)", Go: "go1.26", Platform: "x/y"}).String(); !strings.Contains(got, "no commit is known") {
		t.Errorf("without a commit it says %q", got)
	}
}

// TestReadmeBuildsStatic: a compiler that is around must not decide what is built.
func TestReadmeBuildsStatic(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^.*\bgo build\b.*$`).FindAllString(string(b), -1)
	if len(lines) == 0 {
		t.Fatal("README.md builds nothing")
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "CGO_ENABLED=0 ") {
			t.Errorf("README.md: %q does not say CGO_ENABLED=0", line)
		}
	}
}
