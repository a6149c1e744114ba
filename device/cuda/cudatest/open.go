// Package cudatest opens a GPU for tests of packages above the device.
package cudatest

import (
	"errors"
	"os"
	"testing"

	"antiphase/device/cuda"
)

// Open opens the first GPU until the test ends, or skips the test. With ANTIPHASE_REQUIRE_CUDA=1 it fails instead.
func Open(t testing.TB) *cuda.Device {
	t.Helper()
	d, err := cuda.Open(0, cuda.Options{})
	if err == nil {
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return d
	}
	if !errors.Is(err, cuda.ErrUnavailable) || os.Getenv("ANTIPHASE_REQUIRE_CUDA") == "1" {
		t.Fatal(err)
	}
	t.Skip(err)
	return nil
}
