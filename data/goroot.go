package data

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// gorootReaders take source and documentation as running text.
var gorootReaders = []reader{{".go", plain(readText)}, {".md", plain(readText)}}

// openGoroot opens the Go toolchain's source tree without its testdata: real text that exists on every machine with Go.
func openGoroot() (Source, error) {
	root := os.Getenv("GOROOT")
	if root == "" {
		out, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return nil, fmt.Errorf(
				`GOROOT is not set and "go env GOROOT" failed (%w); install Go, set GOROOT, or use "synthetic"`, err)
		}
		root = strings.TrimSpace(string(out))
	}
	src := filepath.Join(root, "src")
	if st, err := os.Stat(src); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("%s is not a folder; set GOROOT to a Go toolchain with its sources", src)
	}
	return openFolder("goroot", src, gorootReaders, "testdata")
}
