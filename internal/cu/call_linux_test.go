//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// A call of C must not allocate: a step makes thousands of them.
func TestCallAllocatesNothing(t *testing.T) {
	h, err := purego.Dlopen("libc.so.6", purego.RTLD_NOW)
	if err != nil {
		t.Skip("no libc.so.6 here: ", err)
	}
	memset, err := purego.Dlsym(h, "memset")
	if err != nil {
		t.Fatal(err)
	}
	room := new([64]byte)
	if n := testing.AllocsPerRun(100, func() { fast(memset, uintptr(unsafe.Pointer(&room[0])), 7, 64, 0, 0, 0, 0, 0, 0, 0, 0) }); n != 0 {
		t.Errorf("a call allocates %v times", n)
	}
	if room[63] != 7 {
		t.Error("the call did nothing")
	}
}

func BenchmarkCall(b *testing.B) {
	h, err := purego.Dlopen("libc.so.6", purego.RTLD_NOW)
	if err != nil {
		b.Skip("no libc.so.6 here: ", err)
	}
	getppid, err := purego.Dlsym(h, "getppid")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		fast(getppid)
	}
}

// A library that is missing is told by all the names that were tried, in one line.
func TestMissingLibrary(t *testing.T) {
	_, err := openLib("libantiphase-missing.so.1", "libantiphase-missing.so")
	if err == nil {
		t.Fatal("a library of no system was found")
	}
	for _, want := range []string{"libantiphase-missing.so.1", "libantiphase-missing.so"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is more than one line", err)
	}
}
