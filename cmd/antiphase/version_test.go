package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestBuild: what is said about a build with and without its repository.
func TestBuild(t *testing.T) {
	b := build{Version: "(devel)", Commit: strings.Repeat("ab", 20), Date: "2026-11-15T01:02:03Z", Modified: true,
		Go: "go1.26", Platform: "linux/amd64"}
	if got, want := b.String(), "abababababab+dirty of 2026-11-15T01:02:03Z, go1.26, linux/amd64"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (build{Version: "(devel)", Go: "go1.26", Platform: "x/y"}).String(); !strings.Contains(got,
		"no commit is known") {
		t.Errorf("without a commit it says %q", got)
	}
}

// TestReadmeBuildsStatic: a compiler that is around must not decide what is built, and only a build without the GPU,
// whose libraries are opened at run time, is called static.
func TestReadmeBuildsStatic(t *testing.T) {
	guides, err := filepath.Glob("../../docs/guide/*.md")
	if err != nil {
		t.Fatal(err)
	}
	builds := 0
	for _, path := range append(guides, "../../README.md", "../../Makefile", "../../tools/bench/README.md") {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		exported := strings.Contains(string(b), "\nexport CGO_ENABLED ?= 0\n")
		for line := range strings.Lines(string(b)) {
			if regexp.MustCompile(`\bgo build\b.*/cmd/antiphase`).MatchString(line) {
				if builds++; !exported && !strings.Contains(line, "CGO_ENABLED=0 go build") {
					t.Errorf("%s: %q does not say CGO_ENABLED=0", path, line)
				}
			}
			if regexp.MustCompile(`(?i)\bstatic\b.*binary|binary.*\bstatic\b`).MatchString(line) &&
				!strings.Contains(line, "nogpu") {
				t.Errorf("%s: %q is true with -tags nogpu only", path, line)
			}
		}
	}
	if builds < 4 {
		t.Errorf("%d builds were found", builds)
	}
}
