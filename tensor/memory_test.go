package tensor

import (
	"errors"
	"testing"
)

func TestNoMemory(t *testing.T) {
	cause := errors.New("cause")
	for want, e := range map[string]*NoMemory{
		"out of memory: 1.50 GiB more of host memory are needed, there are 0.50 GiB": {"host", 3 << 29,
			1 << 29, nil},
		"out of memory: 1.00 GiB more of device memory are needed (cause)": {"device",
			1 << 30, -1, cause},
		"out of memory: 1.00 GiB more of device memory are needed, there are 0.00 GiB (cause)": {"device",
			1 << 30, 0, cause},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if errors.Is(e, cause) != (e.Err != nil) {
			t.Errorf("%q does not unwrap", want)
		}
	}
}

// Every type has a size and a name of its own.
func TestEveryDType(t *testing.T) {
	for d, want := range map[DType]struct {
		size int
		name string
	}{F64: {8, "F64"}, F32: {4, "F32"}, BF16: {2, "BF16"}, I32: {4, "I32"}, I16: {2, "I16"}, I8: {1, "I8"}} {
		if d.Size() != want.size || d.String() != want.name {
			t.Errorf("%s of %d bytes, want %+v", d, d.Size(), want)
		}
	}
}
