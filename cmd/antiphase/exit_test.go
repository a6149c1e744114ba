package main

import (
	"encoding/json"
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
	for _, kind := range []error{fs.ErrNotExist, syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG,
		vfs.ErrNotRegular, vfs.ErrLink, vfs.ErrTooLarge} {
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

// A value of the wrong kind in somebody's JSON is named by its key; the program's own types mean nothing to its users.
func TestJSONKindsInPlainWords(t *testing.T) {
	type row struct {
		Loss  float64 `json:"loss"`
		Steps int     `json:"steps"`
	}
	for text, want := range map[string]string{
		`{"rows": 3}`:                     `f.json: "rows" is a number, want a list`,
		`{"rows": [{"steps": "many"}]}`:   `"rows.steps" is a string, want a whole number`,
		`{"rows": [{"loss": {}}]}`:        `"rows.loss" is an object, want a number`,
		`{"rows": [true]}`:                `"rows" is true or false, want an object`,
		`{"rows": [{"steps": 1.5}]}`:      `"rows.steps" is 1.5, want a whole number`,
		`[]`:                              `f.json: is a list, want an object`,
		`{"rows": [{"loss": 1}], "on":1}`: `"on" is a number, want true or false`,
	} {
		var v struct {
			Rows []row `json:"rows"`
			On   bool  `json:"on"`
		}
		err := json.Unmarshal([]byte(text), &v)
		if err == nil {
			t.Fatalf("%s was taken", text)
		}
		got := said(fmt.Errorf("f.json: %w", err))
		if !strings.Contains(got, want) || strings.Contains(got, "Go ") {
			t.Errorf("%s: said %q, want %q", text, got, want)
		}
	}
}
