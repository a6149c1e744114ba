package vfstest

import (
	"errors"
	"testing"

	"antiphase/internal/vfs"
)

// EachFault runs act once for every file operation that it makes, on a new file system each time, and fails that
// operation: act must return the injected error. Operations that spare accepts may fail without an error; it may be
// nil. It returns the number of operations.
func EachFault(t testing.TB, prepare func(vfs.FS), act func(vfs.FS) error, spare func(Op) bool) int {
	t.Helper()
	injected := errors.New("injected")
	for at := 0; ; at++ {
		mem := NewMem()
		if prepare != nil {
			prepare(mem)
		}
		var failed *Op
		f := &Faulty{FS: mem, Hook: func(op Op) error {
			if op.Index == at {
				failed = &op
				return injected
			}
			return nil
		}}
		err := act(f)
		switch {
		case failed == nil && err != nil:
			t.Fatalf("without a fault: %v", err)
		case failed == nil:
			return at
		case errors.Is(err, injected) || spare != nil && spare(*failed):
		default:
			t.Errorf("operation %v failed, and the result was %v", *failed, err)
		}
	}
}
