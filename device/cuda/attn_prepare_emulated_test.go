//go:build linux && amd64

package cuda

import "testing"

// TestEmulatedPrepare checks what comes before the main kernels of a backward pass, on the CPU: a case of each number
// of lanes and more, or with ANTIPHASE_TEST_LONG=1 all.
func TestEmulatedPrepare(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	from, step := 0, 1
	if !long() {
		from, step = 3, 5
	}
	var some []prepareCase
	for i, c := range prepareCases() {
		if i >= from && (i-from)%step == 0 {
			some = append(some, c)
		}
	}
	preparesRight(t, d, some)
}
