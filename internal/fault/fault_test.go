package fault

import (
	"errors"
	"strings"
	"testing"
)

// TestGuard: a panic in a goroutine reaches the handler with its stack, and without a handler stays a panic.
func TestGuard(t *testing.T) {
	defer handler.Store(nil)
	got := make(chan any, 1)
	var where string
	Handle(func(v any, stack []byte) { where = string(stack); got <- v })
	want := errors.New("boom")
	for _, err := range []error{nil, want} { // a goroutine that just ends is none of the handler's business
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer Guard()()
			breaks(err)
		}()
		if <-done; len(got) == 1 != (err != nil) {
			t.Fatalf("%d calls of the handler after %v", len(got), err)
		}
	}
	if v := <-got; v != any(want) || !strings.Contains(where, "fault.breaks") {
		t.Errorf("the handler got %v with\n%s", v, where)
	}
	handler.Store(nil)
	defer func() {
		if v := recover(); v != any(want) {
			t.Errorf("without a handler the panic became %v", v)
		}
	}()
	defer Guard()()
	breaks(want)
}

func breaks(err error) {
	if err != nil {
		panic(err)
	}
}

// TestMapped tells faults of mapped memory from other errors of the runtime.
func TestMapped(t *testing.T) {
	defer func() {
		if v := recover(); v == nil || Mapped(v) {
			t.Errorf("a nil dereference is %v, mapped %v", v, Mapped(v))
		}
	}()
	defer Guard()()
	var p *int
	*p = 1
}
