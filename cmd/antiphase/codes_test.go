package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"antiphase/checkpoint"
	"antiphase/data"
	"antiphase/dist"
	"antiphase/eval"
	"antiphase/experiment"
	"antiphase/infer"
	"antiphase/tensor"
	"antiphase/tokenizer"
	"antiphase/train"
)

// Every kind of error ends with the code that README gives its class, however deep it is wrapped, and the class that
// says more wins: work that was saved, numbers that are not finite and a full disk before what the user did.
func TestCodeOfEveryKind(t *testing.T) {
	for _, x := range []struct {
		err  error
		want int
	}{
		{train.ErrInterrupted, 75}, {train.ErrNotFinite, 5}, {&infer.NotFiniteError{}, 5}, {checkpoint.ErrNoSpace, 4},
		{syscall.ENOSPC, 4}, {syscall.EDQUOT, 4}, {syscall.ENOMEM, 4},
		{&tensor.NoMemory{}, 4}, {usage(errors.New("x")), 2}, {&infer.ContextError{}, 2}, {train.ErrChanged, 2},
		{dist.ErrDiffer, 2}, {train.ErrElsewhere, 2}, {train.ErrUnlike, 2},
		{badInput{errors.New("x")}, 3}, {&data.CorruptError{}, 3}, {&data.SourceError{}, 3},
		{&tokenizer.FormatError{}, 3}, {checkpoint.ErrDamaged, 3},
		{checkpoint.ErrUnreadable, 3}, {checkpoint.ErrNewer, 3}, {checkpoint.ErrNone, 3}, {fs.ErrNotExist, 3},
		{fs.ErrExist, 3}, {errors.New("x"), 1},
		{errors.Join(usage(errors.New("x")), train.ErrInterrupted), 75},
		{errors.Join(badInput{errors.New("x")}, checkpoint.ErrNoSpace), 4},
		{errors.Join(usage(errors.New("x")), badInput{errors.New("y")}), 2},
		{errors.Join(train.ErrNotFinite, badInput{errors.New("y")}), 5},
		{saidElsewhere{badInput{errors.New("x")}}, 3},
	} {
		if got := exitCode(fmt.Errorf("a: %w", fmt.Errorf("b: %w", x.err))); got != x.want {
			t.Errorf("%T %v ends with %d, want %d", x.err, x.err, got, x.want)
		}
	}
	for text, want := range map[string]int{"unknown command \"x\"": 2, "an unknown command": 1} {
		if got := exitCode(errors.New(text)); got != want {
			t.Errorf("%q ends with %d, want %d", text, got, want)
		}
	}
}

// An interruption is not an error that is printed; what ended the program decides the code. A saved run is told.
func TestCodeOfInterruptions(t *testing.T) {
	for _, x := range []struct {
		err     error
		stopped os.Signal
		want    int
		says    string
	}{
		{context.Canceled, syscall.SIGINT, 130, ""}, {context.Canceled, nil, 130, ""},
		{context.Canceled, syscall.SIGTERM, 143, ""},
		{fmt.Errorf("%w (%w)", train.ErrInterrupted, context.Canceled), syscall.SIGTERM, 75, "error: "},
		{saidElsewhere{usage(errors.New("x"))}, nil, 2, ""}, {usage(errors.New("x")), nil, 2, "error: x\n"},
	} {
		var b strings.Builder
		a := &app{err: &b, stopped: x.stopped}
		if got := a.fail(fmt.Errorf("%w", x.err)); got != x.want || !strings.HasPrefix(b.String(), x.says) ||
			x.says == "" && b.Len() > 0 {
			t.Errorf("%v after signal %v: %d, said %q", x.err, x.stopped, got, b.String())
		}
	}
}

// wrapped gives a text to an InputError that was made without one.
type wrapped struct{ err error }

func (w wrapped) Error() string { return "x" }
func (w wrapped) Unwrap() error { return w.err }

// An experiment's error is the user's, or a file's, by what it says itself.
func TestCodeOfExperiments(t *testing.T) {
	for _, x := range []struct {
		err  error
		want int
	}{
		{fmt.Errorf("x: %w", experiment.ErrOther), 2}, {fmt.Errorf("x: %w", eval.BadSetting("y")), 2},
		{wrapped{&eval.InputError{}}, 3}, {errors.New("x"), 1}, {train.ErrInterrupted, 75},
	} {
		if got := exitCode(experimentError(x.err)); got != x.want {
			t.Errorf("%v ends with %d, want %d", x.err, got, x.want)
		}
	}
	if experimentError(nil) != nil {
		t.Error("no error is one")
	}
}

// The kinds of JSON values, as people call them.
func TestKindNames(t *testing.T) {
	for want, v := range map[string]any{"true or false": true, "a string": "", "a list": []int{},
		"a number": float32(1), "a whole number": uint8(1), "an object": map[string]int{}} {
		typ := reflect.TypeOf(v)
		if got := kindName(typ); got != want {
			t.Errorf("%s is %q, want %q", typ, got, want)
		}
		if got := kindName(reflect.PointerTo(typ)); got != want {
			t.Errorf("a pointer to %s is %q, want %q", typ, got, want)
		}
	}
}
