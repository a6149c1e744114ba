package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"antiphase/infer"
	"antiphase/internal/vfs"
)

// An error is one line, whatever it is joined of.
func TestOneLine(t *testing.T) {
	err := errors.Join(errors.New("a: first"), fmt.Errorf("b:\n  x: 1\n  y: 2"))
	if got, want := oneLine(err.Error()), "a: first; b: x: 1; y: 2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var errw strings.Builder
	a := &app{err: &errw}
	a.fail(err)
	if got := errw.String(); strings.Count(got, "\n") != 1 {
		t.Errorf("said %q", got)
	}
}

// A path that cannot be what was asked for is bad input; so is a file that is too large for its kind.
func TestWrongPathIsBadInput(t *testing.T) {
	for _, kind := range []error{fs.ErrNotExist, syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG, vfs.ErrNotRegular, vfs.ErrTooLarge} {
		if code := exitCode(fmt.Errorf("x: %w", kind)); code != exitBadInput {
			t.Errorf("%v ends with %d, want %d", kind, code, exitBadInput)
		}
	}
	if code := exitCode(fmt.Errorf("request 0: %w", &infer.NotFiniteError{})); code != exitNotFinite {
		t.Errorf("a logit that is not a number ends with %d", code)
	}
	if code := exitCode(errors.New("something else")); code != exitFailed {
		t.Errorf("another error ends with %d", code)
	}
}
