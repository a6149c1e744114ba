package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"antiphase/checkpoint"
	"antiphase/data"
	"antiphase/dist"
	"antiphase/infer"
	"antiphase/internal/escape"
	"antiphase/internal/vfs"
	"antiphase/tensor"
	"antiphase/tokenizer"
	"antiphase/train"
)

// Exit codes. 0 is success; a missed evaluation bar would be 6.
const (
	exitFailed     = 1
	exitUsage      = 2  // wrong flags or configuration; nothing was started
	exitBadInput   = 3  // a file is corrupt or not what it should be
	exitNoRoom     = 4  // out of disk or memory
	exitNotFinite  = 5  // numerical failure
	exitFault      = 70 // internal error; a report is printed
	exitTryAgain   = 75 // stopped and saved; the same command continues
	exitInterrupt  = 130
	exitTerminated = 143
)

// usageError is a mistake on the command line or in a recipe.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(err error) error { return usageError{err} }

// saidElsewhere is an error that another rank prints.
type saidElsewhere struct{ error }

func (e saidElsewhere) Unwrap() error { return e.error }

// badInput is a file that cannot be used.
type badInput struct{ error }

func (e badInput) Unwrap() error { return e.error }

// fail prints the error and chooses the exit code.
func (a *app) fail(err error) int {
	if errors.Is(err, context.Canceled) && !errors.Is(err, train.ErrInterrupted) { // the user caused it
		if a.stopped == syscall.SIGTERM {
			return exitTerminated
		}
		return exitInterrupt
	}
	if !errors.As(err, new(saidElsewhere)) {
		fmt.Fprintln(a.err, a.paint(red, "error: ")+oneLine(escape.Text(said(err))))
	}
	return exitCode(err)
}

// oneLine joins the lines of several errors, or of one that lists something.
func oneLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
}

// wrongPath reports whether a path cannot be used: it does not exist, is of another kind, or is not a valid path.
func wrongPath(err error) bool {
	return slices.ContainsFunc([]error{fs.ErrNotExist, fs.ErrExist, syscall.ENOTDIR, syscall.EISDIR,
		syscall.ENAMETOOLONG, vfs.ErrNotRegular, vfs.ErrLink, vfs.ErrTooLarge},
		func(kind error) bool { return errors.Is(err, kind) })
}

func exitCode(err error) int {
	var u usageError
	var b badInput
	var c *data.CorruptError
	var s *data.SourceError
	var x *infer.ContextError
	var m *tensor.NoMemory
	if code := codeGiven(err, 0); code != 0 {
		return code
	}
	switch {
	case errors.Is(err, train.ErrInterrupted):
		return exitTryAgain
	case errors.Is(err, train.ErrNotFinite), errors.As(err, new(*infer.NotFiniteError)):
		return exitNotFinite
	case errors.Is(err, checkpoint.ErrNoSpace), vfs.IsNoSpace(err), errors.As(err, &m), errors.Is(err, syscall.ENOMEM):
		return exitNoRoom
	case errors.As(err, &u), errors.As(err, &x), errors.Is(err, train.ErrChanged), errors.Is(err, dist.ErrDiffer),
		errors.Is(err, train.ErrElsewhere), errors.Is(err, train.ErrUnlike), errors.Is(err, train.ErrForeign),
		strings.HasPrefix(err.Error(), "unknown command"):
		return exitUsage
	case errors.As(err, &b), errors.As(err, &c), errors.As(err, &s), errors.As(err, new(*tokenizer.FormatError)),
		errors.Is(err, checkpoint.ErrDamaged), errors.Is(err, checkpoint.ErrUnreadable),
		errors.Is(err, checkpoint.ErrNewer),
		errors.Is(err, checkpoint.ErrNone), wrongPath(err):
		return exitBadInput
	}
	return exitFailed
}
