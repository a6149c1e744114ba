package vfstest

import (
	"errors"
	"os"
	"runtime"
	"testing"
)

// Symlink makes a symbolic link, or ends the test, see Linked.
func Symlink(t testing.TB, target, link string) {
	t.Helper()
	Linked(t, os.Symlink(target, link))
}

// Linked ends a test if a symbolic link could not be made: it skips on Windows, where that needs a privilege, and fails
// elsewhere. Any other error fails.
func Linked(t testing.TB, err error) {
	t.Helper()
	if _, ok := errors.AsType[*os.LinkError](err); ok && runtime.GOOS == "windows" {
		t.Skipf("symbolic links need a privilege here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
